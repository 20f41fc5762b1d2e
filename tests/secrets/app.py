"""A job with secrets: one that it marks, one known by its name, and one in an address."""

from __future__ import annotations

import json
from pathlib import Path

from headgate.connectors.log.files import Record, TopicFiles

PASSWORD, ROTATED, TOKEN, ADDRESS = "Tr0ub4dor-pw", "N3xt/m0nth pw", "tok-5f2e81c0", "jdbc-Pw.9x"
SECRETS = (PASSWORD, ROTATED, "N3xt%2Fm0nth", TOKEN, ADDRESS)
STORE = f"postgresql://reader:{ADDRESS}@db:5432/shop"
APP = """
import headgate as hg
from pyspark.sql import functions as F
from urllib.parse import quote

@hg.job("keep", checkpoints=hg.Checkpoints(every="200 milliseconds"))
def keep(job: hg.Job) -> None:
    login, token, store = job.secret("db_login"), job.param("api_token"), job.param("store")

    @F.udf("string")
    def fetch(n):
        if n == 13:
            raise ValueError(f"cannot log in to {store} as {login}, ?login={quote(login, safe='')}"
                             f" or with {token}")
        return str(n)

    orders = job.source("orders", hg.topic("log:ORDERS", schema="n BIGINT"))
    signed = orders.with_columns(sign=F.sha2(F.concat(F.col("n"), F.lit(login)), 256))
    fetched = signed.transform("fetched", lambda df: df.withColumn("n", fetch("n")))
    fetched.select("n", "sign").sink("out", hg.topic("log:OUT"))
"""


def write_app(folder: Path) -> Path:
    """The job's file; topics are beside it."""
    text = APP.replace("ORDERS", str(folder / "orders")).replace("OUT", str(folder / "out"))
    (folder / "app.py").write_text(text)
    return folder / "app.py"


def produce(folder: Path, *numbers: int) -> None:
    """Orders; 13 is the one that fails, with all secrets in its message."""
    topic = TopicFiles(folder / "orders")
    if not topic.exists():
        topic.create(1)
    topic.append([Record(json.dumps({"n": n})) for n in numbers])


def written(folder: Path) -> list[str]:
    """The numbers that came out."""
    return [json.loads(r.value or "{}")["n"] for r in TopicFiles(folder / "out").read({0: 0})]


def leaks(home: Path) -> list[str]:
    """Files of the home with a secret in them."""
    return [
        f"{file.relative_to(home)}: {secret}"
        for file in sorted(home.rglob("*"))
        if file.is_file()
        for secret in SECRETS
        if secret.encode() in file.read_bytes()
    ]
