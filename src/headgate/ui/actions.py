"""What can be done to a job through the web interface: first the plan, then the operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.base.errors import HeadgateError, RefusedError
from headgate.home.audit import write_audit
from headgate.home.operations import OperationRecord, Operations
from headgate.ui.action_request import ActionName, ActionRequest
from headgate.ui.background import BackgroundJobs
from headgate.ui.model import Model
from headgate.ui.model.operations import OperationView, operation_view
from headgate.ui.model.view import View
from headgate.ui.spark_process import SparkProcess
from headgate.ui.starts import start_job


@dataclass(frozen=True)
class Caller:
    """Who sent the request, for the audit."""

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
        self.background = BackgroundJobs()

    def plan(
        self,
        job: str,
        action: ActionName,
        *,
        snapshot: str | None = None,
        label: str | None = None,
        drain: bool = False,
        savepoint: bool = True,
    ) -> ActionPlan:
        """What an action would do now; it changes nothing."""
        found = self._model.job_home(job)
        request = ActionRequest(found, action, snapshot, label, drain, savepoint)
        return self._planned(request)

    def do(
        self,
        job: str,
        action: ActionName,
        caller: Caller,
        *,
        confirm: str | None = None,
        snapshot: str | None = None,
        label: str | None = None,
        drain: bool = False,
        savepoint: bool = True,
    ) -> OperationView:
        """Start it; returns the operation that does it."""
        found = self._model.job_home(job)
        request = ActionRequest(found, action, snapshot, label, drain, savepoint)
        facts = {"role": caller.role, "address": caller.address, "args": request.args()}
        try:
            plan = self._planned(request)
            if confirm is not None and confirm != plan.confirm:
                raise RefusedError(
                    "the job has changed since the plan was made", remedy="look at the new plan"
                )
            if plan.refusal is not None:
                raise RefusedError(plan.refusal, remedy=f"the command is: {plan.command}")
            record = self._begin(request)
        except HeadgateError as error:
            write_audit(found, action, refused=str(error), **facts)
            raise
        write_audit(found, action, operation=record.id, **facts)
        return operation_view(record)

    def _planned(self, request: ActionRequest) -> ActionPlan:
        refusal = request.refusal()
        return ActionPlan(
            request.job.name,
            request.action,
            request.title(),
            tuple(request.lines()) if refusal is None else (),
            request.command(),
            refusal is None,
            refusal,
            request.fingerprint(),
        )

    def _begin(self, request: ActionRequest) -> OperationRecord:
        job, name = request.job, request.job.name
        if request.for_the_driver:
            lease = job.read().lease
            driver = lease.owner.token if lease else None
            return Operations(job).request(request.action, request.driver_args(), driver=driver)
        work: dict[str, Callable[[], Mapping[str, Any]]] = {
            "savepoint": request.save,
            "pin": request.pin,
            "unpin": request.unpin,
            "verify": lambda: self._verify(request),
            "restart": lambda: start_job(job, request.snapshot),
        }
        return self.background.begin(name, request.action, request.args(), work[request.action])

    def _verify(self, request: ActionRequest) -> Mapping[str, Any]:
        """Read every file; those of a checkpoint without a manifest need Spark."""
        found = request.found()
        problems = [{"file": p.file, "problem": p.why} for p in found.problems()]
        files = len(found.manifest.files) if found.manifest else 0
        if not problems and found.manifest is None:
            query = {"work": "verify", "job": request.job.name, "snapshot": found.name}
            answer = self._spark.query(query)
            problems, files = answer["problems"], answer["files"]
        if problems:
            first = problems[0]
            raise HeadgateError(
                f"{found.name} cannot be used: {first['file']} {first['problem']}"
                + (f", and {len(problems) - 1} more" if len(problems) > 1 else ""),
                code="DAMAGED",
                remedy="start from another snapshot",
            )
        return {"snapshot": found.name, "ok": True, "files": files}

    def close(self) -> None:
        """Take nothing more."""
        self.background.close()
