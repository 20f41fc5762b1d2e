"""The running counts in PyFlink; runs in an environment of its own, which has nothing of Headgate.

Files are read as JSON by the Table API, in Java, which is the quickest way in that PyFlink has.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pyflink.common import Configuration, Row, Types
from pyflink.common.serialization import Encoder
from pyflink.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.file_system import FileSink
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import StreamTableEnvironment


class Running(KeyedProcessFunction):
    """Counts the events of a user and keeps the last value."""

    def __init__(self, opened: str) -> None:
        self._opened = opened

    def open(self, runtime_context: RuntimeContext) -> None:
        with contextlib.suppress(FileExistsError), open(self._opened, "x") as file:
            file.write(str(time.time()))
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        count = (self._count.value() or 0) + 1
        before = self._last.value() or 0.0
        self._count.update(count)
        self._last.update(value[1])
        yield (f'{{"user":{value[0]},"count":{count},"before":{before!r},"last":{value[1]!r}}}')


def main(options: dict[str, str], topic: str, out: str, opened: str, began: float) -> None:
    """Run the job to its end."""
    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TABLE readings (id BIGINT, `user` BIGINT, page STRING, score DOUBLE) WITH "
        f"('connector' = 'filesystem', 'path' = '{Path(topic).as_uri()}', 'format' = 'json')"
    )
    # what the function does not use stays in Java
    readings = tables.to_data_stream(tables.sql_query("SELECT `user`, score FROM readings"))
    totals = readings.key_by(lambda row: row[0], key_type=Types.LONG()).process(
        Running(opened), output_type=Types.STRING()
    )
    sink = FileSink.for_row_format(out, Encoder.simple_string_encoder()).build()
    totals.sink_to(sink)
    print("STARTED", flush=True)
    env.execute("running")
    done = time.time()
    # the start of its Python is not counted: for this few events it would be half of all
    started = float(Path(opened).read_text())
    phases = {"start": started - began, "events": done - started}
    print("RESULT " + json.dumps(phases), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]))
