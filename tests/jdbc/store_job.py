"""The store into tables of PostgreSQL and of lakes, and into what a function writes."""

from pyspark.sql import DataFrame

import headgate as hg
from examples.store.store import ITEM, ORDER, USER
from tests.lakes.lake_job import iceberg


@hg.job(
    "store",
    checkpoints=hg.Checkpoints(every="1 second"),
    restart=hg.fixed_delay(attempts=50, delay="500 milliseconds"),
)
def store(job: hg.Job) -> None:
    orders = job.source(
        "orders", hg.topic(job.param("orders"), schema=ORDER, max_records="2000"), malformed="side"
    )
    users = job.table("users", hg.topic(job.param("users"), schema=USER), key="id")
    items = job.table("items", hg.topic(job.param("items"), schema=ITEM), key="id")

    with_user = orders.lookup("users_lookup", users, on="userId", into="user", missing="side")
    with_item = with_user.lookup("items_lookup", items, on="itemId", into="item", missing="side")
    enriched = with_item.select("invoiceId", "lineItemId", "user", "item", "createdAt", "paidAt")

    url, out = job.param("url"), job.param("out")
    login = {"user": job.param("user"), "password": job.secret("password")}

    def table(name: str) -> hg.Sink:
        return hg.JdbcSink(url, name, create=True, options=login)

    def append(rows: DataFrame, batch: hg.Batch) -> None:
        rows.write.mode("overwrite").json(f"{out}/{batch.token}")

    enriched.sink("enriched", table("enriched"))
    enriched.sink("enriched_files", hg.ForeachBatchSink(append, exactly_once=True))
    enriched.sink("enriched_delta", hg.DeltaSink(f"{out}-lake"))
    enriched.sink("enriched_iceberg", iceberg(f"{out}-iceberg", "enriched"))
    with_user.missing.sink("missing_users", table("missing_users"))
    with_item.missing.sink("missing_items", table("missing_items"))
    orders.malformed.sink("malformed", table("malformed"))
