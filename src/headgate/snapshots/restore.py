"""A new run's Spark folder from a snapshot: files linked, steps and sources mapped by name."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from headgate.home.layout import RunHome
from headgate.snapshots.closure import Closure
from headgate.snapshots.layouts import Layout
from headgate.snapshots.snapshot import Snapshot
from headgate.snapshots.spark_log import OffsetEntry
from headgate.snapshots.upgrade import UpgradePlan, layouts_of

_PARTITIONS = "spark.sql.shuffle.partitions"


class Rewrite(Protocol):
    """Writes the state of a step anew: other columns, other partitions, or empty."""

    def __call__(
        self,
        *,
        source: str | None,
        source_version: int,
        source_ids: Sequence[Sequence[str]],
        operator_id: int,
        old: Sequence[Layout] | None,
        new: Sequence[Layout],
        target: str,
        target_version: int,
        partitions: int,
        step: str,
        drops: bool,
        lost: Callable[[int], object],
    ) -> Sequence[Sequence[str]]:
        """Give the new state's unique ids: partition, then store."""


def restore(
    snapshot: Snapshot,
    run: RunHome,
    graph: Mapping[str, Any],
    plan: UpgradePlan,
    *,
    parallelism: int,
    rewrite: Rewrite,
    lines: Mapping[str, str],
    drops: bool = False,
) -> dict[str, int]:
    """Make the Spark folder of a run that goes on from a snapshot; the snapshot is not changed.

    With `drops`, state of keys that have become one goes where it cannot be merged. Gives by step
    how many rows less it has for that.

    1. State that fits is linked, under the same operator; other state is written anew.
    2. Source folders are linked under the new place of each source.
    3. ``offsets`` N-1 and N get their lines in the new order, and the new parallelism; in N, where
       the run goes on, ``lines`` replace those of sources that begin elsewhere.
    4. ``commits/N`` names the new state. The query has an id of its own.
    """
    found = snapshot.closure()
    ids: dict[int, Sequence[Sequence[str]]] = {}
    fewer: dict[str, int] = {}
    old_steps = {str(step["id"]): step for step in snapshot.graph["steps"]}
    for step in graph["steps"]:
        if not step["stateful"]:
            continue
        operator = int(step["operator_id"])
        held = found.commit.state_ids.get(operator) if step["id"] in old_steps else None
        if held is not None and step["id"] not in plan.rewrites:
            _link(snapshot, run, found.state[operator])
            ids[operator] = held
            continue
        known = layouts_of(old_steps[step["id"]]) if held is not None else None
        ids[operator] = rewrite(
            source=snapshot.location if held is not None else None,
            source_version=found.version,
            source_ids=held or (),
            operator_id=operator,
            old=known,
            new=layouts_of(step),
            target=run.spark,
            target_version=found.version,
            partitions=parallelism,
            step=str(step["id"]),
            drops=drops,
            lost=functools.partial(fewer.__setitem__, str(step["id"])),
        )
    old_sources = [str(name) for name in snapshot.graph["sources"]]
    new_sources = [str(name) for name in graph["sources"]]
    _link_sources(snapshot, run, found, old_sources, new_sources)
    files, target = run.files, run.spark_path
    for number, entry in ((found.batch, found.offsets), (found.batch - 1, found.before)):
        if entry is not None:
            moved = entry.reordered(old_sources, new_sources)
            if number == found.batch:
                moved = moved.with_lines(new_sources, lines)
            text = _with_parallelism(moved, parallelism).to_text()
            files.write_text(f"{target}/offsets/{number}", text)
    files.write_text(f"{target}/metadata", json.dumps({"id": str(uuid.uuid4())}))
    # last: a folder without its commit is not a checkpoint
    files.write_text(f"{target}/commits/{found.batch}", found.commit.with_state_ids(ids))
    return fewer


def _link(snapshot: Snapshot, run: RunHome, paths: Sequence[str]) -> None:
    for path in paths:
        run.files.receive(snapshot.files, f"{snapshot.folder}/{path}", f"{run.spark_path}/{path}")


def _link_sources(
    snapshot: Snapshot, run: RunHome, found: Closure, old: Sequence[str], new: Sequence[str]
) -> None:
    places: dict[str, int] = {}
    for place, name in enumerate(old):
        places.setdefault(name, place)
    for place, name in enumerate(new):
        if name not in places:
            continue
        was = f"sources/{places[name]}/"
        for path in found.sources:
            if path.startswith(was):
                run.files.receive(
                    snapshot.files,
                    f"{snapshot.folder}/{path}",
                    f"{run.spark_path}/sources/{place}/{path.removeprefix(was)}",
                )


def _with_parallelism(entry: OffsetEntry, parallelism: int) -> OffsetEntry:
    conf = {**(entry.metadata.get("conf") or {}), _PARTITIONS: str(parallelism)}
    return replace(entry, metadata={**entry.metadata, "conf": conf})
