"""The one file that touches the JVM: every call into the kernel's Scala goes through here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark import SparkContext
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from headgate.errors import GraphError, HeadgateError, RefusedError
from headgate.failures import explain
from headgate.schemas import has_floats

EXTENSIONS = "org.apache.spark.sql.headgate.HeadgateExtensions"
FILE_MANAGER = "org.apache.spark.sql.headgate.FencedFileManager"
DURABILITY = "spark.headgate.durability"
LOG_SOURCE = "org.apache.spark.sql.headgate.log.LogSourceProvider"
TICKS = "org.apache.spark.sql.headgate.tick.TickSourceProvider"
CLOCK_OFFSET = "spark.headgate.clock.offset.ms"
WATERMARKS = "spark.headgate.watermarks"
OUT = "__hg_out"
SINK = "__hg_sink"
_KAFKA_SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_PULSAR_CLIENT = "org.apache.pulsar.client.api.PulsarClient"
_LOCKS = Path(__file__).parent / "brokers" / "locks"


def jar() -> Path:
    """The compiled kernel that this package carries."""
    path = Path(__file__).parent / "jars" / "headgate-kernel.jar"
    if not path.exists():
        raise HeadgateError(
            f"the kernel jar is not at {path}",
            remedy="build it with `make kernel` or reinstall headgate",
        )
    return path


def _headgate(spark: SparkSession) -> Any:
    return _class(spark, "Headgate")


def _class(spark: SparkSession | SparkContext, name: str) -> Any:
    """A class of the kernel; `_jvm.org.apache...` would ask the JVM about each part of its name."""
    return JavaClass(f"org.apache.spark.sql.headgate.{name}", spark._jvm._gateway_client)  # type: ignore[union-attr]


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _java(df: DataFrame) -> Any:
    return df._jdf


def _frame(java: Any, spark: SparkSession) -> DataFrame:
    return DataFrame(java, spark)


def _list(spark: SparkSession, items: Sequence[Any]) -> Any:
    made = _jvm(spark).java.util.ArrayList()
    for item in items:
        made.add(item)
    return made


def prototype(spark: SparkSession, schema: StructType) -> DataFrame:
    """An empty streaming DataFrame with these columns, for analysis only."""
    java = _headgate(spark).prototype(spark._jsparkSession, schema.json())
    return _frame(java, spark)


def stateful_part(df: DataFrame) -> str | None:
    """What keeps state in the plan, in words."""
    found = _headgate(df.sparkSession).stateful(_java(df))
    return None if found is None else str(found)


def nondeterministic_part(df: DataFrame) -> str | None:
    """An expression that gives another value when a batch is replayed."""
    found = _headgate(df.sparkSession).nondeterministic(_java(df))
    return None if found is None else str(found)


def decode(
    raw: DataFrame,
    schema: StructType,
    *,
    topic: str,
    step: str,
    malformed: str,
    table: bool = False,
    key_columns: Sequence[str] = (),
    format: str = "json",
    metadata: Sequence[tuple[str, str]] = (),
    avro_schema: str | None = None,
    avro_framing: str = "none",
) -> DataFrame:
    """Raw records as rows of the schema, with `__hg_position`, `__hg_deleted` and `__hg_bad`.

    `schema` has the value's columns, then those of `metadata`: pairs of a column's name and the
    record's part in it (key, topic, partition, offset, timestamp or headers).
    """
    spark = raw.sparkSession
    spec = {
        "schema": schema.jsonValue(), "topic": topic, "step": step, "malformed": malformed,
        "table": table, "key_columns": list(key_columns), "format": format,
        "metadata": [list(pair) for pair in metadata], "avro_schema": avro_schema,
        "avro_framing": avro_framing,
    }  # fmt: skip
    api = _class(spark, "decode.DecodeApi")
    try:
        return _frame(api.apply(_java(raw), json.dumps(spec)), spark)
    except IllegalArgumentException as error:
        _, mark, why = str(error).partition("HEADGATE_AVRO_SCHEMA ")
        if not mark:
            raise
        raise GraphError(
            why, step=step, remedy="correct the Avro schema or the source's columns"
        ) from error


def lookup(
    stream: DataFrame,
    table: DataFrame,
    *,
    step: str,
    stream_keys: Sequence[str],
    table_keys: Sequence[str],
    value: str,
    position: str | None,
    deleted: str,
    into: str,
    missing: str,
    held: str | None = None,
) -> DataFrame:
    """The stream with the latest table row of the same key as one more struct column.

    `held` is the stream's event time, if rows that wait hold the job's watermark.
    """
    spark = stream.sparkSession
    java = _headgate(spark).lookup(
        _java(stream), _java(table), step, _list(spark, stream_keys), _list(spark, table_keys),
        value, position, deleted, into, missing, held,
    )  # fmt: skip
    return _frame(java, spark)


def normal_keys(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The frame with these columns as keys: one zero and one NaN, also in structs and arrays."""
    concerned = [name for name in names if has_floats(frame.schema[name].dataType)]
    if not concerned:
        return frame
    spark = frame.sparkSession
    made = _class(spark, "NormalKeys")
    return _frame(made.columns(_java(frame), _list(spark, concerned)), spark)


def carry(base: DataFrame, top: DataFrame, column: str) -> DataFrame | None:
    """`top` with a column of `base`, which the steps between do not select; None if it is lost."""
    spark = base.sparkSession
    java = _headgate(spark).carry(_java(base), _java(top), column)
    return None if java is None else _frame(java, spark)


def window_problem(aggregated: DataFrame) -> str | None:
    """What makes aggregates unfit for windows, in words."""
    found = _window_api(aggregated.sparkSession).problem(_java(aggregated))
    return None if found is None else str(found)


def window(
    stream: DataFrame,
    *,
    spec: Mapping[str, Any],
    keys: Sequence[str],
    names: Sequence[str],
    time: str,
    aggregates: Sequence[Column],
    conditions: Sequence[Column],
    late_row: Sequence[str] | None,
    late: str,
) -> DataFrame:
    """The windows of a keyed stream; a late row is in the column `late`, null in all others.

    Without `late_row`, the columns of such a row, late rows are only counted. The column `time` is
    in the result as well: a window's rows have the time of its end.
    """
    spark = stream.sparkSession
    java = _window_api(spark).apply(
        _java(stream), json.dumps(dict(spec)), _list(spark, keys), _list(spark, names), time,
        _list(spark, [_java_column(c) for c in aggregates]),
        _list(spark, [_java_column(c) for c in conditions]),
        None if late_row is None else _list(spark, late_row), time, late,
    )  # fmt: skip
    return _frame(java, spark)


def count_window(
    stream: DataFrame,
    *,
    spec: Mapping[str, Any],
    keys: Sequence[str],
    names: Sequence[str],
    position: str,
    time: str,
    aggregates: Sequence[Column],
) -> DataFrame:
    """Windows of so many rows of each key, in the order of `position`.

    A window's times are those of its first and last row, if the stream has the column `time`.
    """
    spark = stream.sparkSession
    java = _window_api(spark).counted(
        _java(stream), spec["step"], spec["size"], spec["every"], _list(spark, keys),
        _list(spark, names), position, time if time in stream.columns else None,
        _list(spark, [_java_column(c) for c in aggregates]), time,
    )  # fmt: skip
    return _frame(java, spark)


def unkeyed(stream: DataFrame, name: str) -> DataFrame:
    """The stream with a key, under a name, that is the same for all rows."""
    spark = stream.sparkSession
    return _frame(_window_api(spark).unkeyed(_java(stream), name), spark)


def process(
    stream: DataFrame, function: Callable[[Iterator[Any]], Iterator[Any]], spec: Mapping[str, Any]
) -> DataFrame:
    """A process function over the rows of its inputs; `spec` says what the columns mean.

    `function` is from Arrow batches to Arrow batches, as that of `DataFrame.mapInArrow`.
    """
    spark = stream.sparkSession
    mapped = stream.mapInArrow(function, "kind TINYINT")  # only its pickled function is used
    api = _class(spark, "process.ProcessApi")
    return _frame(api.apply(_java(stream), _java(mapped), json.dumps(dict(spec))), spark)


def _window_api(spark: SparkSession) -> Any:
    return _class(spark, "window.WindowApi")


def _java_column(column: Column) -> Any:
    return column._jc


def tee(df: DataFrame) -> DataFrame:
    """Mark a repartitioned stream as shared, so that it is computed once."""
    return _frame(_headgate(df.sparkSession).tee(_java(df)), df.sparkSession)


def count(df: DataFrame, step: str, output: str) -> DataFrame:
    """Count the rows that pass here as an output of a step."""
    return _frame(_headgate(df.sparkSession).count(_java(df), step, output), df.sparkSession)


def observe(df: DataFrame, source: str, at: str) -> DataFrame:
    """Let a source's watermark follow the times in a column of its rows."""
    return _frame(_headgate(df.sparkSession).observe(_java(df), source, at), df.sparkSession)


def split(
    base: DataFrame,
    branches: Sequence[tuple[DataFrame, int]],
    *,
    sink_schemas: Sequence[StructType],
    spread_by: Sequence[str] = (),
    riders: bool = True,
) -> DataFrame | None:
    """All users of a shared stream in one pass; None if one is not a chain of select and filter.

    A branch is a DataFrame on `base` with the number of its sink, or -1 if it goes on. Rows of
    `base` that ride to a sink already go on with these branches only if `riders` says so.
    """
    spark = base.sparkSession
    java = _headgate(spark).split(
        _java(base),
        _list(spark, [_java(df) for df, _ in branches]),
        _list(spark, [sink for _, sink in branches]),
        _list(spark, [s.json() for s in sink_schemas]),
        _list(spark, spread_by),
        riders,
    )
    return None if java is None else _frame(java, spark)


def is_chain(base: DataFrame, top: DataFrame) -> bool:
    """Whether only select, filter and count steps lie between the two."""
    return bool(_headgate(base.sparkSession).isChain(_java(base), _java(top)))


def numbered(df: DataFrame, sinks: Sequence[int]) -> DataFrame:
    """The writer's rows with the places in their task of those for these sinks."""
    spark = df.sparkSession
    return _frame(_headgate(spark).numbered(_java(df), _list(spark, sinks)), spark)


def start(
    df: DataFrame,
    *,
    name: str,
    checkpoint: str,
    spec: str,
    every: timedelta | None,
    drain: bool = False,
    event_time: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a job's query; without `every` it ends when it has read what is there.

    With `drain` event time ends then, in a batch of its own that closes every window. `event_time`
    has `at`, the time of the last batch, and `sources`: for each that has event time `delay` and
    `idle_after`, and `watermark`, `rows_at` and `since` as the kernel left them in the journal.
    """
    millis = -1 if every is None else round(every.total_seconds() * 1000)
    time = json.dumps(event_time) if event_time else ""
    java = _headgate(df.sparkSession).start(_java(df), name, checkpoint, spec, millis, drain, time)
    return StreamingQuery(java)


def source_order(df: DataFrame) -> list[str]:
    """The names of the sources in the order of the query's offset log."""
    return list(_headgate(df.sparkSession).sourceOrder(_java(df)))


def state_layout(frame: DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The layouts of the stores that each step of a compiled job keeps, by step."""
    layouts: dict[str, list[dict[str, Any]]] = json.loads(
        _headgate(frame.sparkSession).stateLayout(_java(frame))
    )
    return layouts


def state_rows(
    spark: SparkSession,
    *,
    folder: str,
    operator_id: int,
    layout: Mapping[str, Any],
    version: int,
    ids: Sequence[str],
    partitions: Sequence[int] | None = None,
) -> DataFrame:
    """All rows of one store: partition, key and value; `ids` has one unique id a partition."""
    java = _class(spark, "state.StateRows").rows(
        spark._jsparkSession, folder, operator_id, json.dumps(layout), version, _list(spark, ids),
        None if partitions is None else _list(spark, partitions),
    )  # fmt: skip
    return _frame(java, spark)


def state_get(
    spark: SparkSession,
    *,
    folder: str,
    operator_id: int,
    layout: Mapping[str, Any],
    version: int,
    ids: Sequence[str],
    key: DataFrame,
) -> DataFrame:
    """The rows of one key, as `state_rows` has them; `key` is one row of partition_by columns."""
    java = _class(spark, "state.StateRows").get(
        spark._jsparkSession, folder, operator_id, json.dumps(layout), version, _list(spark, ids),
        _java(key),
    )  # fmt: skip
    return _frame(java, spark)


def rewrite_state(
    spark: SparkSession,
    *,
    source: str | None,
    source_version: int,
    source_ids: Sequence[Sequence[str]],
    operator_id: int,
    old: Sequence[Mapping[str, Any]] | None,
    new: Sequence[Mapping[str, Any]],
    target: str,
    target_version: int,
    partitions: int,
    step: str | None = None,
    job: DataFrame | None = None,
    drops: bool = False,
    lost: Callable[[int], object] = lambda rows: None,
) -> list[list[str]]:
    """Write a step's state anew below `target`; the unique ids by partition and store.

    Rows go from `old` to `new` by the names of stores and columns; without `source` the stores
    are empty. `step` is for Spark's operator metadata, which else has the name in the source's.
    Where keys were not in normal form, `job`, compiled, says how what they kept becomes one; with
    `drops` what cannot be merged goes. `lost` is told how many rows less there are then.
    """
    try:
        found = _class(spark, "state.RewriteState").run(
            spark._jsparkSession, source, source_version,
            _list(spark, [_list(spark, of) for of in source_ids]), operator_id, step,
            None if old is None else json.dumps(old), json.dumps(new), target, target_version,
            partitions, None if job is None else _java(job), drops,
        )  # fmt: skip
    except IllegalArgumentException as error:
        _, mark, why = str(error).partition("HEADGATE_STATE_")
        kind, _, what = why.partition(" ")
        if not mark:
            raise
        remedy = "give what changed its type another name, or start anew"
        if kind == "KEYS":
            remedy = (
                "say --allow-dropped-state to keep what 0.0 and the usual NaN had, and to drop "
                "what the others had; or start anew"
            )
        raise RefusedError(what, step=step, remedy=remedy) from error
    lost(int(found.lost()))
    return [[str(id) for id in of] for of in found.ids()]


def committed_batches(spark: SparkSession, spec: str) -> str:
    """JSON: sink -> the last batch that is out, for the run of this sinks spec."""
    return str(_class(spark, "sink.SinkMarkers").committed(spec))


def sink_markers(spark: SparkSession, spec: str) -> dict[str, list[dict[str, Any]]]:
    """By sink, the markers of the newest batches that its tasks have out, for a run.

    Each has batch, and where they are known fingerprint, owner, time, watermark and offsets. Ends
    transactions that a dead driver left open: the caller holds the lease and owns the outputs.
    """
    found: dict[str, list[dict[str, Any]]] = json.loads(
        _class(spark, "sink.SinkMarkers").markers(spec)
    )
    return found


def other_owners(spark: SparkSession, spec: str) -> dict[str, dict[str, str]]:
    """By sink, the owner of its output if that is another home's job: owner and home."""
    found: dict[str, dict[str, str]] = json.loads(_class(spark, "sink.SinkMarkers").others(spec))
    return found


def take_over(spark: SparkSession, spec: str) -> None:
    """Make the outputs of all sinks the job's own."""
    _class(spark, "sink.SinkMarkers").takeOver(spec)


def kafka_cluster_id(spark: SparkSession, client: Mapping[str, str]) -> str:
    """The id of the Kafka cluster that a client reaches."""
    need_kafka(spark)
    return str(_kafka_admin(spark).clusterId(json.dumps(dict(client))))


def await_readable(spark: SparkSession, spec: str) -> bool:
    """Wait, not for long, until readers see all that a job's sinks have committed."""
    return bool(_class(spark, "sink.SinkMarkers").awaitReadable(spec))


def need_kafka(spark: SparkSession) -> None:
    """Bring Spark's Kafka connector and its client to the session, unless they are there.

    Reading and writing Kafka topics needs them; the first time they may have to be downloaded.
    """
    _need(spark, _KAFKA_SOURCE, "kafka-connector-4.2.0.lock")


def need_pulsar(spark: SparkSession) -> None:
    """Bring Pulsar's Java client to the session, unless it is there; writing topics needs it."""
    _need(spark, _PULSAR_CLIENT, "pulsar-client-4.2.4.lock")


def _need(spark: SparkSession, class_name: str, lock: str) -> None:
    from headgate.brokers.jars import fetch

    jars = _class(spark, "MoreJars")
    if not jars.knows(class_name):
        paths = [str(path) for path in fetch(_LOCKS / lock)]
        jars.addUnlessKnown(spark._jsparkSession, class_name, _list(spark, paths))


def kafka_topics(
    spark: SparkSession, client: Mapping[str, str], topics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What a Kafka cluster says of topics, by name.

    Either partitions, earliest and latest (offset by partition), config (None if it may not be
    seen) and operations (what this client may do there), or error (a kind) and message.
    """
    need_kafka(spark)
    found: dict[str, dict[str, Any]] = json.loads(
        _kafka_admin(spark).topics(json.dumps(dict(client)), _list(spark, topics))
    )
    return found


def kafka_topic_ids(
    spark: SparkSession, client: Mapping[str, str], topic: str, *, is_pattern: bool
) -> dict[str, Any]:
    """The ids of topics (a name, several with commas, or a pattern) and of their cluster.

    Either cluster (or null) and topics, id by name, or error (a kind) and message.
    """
    need_kafka(spark)
    found: dict[str, Any] = json.loads(
        _class(spark, "kafka.TopicIds").told(json.dumps(dict(client)), topic, is_pattern)
    )
    return found


def guard_topics(
    spark: SparkSession,
    *,
    spark_folder: str,
    file: str,
    sources: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, Any],
) -> None:
    """Let each batch of a Spark folder fail if a topic of these Kafka sources has another id.

    `known` is what stands in the run's topics.json, at `file`; it gets topics that a pattern finds
    later. The guard goes with the fence of the folder.
    """
    _class(spark, "kafka.TopicGuard").put(
        spark._jsparkSession, spark_folder, file, json.dumps(sources), json.dumps(known)
    )


def kafka_open_transactions(
    spark: SparkSession, client: Mapping[str, str], job: str
) -> list[dict[str, Any]]:
    """Transactions of a job's sinks that are open: transactional_id, state, since_ms, topics."""
    need_kafka(spark)
    found: list[dict[str, Any]] = json.loads(
        _kafka_admin(spark).openTransactions(json.dumps(dict(client)), job)
    )
    return found


def pulsar_topics(
    spark: SparkSession, access: Mapping[str, str], topics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What a Pulsar service says of topics, by name: partitions (0 if a topic has none), or error
    (a kind) and message.

    `access` is the service's `url` with the options of its PulsarAccess. No topic is created.
    """
    need_pulsar(spark)
    asked = _class(spark, "pulsar.PulsarTopics")
    found: dict[str, dict[str, Any]] = json.loads(
        asked.topics(json.dumps(dict(access)), _list(spark, topics))
    )
    return found


def _kafka_admin(spark: SparkSession) -> Any:
    return _class(spark, "kafka.KafkaAdmin")


def verify_files(spark: SparkSession, paths: Sequence[str]) -> dict[str, str]:
    """By path, what is wrong with a file: missing, cut short or changed; the others are left out.

    A file is compared with the checksums that Spark and Hadoop keep beside it, where they do.
    """
    verify = _class(spark, "state.VerifyFiles")
    found = verify.run(spark._jsparkSession, _list(spark, paths))
    return {str(path): str(found[path]) for path in found}


def await_sections(spark: SparkSession, lock_file: str, timeout: float) -> bool:
    """Wait until no driver is in the middle of a commit of the job; False if one still is."""
    fence = _class(spark, "Fence")
    return bool(getattr(fence, "await")(lock_file, int(timeout * 1000)))


def fence(
    spark: SparkSession, *, spark_folder: str, lock_file: str | None, job_file: str, token: str
) -> None:
    """Let queries of a Spark folder commit only while the job's lease has this token.

    Without `lock_file` (a home without locks) the lease is only looked at before each commit.
    """
    _headgate(spark).fence(spark._jsparkSession, spark_folder, lock_file, job_file, token)


def unfence(spark: SparkSession, spark_folder: str) -> None:
    """Take the fence away; one whose lease was lost stays."""
    _headgate(spark).unfence(spark._jsparkSession, spark_folder)


def home_probe(spark: SparkSession, folder: str, nonce: str) -> Any:
    """The kernel's HomeProbe with a new folder of the home, which it makes."""
    return _class(spark, "HomeProbe").create(spark._jsparkSession, folder, nonce)


def arm_crash(spark: SparkSession, run: str, point: str) -> None:
    """Make the run's next batch die at a point of its commit (for tests)."""
    _class(spark, "sink.Failpoints").arm(run, point)


def disarm_crash(spark: SparkSession, run: str) -> None:
    """Let the run live after all."""
    _class(spark, "sink.Failpoints").disarm(run)


def forget(spark: SparkSession, query_run_id: str) -> None:
    """Drop what the kernel keeps of a query that ended."""
    _headgate(spark).forget(query_run_id)


def stop_after_batch(query: Any) -> None:
    """Let the query's running batch end, and start no other."""
    # not the active session: that is one per thread, and any thread may stop a job
    context = SparkContext._active_spark_context
    assert context is not None, "a running query has a context"
    _class(context, "StopAfterBatch").request(str(query.runId))


def trigger_now(query: Any) -> None:
    """Let the query's next batch begin now, not at the end of its interval."""
    context = SparkContext._active_spark_context
    assert context is not None, "a running query has a context"
    _class(context, "JobClock").triggerNow(str(query.runId))


def explain_failure(error: BaseException) -> tuple[str, str, str | None, str | None]:
    """A failure as (reason, sentence, step, remedy), from all that Spark said about it."""
    failure = explain(failure_text(error))
    return failure.reason.name, failure.sentence, failure.step, failure.remedy


def failure_text(error: BaseException) -> str:
    """All that an exception says: its text, the JVM's trace, and its causes."""
    parts = [str(error), str(getattr(error, "_stackTrace", "") or "")]
    cause = getattr(error, "_cause", None) or error.__cause__
    if isinstance(cause, BaseException):
        parts.append(failure_text(cause))
    return "\n".join(parts)
