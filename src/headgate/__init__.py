"""Headgate: Flink-grade stateful streams for PySpark.

A job is a function that names its sources, steps and sinks:

    import headgate as hg

    @hg.job("store")
    def store(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
        orders = job.source("orders", hg.topic("log:orders", schema="user_id BIGINT, item STRING"))
        found = orders.lookup("users_lookup", users, on="user_id", missing="side")
        found.sink("enriched", hg.topic("log:enriched"))
        found.missing.sink("unknown", hg.topic("log:unknown"))
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.api.hints import NoSuchMethodError
    from headgate.api.job import Job, JobDef, job
    from headgate.api.keyed import Keyed
    from headgate.api.keyed_outputs import Deduped, Joined, Processed, Windowed
    from headgate.api.stream import Changes, ChangesSource, Lookup, SourceStream, Stream
    from headgate.base.durations import Duration
    from headgate.base.errors import (
        GraphError,
        HeadgateError,
        JobFailedError,
        NotFoundError,
        RefusedError,
        StorageError,
        UsageError,
    )
    from headgate.base.schemas import Schema
    from headgate.base.settings import (
        Checkpoints,
        Restart,
        exponential_delay,
        failure_rate,
        fixed_delay,
        no_restart,
    )
    from headgate.brokers.process import NotInTimeError
    from headgate.cli.program import main
    from headgate.connectors import (
        Batch,
        ConsoleSink,
        DataSourceSink,
        DeltaSink,
        FilesSink,
        ForeachBatchSink,
        IcebergSink,
        JdbcSink,
        KafkaSink,
        KafkaSource,
        LogSink,
        LogSource,
        PulsarSink,
        PulsarSource,
        PythonSink,
        Sink,
        Source,
        StartPosition,
        Topic,
        topic,
    )
    from headgate.connectors.base import Expr
    from headgate.connectors.pulsar.admin import PulsarAdminError
    from headgate.connectors.topic_client import NotAcknowledgedError
    from headgate.graph import Graph
    from headgate.graph.operation import Fit
    from headgate.jvm.jars import JarError
    from headgate.runtime.handle import RunHandle, start
    from headgate.runtime.home_probe import HomeUnseenError
    from headgate.runtime.own_session import spark_session
    from headgate.snapshots.closure import DamagedError
    from headgate.steps.join import Between, between
    from headgate.steps.lookup import Table, Versions, Wait
    from headgate.steps.process.arrow import ArrowContext, ArrowProcess, ColumnState, column_state
    from headgate.steps.process.declare import (
        SideOutput,
        Tagged,
        list_state,
        map_state,
        side_output,
        timer,
        value_state,
    )
    from headgate.steps.process.function import Context, Out, Process
    from headgate.steps.process.handles import ListState, MapState, Timer, ValueState
    from headgate.steps.process.own_kind import StepKind
    from headgate.steps.source import EventTime, event_time
    from headgate.steps.window import (
        Trigger,
        Window,
        after_count,
        count_window,
        every,
        session,
        sliding,
        tumbling,
        when,
    )

__version__ = "0.1.0"

# Loaded when they are used: the command line reads the home without paying for Spark's import.
_WHERE = {
    "headgate.api.hints": ("NoSuchMethodError",),
    "headgate.api.job": (
        "Job",
        "JobDef",
        "job",
    ),
    "headgate.api.keyed": ("Keyed",),
    "headgate.api.keyed_outputs": ("Deduped", "Joined", "Processed", "Windowed"),
    "headgate.api.stream": ("Changes", "ChangesSource", "Lookup", "SourceStream", "Stream"),
    "headgate.base.durations": ("Duration",),
    "headgate.base.errors": (
        "GraphError",
        "HeadgateError",
        "JobFailedError",
        "NotFoundError",
        "RefusedError",
        "StorageError",
        "UsageError",
    ),
    "headgate.base.schemas": ("Schema",),
    "headgate.base.settings": (
        "Checkpoints",
        "Restart",
        "exponential_delay",
        "failure_rate",
        "fixed_delay",
        "no_restart",
    ),
    "headgate.brokers.process": ("NotInTimeError",),
    "headgate.cli.program": ("main",),
    "headgate.connectors": (
        "Batch",
        "ConsoleSink",
        "DataSourceSink",
        "DeltaSink",
        "FilesSink",
        "ForeachBatchSink",
        "IcebergSink",
        "JdbcSink",
        "KafkaSink",
        "KafkaSource",
        "LogSink",
        "LogSource",
        "PulsarSink",
        "PulsarSource",
        "PythonSink",
        "Sink",
        "Source",
        "StartPosition",
        "Topic",
        "topic",
    ),
    "headgate.connectors.base": ("Expr",),
    "headgate.connectors.pulsar.admin": ("PulsarAdminError",),
    "headgate.connectors.topic_client": ("NotAcknowledgedError",),
    "headgate.graph": ("Graph",),
    "headgate.graph.operation": ("Fit",),
    "headgate.jvm.jars": ("JarError",),
    "headgate.runtime.handle": (
        "RunHandle",
        "start",
    ),
    "headgate.runtime.home_probe": ("HomeUnseenError",),
    "headgate.runtime.own_session": ("spark_session",),
    "headgate.snapshots.closure": ("DamagedError",),
    "headgate.steps.join": (
        "Between",
        "between",
    ),
    "headgate.steps.lookup": (
        "Table",
        "Versions",
        "Wait",
    ),
    "headgate.steps.process.arrow": (
        "ArrowContext",
        "ArrowProcess",
        "ColumnState",
        "column_state",
    ),
    "headgate.steps.process.declare": (
        "SideOutput",
        "Tagged",
        "list_state",
        "map_state",
        "side_output",
        "timer",
        "value_state",
    ),
    "headgate.steps.process.function": ("Context", "Out", "Process"),
    "headgate.steps.process.handles": ("ListState", "MapState", "Timer", "ValueState"),
    "headgate.steps.process.own_kind": ("StepKind",),
    "headgate.steps.source": (
        "EventTime",
        "event_time",
    ),
    "headgate.steps.window": (
        "Trigger",
        "Window",
        "after_count",
        "count_window",
        "every",
        "session",
        "sliding",
        "tumbling",
        "when",
    ),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__all__ = [
    "ArrowContext",
    "ArrowProcess",
    "Batch",
    "Between",
    "Changes",
    "ChangesSource",
    "Checkpoints",
    "ColumnState",
    "ConsoleSink",
    "Context",
    "DamagedError",
    "DataSourceSink",
    "Deduped",
    "DeltaSink",
    "Duration",
    "EventTime",
    "Expr",
    "FilesSink",
    "Fit",
    "ForeachBatchSink",
    "Graph",
    "GraphError",
    "HeadgateError",
    "HomeUnseenError",
    "IcebergSink",
    "JarError",
    "JdbcSink",
    "Job",
    "JobDef",
    "JobFailedError",
    "Joined",
    "KafkaSink",
    "KafkaSource",
    "Keyed",
    "ListState",
    "LogSink",
    "LogSource",
    "Lookup",
    "MapState",
    "NoSuchMethodError",
    "NotAcknowledgedError",
    "NotFoundError",
    "NotInTimeError",
    "Out",
    "Process",
    "Processed",
    "PulsarAdminError",
    "PulsarSink",
    "PulsarSource",
    "PythonSink",
    "RefusedError",
    "Restart",
    "RunHandle",
    "Schema",
    "SideOutput",
    "Sink",
    "Source",
    "SourceStream",
    "StartPosition",
    "StepKind",
    "StorageError",
    "Stream",
    "Table",
    "Tagged",
    "Timer",
    "Topic",
    "Trigger",
    "UsageError",
    "ValueState",
    "Versions",
    "Wait",
    "Window",
    "Windowed",
    "after_count",
    "between",
    "column_state",
    "count_window",
    "event_time",
    "every",
    "exponential_delay",
    "failure_rate",
    "fixed_delay",
    "job",
    "list_state",
    "main",
    "map_state",
    "no_restart",
    "session",
    "side_output",
    "sliding",
    "spark_session",
    "start",
    "timer",
    "topic",
    "tumbling",
    "value_state",
    "when",
]
