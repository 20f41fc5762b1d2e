"""``headgate topic``: make, fill, read and describe a topic at an address."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headgate.base.durations import parse_duration
from headgate.base.errors import NotFoundError, RefusedError, UsageError
from headgate.cli.common import HELP, Ui, command
from headgate.cli.options import ClientOption, parse_client_options
from headgate.cli.produce import Lines, Progress, key_of, read_lines, send
from headgate.cli.tables import number, table
from headgate.home.times import to_iso

if TYPE_CHECKING:
    from headgate.connectors.topic_client import (
        NewTopic,
        Place,
        TopicClient,
        TopicFacts,
        TopicRecord,
    )

Address = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="log:PATH, kafka://host:port/topic or pulsar://host:port/topic"
    ),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    topic = typer.Typer(no_args_is_help=True, context_settings=HELP, rich_markup_mode=None)
    command(topic, "create")(create)
    command(topic, "produce")(produce)
    command(topic, "read")(read)
    command(topic, "describe")(describe)
    app.add_typer(topic, name="topic", help="Create, fill, read and describe topics.")


def create(
    ui: Ui,
    address: Address,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", min=1, help="Number of partitions.")
    ] = 1,
    retention: Annotated[
        str | None,
        typer.Option(
            "--retention",
            metavar="infinite|TIME",
            help="How long a broker keeps records, such as 7d [default: infinite].",
        ),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Keep only the newest record per key (Kafka only).")
    ] = False,
    replication: Annotated[
        int | None,
        typer.Option(
            "--replication",
            metavar="N",
            min=1,
            help="Number of brokers that keep each record (Kafka only) "
            "[default: the broker's setting].",
        ),
    ] = None,
    option: ClientOption = None,
) -> None:
    """Create a topic; one that already exists is left as it is."""
    from headgate.connectors.topic_client import NewTopic, Retention

    topic = _open(address, option)
    kept = None
    if retention not in (None, "infinite"):
        kept = parse_duration(retention or "", what="--retention")
    wanted = NewTopic(partitions, Retention(kept, compact), replication)
    made = topic.create(wanted)
    if not made:
        _must_fit(address, topic.facts(), wanted, any_retention=retention is None and not compact)
    ui.say(
        f"created {address} with {partitions} partition{'s' * (partitions != 1)}"
        if made
        else f"{address} already exists"
    )
    ui.data({"address": address, "partitions": partitions, "created": made}, lambda: "")


def produce(
    ui: Ui,
    address: Address,
    file: Annotated[
        str,
        typer.Option(
            "--file", metavar="F|-", help="File with the lines to send; - is standard input."
        ),
    ] = "-",
    key: Annotated[
        str | None, typer.Option("--key", metavar="FIELD", help="The JSON field to use as the key.")
    ] = None,
    with_keys: Annotated[
        bool,
        typer.Option(
            "--with-keys", help="Lines are key, tab, value; an empty value deletes the key."
        ),
    ] = False,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="Send at most N records per second.")
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", metavar="N", help="Send all records to this partition."),
    ] = None,
    option: ClientOption = None,
) -> None:
    """Send one record per line."""
    if key is not None and with_keys:
        raise UsageError(
            "--key and --with-keys exclude each other", remedy="leave one of the two out"
        )
    if rate is not None and rate <= 0:
        raise UsageError(
            "--rate must be greater than zero", got=str(rate), remedy="leave it out for no limit"
        )
    topic = _existing(address, option)
    if partition is not None and not 0 <= partition < (count := topic.partitions()):
        raise UsageError(
            f"{address} has no partition {partition}",
            expected=f"0 to {count - 1}",
            remedy="choose one of its partitions, or leave --partition out",
        )
    source = Path(file)
    if file != "-" and (source.is_dir() or not source.exists()):
        raise NotFoundError(
            f"there is no file {file}", remedy="check the path, or use - for standard input"
        )
    size = source.stat().st_size if file != "-" and source.is_file() else None
    with Progress(ui, total=size) as progress:
        lines = Lines(key_of(field=key, with_keys=with_keys))
        sent = send(
            read_lines(source if file != "-" else None),
            lines,
            append=lambda records: topic.append(records, partition=partition),
            rate=rate,
            progress=progress,
        )
    skipped = f" ({lines.blank:,} blank lines left out)" if lines.blank else ""
    ui.say(f"produced {sent:,} record{'s' * (sent != 1)} to {address}{skipped}")
    ui.data({"address": address, "records": sent, "blank": lines.blank}, lambda: "")


def read(
    ui: Ui,
    address: Address,
    start: Annotated[
        str, typer.Option("--from", metavar="WHERE", help="earliest, latest or an ISO time.")
    ] = "earliest",
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for more records at the end.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help="Stop after N records.")
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="Print key, tab, value on each line.")
    ] = False,
    committed: Annotated[
        bool,
        typer.Option(
            "--committed/--uncommitted",
            help="Leave out or include records of open and aborted transactions (Kafka only).",
        ),
    ] = True,
    option: ClientOption = None,
) -> None:
    """Print one record per line, up to the end of the topic unless --follow."""
    place = _place(start)
    topic = _existing(address, option)
    if limit == 0:
        return
    printed = 0
    with closing(topic.read(place, committed=committed, follow=follow)) as records:
        for record in records:
            if record is None:
                sys.stdout.flush()  # it waits: what came so far is to be seen
                continue
            _print(ui, record, keys=keys)
            printed += 1
            if printed == limit:
                break


def describe(ui: Ui, address: Address, option: ClientOption = None) -> None:
    """Show a topic's partitions and their contents."""
    facts = _existing(address, option).facts()
    parts = [asdict(part) for part in facts.partitions]
    counted = "entries" if parts and "entries" in parts[0] else "records"
    total = sum(part[counted] for part in parts)
    retention = facts.retention

    def text() -> str:
        head = [name.replace("_", " ").upper() for name in parts[0]] if parts else []
        rows = [[str(part.pop("partition")), *map(_cell, part.values())] for part in parts]
        kept = retention.words() if retention else "retention not to be seen"
        return (
            f"{address}   {len(rows)} partition{'s' * (len(rows) != 1)}   {total:,} {counted}   "
            f"{kept}\n"
            f"{table(head, rows, right=head)}"
        )

    fields: dict[str, object] = {
        "address": address,
        "partitions": parts,
        counted: total,
        "retention": str(retention) if retention else None,
    }
    if facts.replication is not None:
        fields |= {"replication": facts.replication, "leaders": facts.leaders}
    ui.data(fields, text)


def _cell(value: int | str | None) -> str:
    return number(value) if isinstance(value, int) else value or "-"


def _open(address: str, options: list[str] | None) -> TopicClient:
    from headgate.connectors.topics import open_topic

    return open_topic(address, parse_client_options(options))


def _existing(address: str, options: list[str] | None) -> TopicClient:
    from headgate.connectors.topics import missing_topic

    topic = _open(address, options)
    if not topic.exists():
        raise NotFoundError(
            f"there is no topic at {address}",
            remedy=missing_topic(address, parse_client_options(options)),
        )
    return topic


def _must_fit(address: str, facts: TopicFacts, wanted: NewTopic, *, any_retention: bool) -> None:
    """Refuse a topic that exists but does not match the options."""
    count = len(facts.partitions)
    expected = got = remedy = ""
    if count != wanted.partitions:
        expected, got = f"{wanted.partitions} partitions", str(count)
        remedy = f"pass --partitions {count}, or choose another address"
    elif wanted.replication not in (None, facts.replication):
        expected, got = f"replication {wanted.replication}", str(facts.replication)
        remedy = "leave out --replication, or choose another address"
    elif not any_retention and facts.retention not in (None, wanted.retention):
        expected, got = f"retention {wanted.retention}", str(facts.retention)
        remedy = "leave out --retention and --compact, or choose another address"
    if remedy:
        raise RefusedError(
            f"the topic {address} already exists", expected=expected, got=got, remedy=remedy
        )


def _place(start: str) -> Place:
    if start in ("earliest", "latest"):
        return cast("Place", start)
    try:
        when = datetime.fromisoformat(start)
    except ValueError:
        raise UsageError(
            "--from must be earliest, latest or a time such as 2026-01-31T12:00:00Z",
            got=repr(start),
            remedy="for instance --from earliest",
        ) from None
    return when if when.tzinfo else when.astimezone()


def _print(ui: Ui, record: TopicRecord, *, keys: bool) -> None:
    if ui.json:
        fields: dict[str, object] = {
            "version": 1,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": _time(record.timestamp_ms),
            "key": record.key,
            "value": record.value,
        }
        if record.headers:
            fields["headers"] = _headers(record)
        print(json.dumps(fields, ensure_ascii=False))
    elif keys:
        print(f"{record.key if record.key is not None else ''}\t{record.value or ''}")
    else:
        print(record.value or "")


def _time(millis: int | None) -> str | None:
    if millis is None:
        return None
    try:
        return to_iso(datetime.fromtimestamp(millis / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return None  # a producer may write any number, also one that is no time


def _headers(record: TopicRecord) -> dict[str, object]:
    """Headers by name; a name that is there more than once has the list of its values."""
    found: dict[str, list[str | None]] = {}
    for name, value in record.headers:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}
