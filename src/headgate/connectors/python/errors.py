"""What a sink of the user's own raised, as a line that is found again in what Spark says."""

from __future__ import annotations

from headgate.connectors.python.batch import Batch
from headgate.failures.user_code import all_frames, line_of, said, user_frames

_LONGEST = 500


class UserCodeError(Exception):
    """A function or method of the user's raised; its text is the line that the driver reads."""

    def __init__(
        self, step: str, name: str, batch: Batch, error: BaseException, partition: int | None = None
    ) -> None:
        frames = user_frames(error) or all_frames(error)
        place = f" at {frames[-1]}" if frames else ""
        of = f"batch {batch.number}"
        about = of if partition is None else f"partition {partition} of {of}"
        words = said(error)
        words = words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."
        super().__init__(
            line_of(step, f"{name} failed{place} with {words}, for {about}", error, frames)
        )
