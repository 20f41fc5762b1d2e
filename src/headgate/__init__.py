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
    from headgate.api.job import Job, JobDef, job
    from headgate.api.stream import Stream
    from headgate.base.durations import Duration
    from headgate.base.errors import HeadgateError
    from headgate.base.schemas import Schema
    from headgate.base.settings import (
        Checkpoints,
        Restart,
        exponential_delay,
        failure_rate,
        fixed_delay,
        no_restart,
    )
    from headgate.connectors import (
        ConsoleSink,
        FilesSink,
        KafkaSink,
        KafkaSource,
        LogSink,
        LogSource,
        PulsarSink,
        PulsarSource,
        Sink,
        Source,
        Start,
        Topic,
        topic,
    )
    from headgate.connectors.base import Expr
    from headgate.graph import Graph
    from headgate.runtime.handle import RunHandle, start
    from headgate.steps.lookup.step import Lookup, Table, Wait
    from headgate.steps.process.arrow import ArrowContext, ArrowProcess, ColumnState, column_state
    from headgate.steps.process.declare import (
        Context,
        ListState,
        MapState,
        Out,
        Process,
        SideOutput,
        Tagged,
        Timer,
        ValueState,
        list_state,
        map_state,
        side_output,
        timer,
        value_state,
    )
    from headgate.steps.source.step import EventTime, SourceStream, event_time
    from headgate.steps.window.kinds import (
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
    from headgate.steps.window.step import Keyed, Windowed

__version__ = "0.1.0"

# Loaded when they are used: the command line reads the home without paying for Spark's import.
_WHERE = {
    "headgate.connectors": "ConsoleSink FilesSink KafkaSink KafkaSource LogSink LogSource "
    "PulsarSink PulsarSource Sink Source Start Topic topic",
    "headgate.connectors.base": "Expr",
    "headgate.base.durations": "Duration",
    "headgate.base.errors": "HeadgateError",
    "headgate.graph": "Graph",
    "headgate.api.job": "Job JobDef job",
    "headgate.steps.process.arrow": "ArrowContext ArrowProcess ColumnState column_state",
    "headgate.steps.process.declare": "Context ListState MapState Out Process SideOutput Tagged "
    "Timer ValueState list_state map_state side_output timer value_state",
    "headgate.runtime.handle": "RunHandle start",
    "headgate.base.schemas": "Schema",
    "headgate.base.settings": "Checkpoints Restart exponential_delay "
    "failure_rate fixed_delay no_restart",
    "headgate.steps.lookup.step": "Lookup Table Wait",
    "headgate.steps.source.step": "EventTime SourceStream event_time",
    "headgate.steps.window.step": "Keyed Windowed",
    "headgate.steps.window.kinds": "Trigger Window after_count count_window every "
    "session sliding tumbling when",
    "headgate.api.stream": "Stream",
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


__all__ = [
    "ArrowContext",
    "ArrowProcess",
    "Checkpoints",
    "ColumnState",
    "ConsoleSink",
    "Context",
    "Duration",
    "EventTime",
    "Expr",
    "FilesSink",
    "Graph",
    "HeadgateError",
    "Job",
    "JobDef",
    "KafkaSink",
    "KafkaSource",
    "Keyed",
    "ListState",
    "LogSink",
    "LogSource",
    "Lookup",
    "MapState",
    "Out",
    "Process",
    "PulsarSink",
    "PulsarSource",
    "Restart",
    "RunHandle",
    "Schema",
    "SideOutput",
    "Sink",
    "Source",
    "SourceStream",
    "Start",
    "Stream",
    "Table",
    "Tagged",
    "Timer",
    "Topic",
    "Trigger",
    "ValueState",
    "Wait",
    "Window",
    "Windowed",
    "after_count",
    "column_state",
    "count_window",
    "event_time",
    "every",
    "exponential_delay",
    "failure_rate",
    "fixed_delay",
    "job",
    "list_state",
    "map_state",
    "no_restart",
    "session",
    "side_output",
    "sliding",
    "start",
    "timer",
    "topic",
    "tumbling",
    "value_state",
    "when",
]
