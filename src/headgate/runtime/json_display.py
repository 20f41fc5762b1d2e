"""What a run says, as one JSON object a line: for the logs of a cluster."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

from headgate.base.errors import HeadgateError
from headgate.base.secrets import redact, redacted
from headgate.home.model import CheckpointRecord
from headgate.home.read.counts import behind, source_rows
from headgate.home.times import now, to_iso

_WARNING = "warning: "


class JsonDisplay:
    """Every line has at, level, job, run, batch, step and message; null where there is none."""

    def __init__(self, job: str, stream: TextIO | None = None) -> None:
        self._job = job
        self._stream = stream or sys.stderr
        self._run: str | None = None
        self._batch: int | None = None

    def say(self, text: str) -> None:
        """Write a line; one that begins with `warning:` is a warning."""
        level = "WARN" if text.startswith(_WARNING) else "INFO"
        self._write(level, text.removeprefix(_WARNING))

    def checkpoint(self, record: CheckpointRecord) -> None:
        """Write a line with the counts of a checkpoint, by step."""
        self._run, self._batch = record.run, record.id
        self._write(
            "INFO",
            f"checkpoint ck:{record.id}",
            records=source_rows(record),
            behind=behind(record),
            duration_ms=record.duration_ms,
            steps={step: dict(counts) for step, counts in record.rows.items()},
        )

    def error(self, error: HeadgateError) -> None:
        """Write why the job has failed, with the step if it is known."""
        self._write(
            "ERROR", str(error), step=error.step, code=error.code, remedy=error.remedy or None
        )

    def tick(self) -> None:
        """Lines are written when something happens."""

    def close(self) -> None:
        """Nothing is open."""

    def _write(self, level: str, message: str, *, step: str | None = None, **more: Any) -> None:
        line = {
            "at": to_iso(now()),
            "level": level,
            "job": self._job,
            "run": self._run,
            "batch": self._batch,
            "step": step,
            "message": redact(message),
            **redacted(more),
        }
        print(json.dumps(line, ensure_ascii=False, default=str), file=self._stream, flush=True)
