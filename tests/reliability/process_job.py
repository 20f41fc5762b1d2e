"""A job with a process function to be killed: what it gives depends on the order of rows."""

from __future__ import annotations

from dataclasses import dataclass

import headgate as hg

EVENT = "id BIGINT, user STRING, at BIGINT"
LAST = 3


@dataclass
class Event:
    id: int
    user: str
    half: int
    at: int


@dataclass
class Link:
    """The rows of a key that were seen until now, in one number; and some of them as they were."""

    user: str
    half: int
    id: int
    count: int
    chain: int
    last: list[int]


class Chain(hg.Process):
    """Adds row after row to a chain."""

    count = hg.value_state(int)
    chain = hg.value_state(int)
    seen = hg.list_state(int)
    sizes = hg.map_state(int, int)

    def on_events(self, event: Event, ctx: hg.Context) -> hg.Out[Link]:
        count, chain = (self.count.get() or 0) + 1, next_link(self.chain.get() or 0, event.id)
        self.count.set(count)
        self.chain.set(chain)
        self.seen.append(event.id)
        if len(self.seen) > LAST:
            last = list(self.seen)[1:]
            self.seen.clear()
            self.seen.extend(last)
        self.sizes[event.id % 4] = self.sizes.get(event.id % 4, 0) + 1
        yield Link(event.user, event.half, event.id, count, chain, list(self.seen))


def next_link(chain: int, id: int) -> int:
    return (chain * 31 + id + 1) % 1_000_000_007


@hg.job(
    "chains",
    checkpoints=hg.Checkpoints(every="500 milliseconds"),
    restart=hg.fixed_delay(attempts=5, delay="1 second"),
)
def chains(job: hg.Job) -> None:
    events = job.source("events", hg.topic(job.param("events"), schema=EVENT, max_records="3000"))
    # the events of a user are in both partitions: those of one half are in one, and in order
    halves = events.with_columns(half="id % 2").select("id", "user", "half", "at")
    links = job.process("chain", Chain(), events=halves.key_by("user", "half"))
    links.sink("links", hg.topic(job.param("links")))
