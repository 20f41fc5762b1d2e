"""Jobs: the decorator, and the object that a job's function is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark.sql import SparkSession

import headgate.steps.known  # noqa: F401 - upgrades ask kinds by their names
from headgate.api.keyed import Keyed
from headgate.api.keyed_outputs import Processed
from headgate.api.stream import ChangesSource, SourceStream
from headgate.base.durations import Duration
from headgate.base.errors import GraphError, UsageError, user_location
from headgate.base.near import did_you_mean
from headgate.base.secrets import protect, protect_settings
from headgate.base.settings import Checkpoints, Restart, no_restart
from headgate.connectors.address import Topic, topic
from headgate.connectors.base import Expr
from headgate.connectors.dead_letters import DeadLetterTopic
from headgate.graph import Graph
from headgate.graph.check import warnings_of
from headgate.graph.definition import JobDefinition
from headgate.graph.operation import RawSource
from headgate.graph.plan import BuiltJob, Plan
from headgate.graph.port import KeyedPort, Port
from headgate.steps.dead_letters import collect
from headgate.steps.lookup import Table, Versions, add_table
from headgate.steps.process.add import add_process
from headgate.steps.process.engine import OnError
from headgate.steps.process.function import Process
from headgate.steps.source import EventTime, add_source

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,99}")


class Job:
    """What a job's function receives, to declare params, sources, tables and process functions.

    >>> @hg.job("copy")
    ... def copy(job: hg.Job) -> None:
    ...     orders = job.source("orders", hg.topic(job.param("orders"), schema="id BIGINT"))
    ...     orders.sink("copied", hg.topic("log:copied"))
    >>> copy.describe({"orders": "log:orders"}).step("orders").address
    'log:orders'
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def param(self, name: str, default: str | None = None) -> str:
        """A value that is set when the job is started (`--set name=value`).

        >>> job.param("servers", "localhost:9092")
        'localhost:9092'
        """
        self._plan.used_params.add(name)
        value = self._plan.params.get(name, default)
        value = self._plan.stand_in if value is None else value
        if value is None:
            raise UsageError(
                f"the parameter '{name}' is not set",
                remedy=f"start the job with --set {name}=VALUE",
                location=user_location(),
            )
        return str(value)

    def secret(self, name: str) -> str:
        """A param that nobody may see, such as a password or a token.

        It is set by reference: `headgate run app.py --set db_login=env:DB_LOGIN`.

        The value is a string like that of `param`, but it is never recorded, printed or shown.
        Records contain the reference (`env:DB_LOGIN`, `@/run/secrets/db_login`) or a mask, and
        wherever the value turns up in an error or in the graph, it is replaced by `******`. It has
        no default, because that would be a secret in the job's code.

        >>> job.secret("db_login")
        Traceback (most recent call last):
        headgate.base.errors.UsageError: the secret 'db_login' is not set: ...
        """
        value = self._plan.params.get(name)
        self._plan.used_params.add(name)
        self._plan.secrets.add(name)
        if value is not None:
            protect(value)
        elif self._plan.stand_in is None:
            raise UsageError(
                f"the secret '{name}' is not set",
                remedy=f"start the job with --set {name}=env:VARIABLE or --set {name}=@FILE",
                location=user_location(),
            )
        return str(self._plan.stand_in if value is None else value)

    def source(
        self,
        name: str,
        source: RawSource,
        *,
        event_time: EventTime | None = None,
        malformed: Literal["fail", "side"] | None = None,
        key: str | Sequence[str] | None = None,
    ) -> SourceStream:
        """A stream from a topic, or from a function that returns a streaming DataFrame.

        A record that does not parse stops the job, or with `malformed="side"` goes to
        `.malformed`. That is the default in a job with dead letters.

        A topic whose records are changes of a database's table (`format="debezium-json"`) becomes
        a `ChangesSource`: upserts and deletions by `key`, the columns of the table's key.

        >>> job.source("orders", hg.topic("log:data/orders", schema="id BIGINT")).columns
        ['id']
        """
        node = add_source(self._plan, name, source, event_time, malformed, key)
        kind = SourceStream if node.changes is None else ChangesSource
        return kind(Port(self._plan, node))

    def table(
        self,
        name: str,
        source: RawSource,
        *,
        key: Expr | Sequence[Expr],
        delete_when: Expr | None = None,
        ttl: Duration | None = None,
        event_time: EventTime | None = None,
        replicate: bool = False,
        versions: Versions | None = None,
    ) -> Table:
        """The latest row of each key of a changelog topic, for lookups.

        A record with a key and no value (a tombstone) deletes its key, and so does one for which
        `delete_when` is true. With `ttl`, a row is forgotten this long after its last update, by
        the time of batches. If there is an `event_time` as well, the time in the row and the job's
        watermark decide. The table then affects the job's watermark, so if it may be silent, set
        `idle_after`. With `versions`, older rows of a key are kept, for lookups with `as_of`.

        With `replicate`, every partition keeps the whole table, and a lookup does not move the
        stream's rows. Use it for small tables, and for rules that apply to all keys.

        >>> seen = hg.event_time("seen", idle_after="1 minute")
        >>> @hg.job("clicks")
        ... def clicks(job: hg.Job) -> None:
        ...     users = hg.topic("log:users", schema="id BIGINT, seen TIMESTAMP")
        ...     table = job.table("users", users, key="id", ttl="7 days", event_time=seen)
        ...     clicks = job.source("clicks", hg.topic("log:clicks", schema="user BIGINT"))
        ...     clicks.lookup("known", table, on="user").sink("out", hg.topic("log:out"))
        >>> clicks.describe().steps[0].labels["ttl"]
        '7 days of event time'
        """
        return add_table(
            self._plan, name, source, key, delete_when, ttl, event_time, replicate, versions
        )

    def process(
        self, name: str, function: Process, *, on_error: OnError = "fail", **inputs: Keyed
    ) -> Processed:
        """Pass the rows of keyed streams to a process function, which can keep state for each key.

        Each input has a handler `on_<input>`. In a batch, a key's due timers come first, then the
        rows of the first input in the order of their source, then those of the second. An error in
        a handler stops the job. With `on_error="side"`, what the handler did is undone, and the
        row and the error go to `.errors`.

        >>> class Settle(hg.Process):
        ...     owed = hg.value_state(float)
        ...     def on_bills(self, bill: Row, ctx: hg.Context) -> None:
        ...         self.owed.set(bill.price)
        ...     def on_payments(self, payment: Row, ctx: hg.Context) -> hg.Out[float]:
        ...         yield payment.paid - (self.owed.get() or 0.0)
        >>> bills = job.source("bills", hg.topic("log:bills", schema="id BIGINT, price DOUBLE"))
        >>> paid = job.source("paid", hg.topic("log:paid", schema="id BIGINT, paid DOUBLE"))
        >>> keyed = {"bills": bills.key_by("id"), "payments": paid.key_by("id")}
        >>> job.process("settle", Settle(), **keyed).columns
        ['value']
        """
        ports = {input: _keyed(name, input, keyed) for input, keyed in inputs.items()}
        return Processed(Port(self._plan, add_process(self._plan, name, function, ports, on_error)))


def _keyed(step: str, input: str, given: object) -> KeyedPort:
    if not isinstance(given, Keyed):
        raise GraphError(
            f"the input '{input}' must have a key",
            step=step,
            got=type(given).__name__,
            remedy='give it one: stream.key_by("column")',
            location=user_location(),
        )
    return given._keyed


DeadLetters: TypeAlias = str | Topic | Callable[[Job], Topic]
"""Where dead letters go: an address, a topic, or a function from the job to a topic."""
_PARAM = re.compile(r"\{(\w+)\}")


def _letter_topic(job: Job, given: DeadLetters | None) -> DeadLetterTopic | None:
    if isinstance(given, str):
        given = topic(_PARAM.sub(lambda found: job.param(found[1]), given))
    elif callable(given):
        given = given(job)
    if given is None:
        return None
    if not isinstance(given, Topic) or given.schema is not None or given.key is not None:
        raise GraphError(
            "dead_letters must be a topic without a schema and a key: letters have their own",
            got=repr(given),
            remedy="for instance dead_letters='kafka://localhost:9092/dlq'",
        )
    return DeadLetterTopic.of(given)


@dataclass(frozen=True)
class JobDef(JobDefinition):
    """A job that can be checked, drawn, run and tested; created by `@headgate.job`.

    >>> @hg.job("copy", checkpoints=hg.Checkpoints(every="5 seconds"))
    ... def copy(job: hg.Job) -> None:
    ...     orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT"))
    ...     orders.sink("copied", hg.ConsoleSink())
    >>> copy.name, copy.checkpoints.every
    ('copy', '5 seconds')
    """

    function: Callable[[Job], None]
    dead_letters: DeadLetters | None = None

    def build(
        self,
        params: Mapping[str, str] | None = None,
        *,
        spark: SparkSession | None = None,
        check_connectors: bool = True,
    ) -> BuiltJob:
        """Run the job's function and check the graph. Nothing is read or written.

        >>> copy.build().graph.warnings
        ("step 'copied': a console sink is at least once: after a crash ...",)
        """
        from headgate.runtime.session import get_session

        given = dict(params or {})
        protect_settings(given)
        plan = self._plan(spark or get_session(), given)
        written = Job(plan)
        letters = _letter_topic(written, self.dead_letters)
        plan.collects = letters is not None
        self.function(written)
        if letters is not None:
            collect(plan, letters)
        unknown = sorted(set(given) - plan.used_params)
        if unknown:
            raise UsageError(
                f"the job has no parameter '{unknown[0]}'",
                expected=", ".join(sorted(plan.used_params)) or "no parameters",
                remedy=did_you_mean(unknown[0], plan.used_params) or "correct or remove it",
            )
        return plan.built(warnings_of(plan, check_connectors=check_connectors))

    def _plan(self, spark: SparkSession, params: Mapping[str, str]) -> Plan:
        return Plan(self.name, spark, params)

    def describe(self, params: Mapping[str, str] | None = None) -> Graph:
        """The job's graph, without running a Spark action.

        >>> [step.id for step in copy.describe().steps]
        ['orders', 'copied']
        """
        return self.build(params, check_connectors=False).graph


def job(
    name: str,
    *,
    checkpoints: Checkpoints | None = None,
    restart: Restart | None = None,
    dead_letters: DeadLetters | None = None,
) -> Callable[[Callable[[Job], None]], JobDef]:
    """Turn a function into a job.

    `dead_letters` is a topic for malformed records and for missing, late and failed rows that no
    step reads; `headgate replay` sends malformed records and missing rows back to their step. It is
    an address, in which `{name}` stands for a param; a topic; or a function from the job to a
    topic.

    >>> @hg.job("store", checkpoints=hg.Checkpoints(every="5 seconds"))
    ... def store(job: hg.Job) -> None: ...
    >>> store.name
    'store'
    >>> @hg.job("copy", dead_letters="kafka://{servers}/copy.dlq")
    ... def copy(job: hg.Job) -> None:
    ...     orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT"))
    ...     orders.sink("copied", hg.topic("log:copied"))
    >>> copy.describe({"servers": "localhost:9092"}).step("dead_letters").address
    'kafka://localhost:9092/copy.dlq'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise GraphError(
            "a job's name must be a letter, then letters, digits, '_', '-' or '.', at most 100 "
            "in all",
            got=repr(name),
            remedy="rename the job",
            location=user_location(),
        )

    def define(function: Callable[[Job], None]) -> JobDef:
        return JobDef(
            name, checkpoints or Checkpoints(), restart or no_restart(), function, dead_letters
        )

    return define
