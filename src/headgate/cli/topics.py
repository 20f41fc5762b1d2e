"""``headgate topic``: make, fill, read and describe a topic at an address."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.common import HELP, Ui, command
from headgate.cli.produce import Lines, Progress, key_of, read_lines, send
from headgate.cli.tables import number, table
from headgate.errors import NotFoundError, RefusedError, UsageError
from headgate.snapshots.model import to_iso

if TYPE_CHECKING:
    from headgate.connectors.log_files import LogRecord, TopicFiles

_FOLLOW_SECONDS = 0.2

Address = Annotated[
    str,
    typer.Argument(metavar="ADDRESS", help="log:PATH, kafka://host:port/topic or pulsar://..."),
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    topic = typer.Typer(no_args_is_help=True, context_settings=HELP, rich_markup_mode=None)
    command(topic, "create")(create)
    command(topic, "produce")(produce)
    command(topic, "read")(read)
    command(topic, "describe")(describe)
    app.add_typer(topic, name="topic", help="Make, fill, read and describe topics.")


def create(
    ui: Ui,
    address: Address,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", min=1, help="How many partitions.")
    ] = 1,
    retention: Annotated[
        str, typer.Option("--retention", help="infinite, or how long a broker keeps records.")
    ] = "infinite",
    compact: Annotated[
        bool, typer.Option("--compact", help="Let a broker keep only the newest of each key.")
    ] = False,
) -> None:
    """Make a topic; one that is there already is left as it is."""
    files = _open(address)
    if retention != "infinite" or compact:
        raise UsageError(
            "a log topic keeps every record",
            remedy="leave out --retention and --compact, which are for brokers",
        )
    made = not files.exists()
    if made:
        files.create(partitions)
    elif files.partitions() != partitions:
        raise RefusedError(
            f"the topic {address} is there already",
            expected=f"{partitions} partitions",
            got=str(files.partitions()),
            remedy=f"say --partitions {files.partitions()}, or choose another address",
        )
    ui.say(
        f"created {address} with {partitions} partition{'s' * (partitions != 1)}"
        if made
        else f"{address} is there already"
    )
    ui.data({"address": address, "partitions": partitions, "created": made}, lambda: "")


def produce(
    ui: Ui,
    address: Address,
    file: Annotated[
        str, typer.Option("--file", metavar="F|-", help="Lines to send; - is standard input.")
    ] = "-",
    key: Annotated[
        str | None, typer.Option("--key", metavar="FIELD", help="The JSON field that is the key.")
    ] = None,
    with_keys: Annotated[
        bool,
        typer.Option("--with-keys", help="Lines are key, tab, value; an empty value deletes."),
    ] = False,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="At most N records a second.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", metavar="N", help="Send all to this partition.")
    ] = None,
) -> None:
    """Send a record a line."""
    if key is not None and with_keys:
        raise UsageError("--key and --with-keys exclude each other", remedy="use one of them")
    if rate is not None and rate <= 0:
        raise UsageError("--rate is too small", expected="more than 0", remedy="leave it out")
    files = _existing(address)
    if partition is not None and not 0 <= partition < files.partitions():
        raise UsageError(
            f"{address} has no partition {partition}",
            expected=f"0 to {files.partitions() - 1}",
            remedy="choose one of its partitions, or leave --partition out",
        )
    source = Path(file)
    if file != "-" and not source.is_file():
        raise NotFoundError(f"there is no file {file}", remedy="check the path, or use - for input")
    with Progress(ui, total=source.stat().st_size if file != "-" else None) as progress:
        lines = Lines(key_of(field=key, with_keys=with_keys))
        sent = send(
            read_lines(source if file != "-" else None),
            lines,
            append=lambda records: files.append(records, partition=partition),
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
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more at the end.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help="Stop after N records.")
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Key, tab, value on each line.")] = False,
    committed: Annotated[
        bool,
        typer.Option(
            "--committed/--uncommitted", help="Transactions of brokers; a log has none open."
        ),
    ] = True,
) -> None:
    """Print a record a line, up to the end of the topic unless --follow."""
    del committed
    files = _existing(address)
    offsets = _first_offsets(files, start)
    left = limit
    while left is None or left > 0:
        for record in files.read(offsets):
            if left is not None and left <= 0:
                break
            _print(ui, record, keys=keys)
            offsets[record.partition] = record.offset + 1
            left = left - 1 if left is not None else None
        if not follow:
            break
        sys.stdout.flush()
        time.sleep(_FOLLOW_SECONDS)


def describe(ui: Ui, address: Address) -> None:
    """Show a topic's partitions with their offsets."""
    files = _existing(address)
    first, end = files.start_offsets(), files.end_offsets()
    rows = [(part, first[part], end[part]) for part in sorted(end)]
    total = sum(stop - begin for _, begin, stop in rows)

    def text() -> str:
        lines = table(
            ["PARTITION", "FIRST OFFSET", "END OFFSET", "RECORDS"],
            [[str(p), number(a), number(b), number(b - a)] for p, a, b in rows],
            right=["PARTITION", "FIRST OFFSET", "END OFFSET", "RECORDS"],
        )
        return f"{address}   {len(rows)} partitions   {total:,} records   kept for ever\n{lines}"

    ui.data(
        {
            "address": address,
            "partitions": [
                {"partition": p, "first_offset": a, "end_offset": b, "records": b - a}
                for p, a, b in rows
            ],
            "records": total,
            "retention": "infinite",
        },
        text,
    )


def _open(address: str) -> TopicFiles:
    scheme, _, path = address.partition(":")
    if scheme in ("kafka", "pulsar"):
        raise UsageError(
            f"{scheme}:// topics are not supported yet", remedy="use an embedded topic: log:PATH"
        )
    if scheme != "log" or not path:
        raise UsageError(
            f"'{address}' is not a topic's address",
            expected="log:PATH, kafka://host:port/topic or pulsar://host:port/topic",
            remedy=f"did you mean log:{address}?" if not path else "name a folder: log:data/orders",
        )
    from headgate.connectors.log_files import TopicFiles

    return TopicFiles(path)


def _existing(address: str) -> TopicFiles:
    files = _open(address)
    if not files.exists():
        raise NotFoundError(
            f"there is no topic at {address}",
            remedy=f"make it with headgate topic create {address}",
        )
    return files


def _first_offsets(files: TopicFiles, start: str) -> dict[int, int]:
    if start == "earliest":
        return dict(files.start_offsets())
    if start == "latest":
        return dict(files.end_offsets())
    try:
        when = datetime.fromisoformat(start)
    except ValueError:
        raise UsageError(
            "--from is not a place in a topic",
            expected="earliest, latest or a time such as 2026-01-31T12:00:00Z",
            got=repr(start),
            remedy="use one of the three",
        ) from None
    return dict(files.offsets_at(when if when.tzinfo else when.astimezone()))


def _print(ui: Ui, record: LogRecord, *, keys: bool) -> None:
    if ui.json:
        told = {
            "version": 1,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": to_iso(datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)),
            "key": record.key,
            "value": record.value,
        }
        print(json.dumps(told, ensure_ascii=False))
    elif keys:
        print(f"{record.key if record.key is not None else ''}\t{record.value or ''}")
    else:
        print(record.value or "")
