"""A batch's timeline as SVG text: its phases, and the stages of its steps below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from markupsafe import Markup, escape

from headgate.ui.model.checkpoint_detail import StageView
from headgate.ui.pages.words import duration, short

_WIDTH, _LEFT, _RIGHT = 900, 210, 70
_ROW, _BAR, _TOP, _BOTTOM = 22, 14, 4, 22
_NAME_LENGTH = 32
_EXECUTION = "execution"
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Bar:
    """A stretch of the batch, in milliseconds after its trigger."""

    name: str
    began: float
    took: float
    kind: str
    title: str


def timeline(
    took: timedelta | None, phases: Mapping[str, int], stages: Sequence[StageView]
) -> Markup:
    """The picture; empty if the batch has no phases.

    >>> stage = StageView(("orders",), 20 * _MS, 60 * _MS, 2, 70 * _MS, 50 * _MS)
    >>> svg = timeline(100 * _MS, {"sources": 10, "execution": 80, "commit": 10}, [stage])
    >>> svg.count("<rect"), "orders: from 20 ms, 60 ms, 2 tasks" in svg
    (4, True)
    """
    bars = [*_phases(phases, stages), *map(_stage, stages)]
    whole = max([took / _MS if took else 0, *(bar.began + bar.took for bar in bars)], default=0)
    if not bars or whole <= 0:
        return Markup("")
    room = _WIDTH - _LEFT - _RIGHT
    height = _TOP + _ROW * len(bars) + _BOTTOM
    parts = [
        f'<svg class="timeline" role="img" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg">',
        f"<title>Timeline of the batch, {escape(duration(whole))}; the table of stages "
        "says the same.</title>",
    ]
    for quarter in range(5):
        x = _LEFT + room * quarter / 4
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - _BOTTOM + 4}"/>'
            f'<text class="tick" x="{x:.1f}" y="{height - 5}">'
            f"{escape(duration(whole * quarter / 4))}</text>"
        )
    for row, bar in enumerate(bars):
        parts.append(_drawn(bar, _TOP + _ROW * row, room / whole))
    return Markup("".join([*parts, "</svg>"]))


def _drawn(bar: Bar, top: float, scale: float) -> str:
    x, width = _LEFT + bar.began * scale, max(1.5, bar.took * scale)
    return (
        f'<g class="{bar.kind}"><title>{escape(bar.title)}</title>'
        f'<text class="name" x="{_LEFT - 8}" y="{top + 12}">'
        f"{escape(short(bar.name, _NAME_LENGTH))}</text>"
        f'<rect x="{x:.1f}" y="{top + 1}" width="{width:.1f}" height="{_BAR}" rx="2"/>'
        f'<text class="took" x="{x + width + 5:.1f}" y="{top + 12}">'
        f"{escape(duration(bar.took))}</text></g>"
    )


def _stage(stage: StageView) -> Bar:
    name = ", ".join(stage.steps) or "no step of the job"
    began, took = stage.began / _MS, stage.took / _MS
    tasks = "1 task" if stage.tasks == 1 else f"{stage.tasks:,} tasks"
    title = f"{name}: from {duration(began)}, {duration(took)}, {tasks}"
    return Bar(name, began, took, "stage", title)


def _phases(phases: Mapping[str, int], stages: Sequence[StageView]) -> list[Bar]:
    """Phases one behind another. Their lengths are exact; stages say where execution begins."""
    found, at = [], 0.0
    for name, ms in phases.items():
        if name == _EXECUTION and stages:
            last = max((stage.began + stage.took) / _MS for stage in stages)
            at = max(at, min(last - ms, min(stage.began / _MS for stage in stages)))
        found.append(Bar(name, at, ms, "phase", f"{name}: {duration(ms)}"))
        at += ms
    return found
