"""A kind of step of one's own: the first row of each key passes, later ones go aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import Row

import headgate as hg


@dataclass
class Event:
    """What passes."""

    id: str
    value: int


class FirstOnly(hg.Process):
    """Remembers the keys that it has seen, for a while."""

    seen = hg.value_state(bool)
    forget = hg.timer("processing")
    duplicates = hg.side_output(Event)

    def __init__(self, within: timedelta) -> None:
        self.within = within

    def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[Event]:
        """The first row of a key passes."""
        event = Event(row.id, row.value)
        if self.seen.get():
            yield self.duplicates(event)
            return
        self.seen.set(True)
        self.forget.set(ctx.processing_time + self.within)
        yield event

    def on_forget(self, ctx: hg.Context) -> None:
        """The key may come again."""
        self.seen.clear()


class Dedupe(hg.StepKind):
    """`events.key_by("id").step("once", Dedupe(timedelta(hours=1)))`"""

    kind = "first_only"

    def __init__(self, within: timedelta) -> None:
        self.within = within

    def function(self) -> hg.Process:
        """Does the work."""
        return FirstOnly(self.within)

    def config(self) -> Mapping[str, Any]:
        """What decides whether state fits."""
        return {"within_seconds": self.within.total_seconds()}

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any]) -> hg.Fit:
        """Keys that were seen are forgotten as they were planned to be."""
        if old == new:
            return hg.Fit()
        was, now = old["within_seconds"], new["within_seconds"]
        return hg.Fit(note=f"keys seen so far are kept for {was:g} s, new ones for {now:g} s")
