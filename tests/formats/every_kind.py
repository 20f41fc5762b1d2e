"""A job with every kind of step. Homes in tests/fixtures were written by it: it must not change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

import headgate as hg

ORDER = "id BIGINT, user BIGINT, price BIGINT, at TIMESTAMP"
USER = "id BIGINT, name STRING"


@dataclass
class Settled:
    """What `Settle` gives."""

    user: int
    orders: int
    sum: int


@dataclass
class Last:
    """What `Settle` keeps of an order."""

    id: int
    price: int
    note: str | None = None


class Settle(hg.Process):
    """Counts the orders of a user, and forgets them an hour after the last."""

    seen = hg.value_state(int)
    last = hg.value_state(Last)
    prices = hg.list_state(int)
    by_price = hg.map_state(int, str, ttl="30 days")
    idle = hg.timer()

    def on_orders(self, row: Row, ctx: hg.Context) -> hg.Out[Settled]:
        """One order."""
        self.seen.set((self.seen.get() or 0) + 1)
        self.last.set(Last(row.id, row.price))
        self.prices.append(row.price)
        self.by_price[row.price] = f"order {row.id}"
        if ctx.timestamp is not None:
            self.idle.set(ctx.timestamp + timedelta(hours=1))
        yield Settled(row.user, self.seen.get() or 0, sum(self.prices))

    def on_idle(self, ctx: hg.Context) -> Iterator[Settled]:
        """Nothing came for an hour."""
        self.seen.clear()
        self.prices.clear()
        yield Settled(ctx.key.user, 0, 0)


def doubled(df: DataFrame) -> DataFrame:
    """A transform."""
    return df.withColumn("twice", F.col("price") * 2)


@hg.job("every_kind")
def every_kind(job: hg.Job) -> None:
    """Every kind of step that there was."""
    orders = job.source(
        "orders", hg.topic("log:orders", schema=ORDER), malformed="side",
        event_time=hg.event_time("at", out_of_orderness="5 seconds", idle_after="1 hour"),
    )  # fmt: skip
    users = job.table(
        "users", hg.topic("log:users", schema=USER), key="id", delete_when="name = 'gone'"
    )
    named = orders.lookup("by_user", users, on="user", into="who", missing="side")
    waiting = named.missing.lookup(
        "by_user_later", users, on="user", take=["name"], missing=hg.Wait("1 day")
    )
    known = named.select("id", "user", "price", "at", "who.name AS name")
    every = known.union(waiting.select("id", "user", "price", "at", "name"))
    every.where("price > 0").with_columns(cents="price * 100").drop("at").transform(
        "doubled", doubled
    ).sink("named", hg.topic("log:named", key="id"))
    keyed = orders.key_by("user")
    tens = keyed.window(
        "tens", hg.tumbling("10 minutes", offset="1 minute"), F.sum("price").alias("sum"),
        F.count("*").alias("n"), early=[hg.every("2 minutes"), hg.after_count(3)],
        allowed_lateness="10 minutes",
    )  # fmt: skip
    tens.sink("tens_out", hg.topic("log:tens"))
    tens.late.sink("late", hg.topic("log:late"))
    keyed.window(
        "slides", hg.sliding("10 minutes", every="5 minutes"), F.max("price").alias("most"),
        early=hg.when("most > 50"), panes="discarding",
    ).sink("slides_out", hg.topic("log:slides"))  # fmt: skip
    keyed.window(
        "visits", hg.session("30 minutes"), F.count("*").alias("n"),
    ).sink("visits_out", hg.topic("log:visits"))  # fmt: skip
    orders.key_by("upper(CAST(user AS STRING)) AS who").window(
        "threes", hg.count_window(3, every=2), F.sum("price").alias("sum")
    ).sink("threes_out", hg.topic("log:threes"))
    job.process("settle", Settle(), orders=keyed).sink("settled", hg.FilesSink("settled", "json"))
    orders.malformed.sink("malformed", hg.topic("log:malformed"))
