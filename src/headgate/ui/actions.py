"""What can be done to a job through the web interface: first the plan, then the operation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.base.errors import HeadgateError, NotFoundError, RefusedError
from headgate.base.secrets import redact
from headgate.home.audit import write_audit
from headgate.home.layout import JobHome
from headgate.home.operations import OperationRecord, Operations
from headgate.home.resume_hint import start_command
from headgate.runtime.crash import resume_text
from headgate.runtime.lease import is_live
from headgate.runtime.records import Recorder
from headgate.runtime.status import job_status
from headgate.snapshots.savepoints import check_label, create_savepoint, pin, unpin
from headgate.snapshots.snapshot import Snapshot, find_snapshot, is_newest
from headgate.ui.model import Model
from headgate.ui.model.operations import OperationView, operation_view
from headgate.ui.model.view import View
from headgate.ui.spark_process import SparkProcess
from headgate.ui.starts import can_start, start_job
from headgate.ui.works import Works

ACTIONS = ("savepoint", "checkpoint", "stop", "cancel", "pin", "unpin", "verify", "restart")


@dataclass(frozen=True)
class Caller:
    """Who asks, for the audit."""

    role: str
    address: str


@dataclass(frozen=True)
class ActionPlan(View):
    """What an action would do, to be confirmed."""

    job: str
    action: str
    title: str
    lines: tuple[str, ...]
    """Sentences for the person who decides."""
    command: str
    """The same on the command line."""
    allowed: bool
    refusal: str | None
    confirm: str
    """Send it as `confirm`: the action is refused if the job has changed since."""


class Actions:
    """Plans and does; every call of `do` is written down, refused or not."""

    def __init__(self, model: Model, spark: SparkProcess) -> None:
        self._model = model
        self._spark = spark
        self.works = Works()

    def plan(
        self,
        job: str,
        action: str,
        *,
        snapshot: str | None = None,
        label: str | None = None,
        drain: bool = False,
        savepoint: bool = True,
    ) -> ActionPlan:
        """What an action would do now; it changes nothing."""
        if action not in ACTIONS:
            raise NotFoundError("there is no such action", expected=", ".join(ACTIONS))
        found = self._model.job_home(job)
        asked = _Asked(found, action, snapshot, label, drain, savepoint)
        return self._planned(asked)

    def do(
        self,
        job: str,
        action: str,
        caller: Caller,
        *,
        confirm: str | None = None,
        snapshot: str | None = None,
        label: str | None = None,
        drain: bool = False,
        savepoint: bool = True,
    ) -> OperationView:
        """Ask for it; gives the operation that does it."""
        found = self._model.job_home(job)
        asked = _Asked(found, action, snapshot, label, drain, savepoint)
        told = {"role": caller.role, "address": caller.address, "args": asked.args()}
        try:
            plan = self._planned(asked)
            if confirm is not None and confirm != plan.confirm:
                raise RefusedError(
                    "the job has changed since the plan was made", remedy="look at the new plan"
                )
            if plan.refusal is not None:
                raise RefusedError(plan.refusal, remedy=f"the command is: {plan.command}")
            record = self._begin(asked)
        except HeadgateError as error:
            write_audit(found, action, refused=str(error), **told)
            raise
        write_audit(found, action, operation=record.id, **told)
        return operation_view(record)

    def _planned(self, asked: _Asked) -> ActionPlan:
        refusal = asked.refusal()
        return ActionPlan(
            asked.job.name,
            asked.action,
            asked.title(),
            tuple(asked.lines()) if refusal is None else (),
            asked.command(),
            refusal is None,
            refusal,
            asked.fingerprint(),
        )

    def _begin(self, asked: _Asked) -> OperationRecord:
        job, name = asked.job, asked.job.name
        if asked.for_the_driver:
            lease = job.read().lease
            driver = lease.owner.token if lease else None
            return Operations(job).request(asked.action, asked.driver_args(), driver=driver)
        work: dict[str, Callable[[], Mapping[str, Any]]] = {
            "savepoint": asked.save,
            "pin": asked.pin,
            "unpin": asked.unpin,
            "verify": lambda: self._verify(asked),
            "restart": lambda: start_job(job, asked.snapshot),
        }
        return self.works.begin(name, asked.action, asked.args(), work[asked.action])

    def _verify(self, asked: _Asked) -> Mapping[str, Any]:
        """Read every file; the files of a checkpoint that is no savepoint need Spark."""
        found = asked.found()
        problems = [{"file": p.file, "problem": p.why} for p in found.problems()]
        files = len(found.manifest.files) if found.manifest else 0
        if not problems and found.manifest is None:
            question = {"work": "verify", "job": asked.job.name, "snapshot": found.name}
            answer = self._spark.ask(question)
            problems, files = answer["problems"], answer["files"]
        if problems:
            first = problems[0]
            raise HeadgateError(
                f"{found.name} cannot be used: {first['file']} {first['problem']}"
                + (f", and {len(problems) - 1} more" if len(problems) > 1 else ""),
                remedy="start from another snapshot",
            )
        return {"snapshot": found.name, "ok": True, "files": files}

    def close(self) -> None:
        """Take nothing more."""
        self.works.close()


@dataclass(frozen=True)
class _Asked:
    """An action with its arguments, and what it means for the job as it is now."""

    job: JobHome
    action: str
    snapshot: str | None
    label: str | None
    drain: bool
    savepoint: bool

    @property
    def live(self) -> bool:
        return is_live(self.job.read().lease)

    def args(self) -> dict[str, Any]:
        found: dict[str, Any] = {"snapshot": self.snapshot, "label": self.label}
        if self.action == "stop":
            found |= {"drain": self.drain, "savepoint": self.savepoint}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def for_the_driver(self) -> bool:
        """Whether the process that drives the job does it, and not this one."""
        if self.action == "savepoint":
            return self.live and self.snapshot in (None, "latest")
        return self.live and self.action in ("checkpoint", "stop", "cancel", "restart")

    @property
    def resumes(self) -> bool:
        """Whether the job goes on where it was, with no snapshot chosen, as `headgate run` does."""
        return self.action == "restart" and self.snapshot is None

    def driver_args(self) -> dict[str, Any]:
        """What the driver is told."""
        if self.action == "restart":
            return {"from": self.snapshot} if self.snapshot else {}
        return {name: value for name, value in self.args().items() if name != "snapshot"}

    def found(self) -> Snapshot:
        return find_snapshot(self.job.home, self.snapshot or "latest", self.job.name)

    def refusal(self) -> str | None:
        """Why it cannot be done now."""
        if self.action in ("stop", "cancel", "checkpoint") and not self.live:
            return f"job '{self.job.name}' is not running, so there is nothing that could do this"
        try:
            if self.label is not None:
                check_label(self.label)
                taken = self.job.files.exists(
                    f"{self.job.path}/savepoints/{self.label}/manifest.json"
                )
                if taken:
                    return f"job '{self.job.name}' has a savepoint sp:{self.label} already"
            if self.action not in ("stop", "cancel", "checkpoint") and not self.resumes:
                snapshot = self.found()
                is_savepoint = snapshot.manifest and snapshot.manifest.kind == "savepoint"
                if is_savepoint and self.action in ("pin", "unpin", "savepoint"):
                    return f"{snapshot.name} is a savepoint, which is kept until it is deleted"
        except HeadgateError as error:
            return str(error)
        if self.action == "restart" and not self.live:
            return can_start(self.job)
        return None

    def title(self) -> str:
        where = f" from {self.snapshot}" if self.snapshot else ""
        titles = {
            "savepoint": f"Make a savepoint of {self.job.name}{where}",
            "checkpoint": f"Make a checkpoint of {self.job.name} now",
            "stop": f"Stop {self.job.name}" + (" with a savepoint" if self.savepoint else ""),
            "cancel": f"Cancel {self.job.name}",
            "pin": f"Keep {self.snapshot or 'latest'} of {self.job.name}",
            "unpin": f"Let retention have {self.snapshot or 'latest'} of {self.job.name} again",
            "verify": f"Read every file of {self.snapshot or 'latest'} of {self.job.name}",
            "restart": f"Start {self.job.name}{where}",
        }
        return titles[self.action]

    def lines(self) -> list[str]:
        """What will happen, in sentences."""
        status = job_status(self.job)
        record = status.checkpoint
        at = f"ck:{record.id}" if record else "no checkpoint"
        if self.action == "savepoint":
            return [
                f"A savepoint of {self.snapshot or at} is made; the job goes on meanwhile."
                if self.live
                else f"A savepoint of {self.snapshot or at} is made.",
                "It is kept until somebody deletes it.",
            ]
        if self.action == "checkpoint":
            return ["The job makes a checkpoint as soon as the running batch has ended."]
        if self.action == "stop":
            lines = ["The running batch is finished; nothing is lost or written twice."]
            if self.drain:
                lines.insert(0, "All that is in the sources is read, and all windows are closed.")
                lines.append("Event time ends: rows of a later start are too late for windows.")
            lines.append(
                "A savepoint is made, from which the job can be started again."
                if self.savepoint
                else "No savepoint is made; the job goes on from its newest checkpoint."
            )
            return lines
        if self.action == "cancel":
            return [
                "The job is stopped at once, in the middle of its batch, without a savepoint.",
                f"A later start runs that batch again; the newest checkpoint is {at}.",
            ]
        if self.resumes:
            return [self._where_it_runs(), f"When it starts, {resume_text(self.job)}."]
        found = self.found()
        if self.action == "restart":
            return self._restart_lines(found)
        if self.action == "verify":
            return [f"Every file of {found.name} is read and compared; nothing is changed."]
        if self.action == "pin":
            return [f"{found.name} is kept whatever retention does, until it is let go."]
        return [f"{found.name} may be deleted by retention again."]

    def _where_it_runs(self) -> str:
        if self.live:
            return "The job is stopped with a savepoint, and goes on in its own process."
        return "A process is started on the machine of this server, with the job's file."

    def _restart_lines(self, found: Snapshot) -> list[str]:
        lines = [self._where_it_runs()]
        if is_newest(self.job, found):
            lines.append(f"It goes on from {found.name}, the newest checkpoint.")
        else:
            lines.append(
                f"A new run goes on from {found.name}: what came after it is read and written "
                "again, so sinks get those rows a second time."
            )
        lines.append("The runs and snapshots that there are stay as they are.")
        for name, offsets in (found.record.sources if found.record else {}).items():
            at = ", ".join(f"{part}:{place}" for part, place in offsets.places())
            lines.append(f"Source {name} resumes at {at or 'its start'}.")
        return lines

    def command(self) -> str:
        """The same on the command line."""
        name, home = self.job.name, f"--home {redact(self.job.home.url)}"
        label = f" --label {self.label}" if self.label else ""
        at = self.snapshot or "latest"
        if self.action == "restart":
            if self.live:
                chosen = f" --from {self.snapshot}" if self.snapshot else ""
                return f"headgate restart {name}{chosen} {home}"
            run = current.read() if (current := self.job.current()) else None
            return start_command(self.job, run, snapshot=self.snapshot)
        if self.action == "stop":
            more = " --drain" * self.drain + ("" if self.savepoint else " --no-savepoint")
            return f"headgate stop {name}{label}{more} {home}"
        commands = {
            "savepoint": f"headgate savepoint create {name} {at}{label}",
            "checkpoint": f"headgate checkpoint create {name}",
            "cancel": f"headgate cancel {name}",
            "pin": f"headgate checkpoint pin {name} {at}",
            "unpin": f"headgate checkpoint pin {name} {at} --off",
            "verify": f"headgate {'savepoint' if at.startswith('sp:') else 'checkpoint'} verify "
            f"{name} {at}",
        }
        return f"{commands[self.action]} {home}"

    def fingerprint(self) -> str:
        """The same as long as the job is as it was: its run, its driver, and what was asked."""
        record = self.job.read()
        token = record.lease.owner.token if record.lease and self.live else ""
        text = repr((self.job.name, self.action, self.args(), record.current_run, token))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def save(self) -> Mapping[str, Any]:
        current = self.job.current()
        if current is not None and not self.live:
            # what a killed driver could not write belongs to the savepoint
            Recorder(current, [str(name) for name in current.graph()["sources"]]).recover()
        found = self.found()
        made = create_savepoint(
            self.job.run(found.run.run),
            checkpoint=found.batch,
            label=self.label,
            reason="web interface",
        )
        return made.to_json()

    def pin(self) -> Mapping[str, Any]:
        found = self.found()
        kept = pin(self.job.run(found.run.run), found.batch)
        return {"run": found.run.run, "checkpoint": found.batch, "pinned": True,
                "bytes": kept.bytes}  # fmt: skip

    def unpin(self) -> Mapping[str, Any]:
        found = self.found()
        was = unpin(self.job.run(found.run.run), found.batch)
        return {"run": found.run.run, "checkpoint": found.batch, "pinned": False, "was": was}
