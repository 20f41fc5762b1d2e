"""Sessions of the user's: in a notebook, a script, or wherever Spark runs already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headgate.base.errors import UsageError
from headgate.base.secrets import protect_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(
    builder: SparkSession.Builder | None = None,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session with everything that Headgate needs, created from a builder.

    It has the jars, packages and extensions of the builder, `conf` and spark-defaults.conf
    alongside Headgate's own. If Spark is already running, it is a copy of that session.

    >>> spark = hg.spark_session(SparkSession.builder.appName("notebook"))
    >>> hg.start(store, spark=spark, home="home", bounded=True).wait()
    """
    from pyspark.sql import SparkSession

    from headgate.runtime import session

    builder = builder or SparkSession.builder
    named: dict[str, str] = {k: str(v) for k, v in _options(builder).items()}
    settings = {**named, **(conf or {})}
    protect_settings(settings)
    if session.has_session():
        found = session.equipped(SparkSession.builder.getOrCreate(), copy=True)
        _set(found, settings, master)
        return found
    session.check_environment(settings)
    return session.make_session(builder, parallelism=None, master=master, conf=settings)


def session_for_job(
    spark: SparkSession | None, *, master: str | None = None, conf: Mapping[str, str]
) -> SparkSession | None:
    """A copy of the session that there is, for one job; None if none is there yet."""
    from pyspark.sql import SparkSession

    from headgate.runtime import session

    if spark is None and not session.has_session():
        return None
    found = session.equipped(spark or SparkSession.builder.getOrCreate(), copy=True)
    _set(found, conf, master)
    return found


def _set(spark: SparkSession, conf: Mapping[str, str], master: str | None) -> None:
    """Set what can still be set; what cannot and is another is refused by its name."""
    from headgate.runtime.spark_settings import EXTENSIONS, MASTER, refuse_conflicts

    refuse_conflicts(conf)
    context = dict(spark.sparkContext.getConf().getAll())
    wanted = {**conf, **({MASTER: master} if master else {})}
    for name, value in wanted.items():
        if name in ("spark.app.name", EXTENSIONS) and name in context:
            continue
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)
        elif context.get(name) != value:
            raise UsageError(
                f"{name} cannot be set in a session that runs",
                got=value,
                remedy="set it where the session is made, for instance with hg.spark_session",
            )


def _options(builder: Any) -> dict[str, Any]:
    return dict(builder._options)
