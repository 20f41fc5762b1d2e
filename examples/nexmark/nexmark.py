"""The auction house's streams and tables, as all queries read them, and where results go."""

from __future__ import annotations

import headgate as hg

PERSON = """id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING,
    state STRING, dateTime TIMESTAMP, extra STRING"""
AUCTION = """id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,
    dateTime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"""
BID = """auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    dateTime TIMESTAMP, extra STRING"""

LONGEST_AUCTION = "10 minutes"
"""From an auction's dateTime to when it expires."""

_PERCENT = {"persons": 2, "auctions": 6, "bids": 92}


def persons(job: hg.Job) -> hg.Stream:
    """People who have signed up."""
    return _source(job, "persons", PERSON)


def auctions(job: hg.Job) -> hg.Stream:
    """Auctions that were opened."""
    return _source(job, "auctions", AUCTION)


def bids(job: hg.Job) -> hg.Stream:
    """Bids for auctions."""
    return _source(job, "bids", BID)


def persons_table(job: hg.Job) -> hg.Table:
    """People by their id."""
    return job.table("persons", _topic(job, "persons", PERSON), key="id")


def auctions_table(job: hg.Job) -> hg.Table:
    """Auctions by their id."""
    return job.table("auctions", _topic(job, "auctions", AUCTION), key="id")


def side_input(job: hg.Job) -> hg.Table:
    """A small table that does not change."""
    address = job.param("side_input", "log:data/nexmark/side_input")
    return job.table("side_input", hg.topic(address, schema="key BIGINT, value STRING"), key="key")


def out(job: hg.Job, key: str | None = None) -> hg.Sink:
    """Where the query's rows go; rows of changes need their key."""
    return hg.topic(job.param("out", "log:data/nexmark/out"), key=key)


def _source(job: hg.Job, name: str, schema: str) -> hg.Stream:
    disorder = job.param("out_of_orderness", "1 minute")
    at = hg.event_time("dateTime", out_of_orderness=disorder)
    return job.source(name, _topic(job, name, schema), event_time=at)


def _topic(job: hg.Job, name: str, schema: str) -> hg.Topic:
    address = job.param(name, f"log:data/nexmark/{name}")
    # of a batch each topic has its share, so that the three go forward side by side
    most = max(2, int(job.param("batch", "200000")) * _PERCENT[name] // 100)
    return hg.topic(address, schema=schema, max_records=str(most))
