"""Watermarks for people: the job's, each source's, and why the job's stands still."""

from __future__ import annotations

from headgate.cli.tables import DASH, local_time
from headgate.home.model import CheckpointRecord


def watermark_lines(record: CheckpointRecord, *, indent: int) -> list[str]:
    """The watermarks of a checkpoint, the job's first; `indent` is how wide the titles are."""
    time = record.event_time
    if time is None:
        mark = record.watermark
        return [f"{'watermark':{indent}}{local_time(mark)}"] if mark else []
    reason = time.reason(local_time)
    lines = [f"{'watermark':{indent}}{local_time(time.next)}" + (f"   {reason}" if reason else "")]
    if len(time.sources) > 1:
        width = max(map(len, time.sources))
        for name, source in time.sources.items():
            at = local_time(source.watermark) if source.watermark else DASH
            said = source.text(local_time)
            lines.append(f"{'':{indent}}{name:{width}}  {at}" + (f"   {said}" if said else ""))
    if advice := time.advice(local_time):
        lines.append(f"{'':{indent}}{advice}")
    if time.ended:
        lines.append(
            f"{'':{indent}}rows that come now are too late: start with --fresh, or from a "
            "snapshot before the drain"
        )
    return lines
