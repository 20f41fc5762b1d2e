"""Bodies of requests that act on a job: strict, so an unknown field or a wrong type is 400."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from headgate.ui.rest import params
from headgate.ui.rest.params import LabelText, RunText, SnapshotText, text


class ActionBody(BaseModel):
    """What every action takes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    confirm: Annotated[str, text("[0-9a-f]{16}")] | None = Field(
        default=None, description="From the plan: refused if the job has changed since."
    )

    def given(self) -> dict[str, Any]:
        """The fields that the caller has set."""
        return self.model_dump(exclude_none=True)


class SavepointBody(ActionBody):
    """For a savepoint."""

    snapshot: SnapshotText | None = Field(default=None, description=params.SNAPSHOT)
    label: LabelText | None = Field(default=None, description=params.LABEL)


class StopBody(ActionBody):
    """For a stop."""

    label: LabelText | None = Field(default=None, description=params.LABEL)
    drain: bool | None = Field(default=None, description=params.DRAIN)
    savepoint: bool | None = Field(default=None, description=params.SAVEPOINT)


class RestartBody(ActionBody):
    """For a restart."""

    snapshot: SnapshotText | None = Field(default=None, description=params.SNAPSHOT)


class VerifyBody(ActionBody):
    """For reading every file of a checkpoint."""

    run: RunText | None = Field(default=None, description=params.RUN)


class PinBody(VerifyBody):
    """For keeping a checkpoint."""

    off: bool | None = Field(default=None, description="Let retention delete it again.")
