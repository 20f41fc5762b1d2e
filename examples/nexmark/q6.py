"""Average selling price by seller: of the last ten winning bids before each one, and itself.

Flink's SQL cannot run this query: rows of its OVER must come in order and never change. A process
function keeps the best bid of each auction, and counts it in when its time is so far past that
every earlier winner is known.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from nexmark import out
from winning import bids_in_time

import headgate as hg

LONGEST = timedelta(minutes=10)


@dataclass
class Bid:
    """A bid with its auction's id and seller."""

    seller: int
    id: int
    price: int
    dateTime: datetime
    bidder: int
    extra: str

    @property
    def order(self) -> tuple[int, datetime, int, str]:
        """The best comes first."""
        return -self.price, self.dateTime, self.bidder, self.extra


@dataclass
class Average:
    """The average of a seller's last prices."""

    seller: int
    avg_price: int


class LastPrices(hg.Process):
    """Winning bids of a seller in the order of their time."""

    best = hg.map_state(int, Bid)
    last = hg.value_state(list[int])
    known = hg.timer("event")

    def on_bids(self, bid: Bid, ctx: hg.Context) -> hg.Out[Average]:
        """Keep the best bid of each auction."""
        before = self.best.get(bid.id)
        if before is None or bid.order < before.order:
            self.best[bid.id] = bid
        self.wait()
        yield from ()

    def on_known(self, ctx: hg.Context) -> hg.Out[Average]:
        """Auctions that were open at these bids have ended: nothing earlier can win any more."""
        last = self.last.get() or []
        ended = [bid for bid in self.best.values() if bid.dateTime + LONGEST <= ctx.watermark]
        for bid in sorted(ended, key=lambda bid: (bid.dateTime, bid.id)):
            last = [*last[-10:], bid.price]
            yield Average(bid.seller, sum(last) // len(last))
            del self.best[bid.id]
        self.last.set(last)
        self.wait()

    def wait(self) -> None:
        """Wait for the end of the auctions that may still be open."""
        if len(self.best):
            self.known.set(min(bid.dateTime for bid in self.best.values()) + LONGEST)


@hg.job("nexmark_q6")
def q6(job: hg.Job) -> None:
    """A join in time, then a process function."""
    bids = bids_in_time(job).select(
        "seller", "id", "bid.price", "bid.dateTime", "bid.bidder", "bid.extra"
    )
    averages = job.process("last_prices", LastPrices(), bids=bids.key_by("seller"))
    averages.sink("out", out(job))
