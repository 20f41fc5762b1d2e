"""A job with a join, dedupe, a running aggregate, a top and a top of windows, to be killed."""

from __future__ import annotations

from pyspark.sql import functions as F

import headgate as hg

ORDER = "id BIGINT, user STRING, price BIGINT, at BIGINT"
PAYMENT = "order BIGINT, amount BIGINT, at BIGINT"


@hg.job("joins", checkpoints=hg.Checkpoints(every="200 milliseconds"))
def joins(job: hg.Job) -> None:
    # a batch is a tenth of what is there
    at = hg.event_time("timestamp_millis(at)", out_of_orderness="2 minutes")
    orders, payments = (
        job.source(name, hg.topic(job.param(name), schema=schema, max_records="500"), event_time=at)
        for name, schema in (("orders", ORDER), ("payments", PAYMENT))
    )
    paid = orders.key_by("id").join(
        "paid",
        payments.key_by("order"),
        within=hg.between("0 seconds", "1 minute"),
        take=["amount"],
        left_unmatched="null",
    )
    paid.sink("paid_out", hg.topic(job.param("paid_out")))
    first = orders.key_by("user", "price").dedupe("first")
    first.sink("first_out", hg.topic(job.param("first_out")))
    first.duplicates.sink("again_out", hg.topic(job.param("again_out")))
    totals = orders.key_by("user").aggregate(
        "totals", F.sum("price").alias("total"), F.count("*").alias("n"), having="total % 3 > 0"
    )
    totals.sink("totals_out", hg.topic(job.param("totals_out"), key="user"))
    best = orders.key_by("user").top("best", 3, by=[F.desc("price"), "id"])
    best.sink("best_out", hg.topic(job.param("best_out"), key="to_json(struct(user, rank))"))
    soon = orders.key_by("user").top(
        "soon", 2, by=[F.desc("price"), "id"], within=hg.sliding("10 minutes", every="5 minutes")
    )
    soon.sink("soon_out", hg.topic(job.param("soon_out")))
    soon.late.sink("late_out", hg.topic(job.param("late_out")))
