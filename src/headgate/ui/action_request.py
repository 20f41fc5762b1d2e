"""ActionRequest: one action on one job, with its plan in sentences and the work that it does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from headgate.base.errors import HeadgateError
from headgate.base.secrets import redact
from headgate.home.layout import JobHome
from headgate.home.resume_hint import start_command
from headgate.runtime.crash import resume_text
from headgate.runtime.lease import is_live
from headgate.runtime.records import Recorder
from headgate.runtime.status import job_status
from headgate.snapshots.savepoints import check_label, create_savepoint, pin, unpin
from headgate.snapshots.snapshot import Snapshot, find_snapshot, is_newest
from headgate.ui.starts import can_start

ActionName: TypeAlias = Literal[
    "savepoint", "checkpoint", "stop", "cancel", "pin", "unpin", "verify", "restart"
]


@dataclass(frozen=True)
class ActionRequest:
    """An action with its arguments, and what it would do to the job as it is now."""

    job: JobHome
    action: ActionName
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
        """Whether the driver does it, and not this server."""
        if self.action == "savepoint":
            return self.live and self.snapshot in (None, "latest")
        return self.live and self.action in ("checkpoint", "stop", "cancel", "restart")

    @property
    def resumes(self) -> bool:
        """Whether it resumes where it was, with no snapshot chosen, as `headgate run` does."""
        return self.action == "restart" and self.snapshot is None

    def driver_args(self) -> dict[str, Any]:
        """The arguments that the driver gets."""
        if self.action == "restart":
            return {"from": self.snapshot} if self.snapshot else {}
        return {name: value for name, value in self.args().items() if name != "snapshot"}

    def found(self) -> Snapshot:
        return find_snapshot(self.job.home, self.snapshot or "latest", self.job.name)

    def refusal(self) -> str | None:
        """Why it cannot be done now."""
        if self.action in ("stop", "cancel", "checkpoint") and not self.live:
            return f"job '{self.job.name}' is not running, so nothing can do this"
        try:
            if self.label is not None:
                check_label(self.label)
                taken = self.job.files.exists(
                    f"{self.job.path}/savepoints/{self.label}/manifest.json"
                )
                if taken:
                    return f"job '{self.job.name}' already has a savepoint sp:{self.label}"
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
            "pin": f"Pin {self.snapshot or 'latest'} of {self.job.name}",
            "unpin": f"Unpin {self.snapshot or 'latest'} of {self.job.name}",
            "verify": f"Verify {self.snapshot or 'latest'} of {self.job.name}",
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
                f"A savepoint of {self.snapshot or at} is made; the job keeps running."
                if self.live
                else f"A savepoint of {self.snapshot or at} is made.",
                "It stays until someone deletes it.",
            ]
        if self.action == "checkpoint":
            return ["The job makes a checkpoint as soon as the running batch has ended."]
        if self.action == "stop":
            lines = ["The job finishes its batch; nothing is lost or written twice."]
            if self.drain:
                lines.insert(0, "The job reads everything in its sources and closes all windows.")
                lines.append("Event time ends: rows that come later are too late for windows.")
            lines.append(
                "The job makes a savepoint to start from again."
                if self.savepoint
                else "The job makes no savepoint; a later start resumes from its newest checkpoint."
            )
            return lines
        if self.action == "cancel":
            return [
                "The job stops at once, in the middle of its batch, without a savepoint.",
                f"A later start runs that batch again; the newest checkpoint is {at}.",
            ]
        if self.resumes:
            return [self._where_it_runs(), f"When it starts, {resume_text(self.job)}."]
        found = self.found()
        if self.action == "restart":
            return self._restart_lines(found)
        if self.action == "verify":
            return [f"The server reads and compares every file of {found.name}; nothing changes."]
        if self.action == "pin":
            return [f"Retention leaves {found.name} alone until it is unpinned."]
        return [f"Retention may delete {found.name} again."]

    def _where_it_runs(self) -> str:
        if self.live:
            return "The job stops with a savepoint and restarts in its own process."
        return "A new process on this server's machine runs the job's file."

    def _restart_lines(self, found: Snapshot) -> list[str]:
        lines = [self._where_it_runs()]
        if is_newest(self.job, found):
            lines.append(f"It starts from {found.name}, the newest checkpoint.")
        else:
            lines.append(
                f"A new run starts from {found.name} and reads everything after it again, "
                "so sinks get those rows a second time."
            )
        lines.append("Existing runs and snapshots stay as they are.")
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
        """The same as long as the job is as it was: its run, its driver, and the arguments."""
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
