"""Two small jobs for tests of the web interface: one that works, and one that fails."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import headgate as hg

ORDER = "n BIGINT, user BIGINT, at BIGINT, note STRING"


@hg.job("shop", checkpoints=hg.Checkpoints(every="200 ms", retain=5))
def shop(job: hg.Job) -> None:
    """Orders with the names of their users, the even ones apart from the odd ones."""
    data, out = job.param("data"), job.param("out")
    job.param("api_token", "none")
    orders = job.source(
        "orders",
        hg.topic(f"log:{data}/orders", schema=ORDER),
        event_time=hg.event_time("timestamp_millis(at)", out_of_orderness="5 seconds"),
        malformed="side",
    )
    users = job.table(
        "users", hg.topic(f"log:{data}/users", schema="id BIGINT, name STRING"), key="id"
    )
    found = orders.lookup("users_lookup", users, on="user", into="who", missing="side")
    even = found.where("n % 2 = 0").select("n", "who.name AS name", "note")
    even.sink("even", hg.topic(f"log:{out}/even"))
    found.where("n % 2 = 1").select("n", "note").sink("odd", hg.topic(f"log:{out}/odd"))
    found.missing.sink("missing_users", hg.topic(f"log:{out}/missing_users"))
    orders.malformed.sink("malformed", hg.topic(f"log:{out}/malformed"))


def refuse_sevens(n: int) -> int:
    """Fail on purpose, in a line that a person can find again."""
    if n == 7:
        raise ValueError("sevens are not welcome <b>here</b>")
    return n


def checked(rows: DataFrame) -> DataFrame:
    """Let each number through a Python function."""
    return rows.withColumn("n", F.udf(refuse_sevens, "bigint")("n"))


@hg.job("failing", restart=hg.fixed_delay(attempts=3, delay="100 ms"))
def failing(job: hg.Job) -> None:
    """Fails on the order with number 7."""
    orders = job.source("orders", hg.topic(f"log:{job.param('data')}/orders", schema=ORDER))
    orders.transform("checked", checked).sink("out", hg.topic(f"log:{job.param('out')}/out"))
