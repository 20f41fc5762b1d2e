"""Spark's settings: what Headgate needs, what it prefers, and what the user has given, in one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate import jvm
from headgate.base.errors import NotFoundError, UsageError
from headgate.base.java_properties import parse_properties
from headgate.jvm.spark_jars import find_spark_jars

JARS = "spark.jars"
EXTENSIONS = "spark.sql.extensions"
MASTER = "spark.master"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
DRIVER_JAVA = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"
# Spark's classes outgrow what Java first allows them: without room it stops four times to collect.
_JVM = "-XX:+UseParallelGC -XX:MetaspaceSize=256m"
# For a command of seconds, whose few collections need no threads of their own.
_BRIEF_JVM = "-XX:+UseSerialGC -XX:MetaspaceSize=256m"

# What the kernel's guarantees rest on: not for users to change.
FIXED = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
    ".state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # unique file names: a retried task never leaves a version that another one may load
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.statefulOperator.allowMultiple": "true",
    # a driver that lost its job's lease commits nothing any more
    "spark.sql.streaming.checkpointFileManagerClass": jvm.FILE_MANAGER,
    "spark.speculation": "false",
}
# Of a session that is there, these can still be set; the rest is its context's.
FIXED_BY_SESSION = {name: value for name, value in FIXED.items() if name != "spark.speculation"}
SESSION_DEFAULTS = {
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # two messages a store and batch; each task names the versions it has committed anyway, and a
    # batch without the version of one does not end
    "spark.sql.streaming.stateStore.commitValidation.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
_DEFAULTS = {
    **SESSION_DEFAULTS,
    # a step needs a dozen generated classes: with Spark's 100, larger jobs compile in every batch
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.executor.extraJavaOptions": _JVM,
    # an executor that died is noticed sooner than by three tries of five seconds
    "spark.shuffle.io.retryWait": "1s",
}
# These must be known when the driver's JVM starts.
_JVM_DEFAULTS = {
    DRIVER_MEMORY: "3g",
    DRIVER_JAVA: _JVM,
    "spark.ui.showConsoleProgress": "false",  # its launcher sets it for a Python that was first
}
# Without Spark's own pages nobody reads what it keeps for them, and writes down in every batch.
_NO_PAGES = {
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "40",
    "spark.ui.retainedTasks": "400",
    # never while a task runs: only when it has ended
    "spark.ui.liveUpdate.period": "-1ms",
}
# blocks do not leave the machine: to compress them, or to sum them up, costs more than it saves
_LOCAL = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.broadcast.compress": "false",
    "spark.broadcast.checksum": "false",
}
# ... and keeps of each task, for pages and for its status tracker; of a cluster we ask the tracker.
_NO_STATUS = {"spark.headgate.status.listeners": "false"}


def setting_origin(name: str) -> str | None:
    """Who has set one of Spark's settings: Headgate, by default or for good; nobody of us: None."""
    if name in FIXED or name == EXTENSIONS:
        return "headgate"
    ours = {*_DEFAULTS, *_JVM_DEFAULTS, *_LOCAL, *_NO_PAGES, *_NO_STATUS}
    return "default" if name in ours else None


def refuse_conflicts(given: Mapping[str, str], *, where: str = "") -> None:
    """Refuse settings that contradict what Headgate needs."""
    for name, needed in FIXED.items():
        if name in given and given[name] != needed:
            raise UsageError(
                f"{name} must be {needed}: Headgate's guarantees rest on it",
                got=f"{given[name]}{where}",
                remedy="leave it out",
            )


def for_the_jvm(
    conf: Mapping[str, str], master: str | None, log_options: str, *, brief: bool = False
) -> dict[str, str]:
    """What a driver's JVM is started with: the user's settings, and ours that it must start with.

    All else is set when the JVM has read the user's flags and files, so that none is replaced.
    """
    files = {**user_files(), **conf}
    settings = dict(conf)
    for name, value in {**_JVM_DEFAULTS, **({DRIVER_JAVA: _BRIEF_JVM} if brief else {})}.items():
        if name == DRIVER_MEMORY and "SPARK_DRIVER_MEMORY" in os.environ:
            continue
        settings[name] = files.get(name, value)
    if "log4j2.configurationFile" not in settings[DRIVER_JAVA]:
        settings[DRIVER_JAVA] = f"{settings[DRIVER_JAVA]} {log_options}".strip()
    if master is not None:
        settings[MASTER] = master
    return settings


def for_the_context(
    effective: Mapping[str, str], conf: Mapping[str, str], *, kernel: str | None, launched: bool
) -> dict[str, str]:
    """What a SparkContext is to have beyond the effective settings of the driver's JVM.

    `effective` is what flags, files and spark-submit have given, with packages that are resolved to
    jars; what `conf` has is in it if the JVM was `launched` with it. Lists are added to, and
    defaults are ours only where nobody has said anything.
    """
    given = {**effective, **conf}
    settings = {name: value for name, value in conf.items() if name not in (JARS, EXTENSIONS)}
    local, pages = given[MASTER].startswith("local["), given.get("spark.ui.enabled") == "true"
    defaults = {
        **_DEFAULTS,
        **({} if pages else _NO_PAGES),
        **(_LOCAL if local else {}),
        **(_NO_STATUS if local and not pages else {}),
    }
    settings |= {name: value for name, value in defaults.items() if name not in given}
    settings |= FIXED
    for name, ours in ((JARS, kernel), (EXTENSIONS, jvm.EXTENSIONS)):
        theirs = "" if launched else conf.get(name, "")
        settings[name] = merged(effective.get(name, ""), theirs, ours or "")
    return settings


def merged(*lists: str) -> str:
    """Lists with commas as one, in which nothing is twice.

    >>> merged("a.jar, b.jar", "", "b.jar,c.jar")
    'a.jar,b.jar,c.jar'
    """
    names = [name.strip() for text in lists for name in text.split(",")]
    return ",".join(dict.fromkeys(name for name in names if name))


def user_files() -> dict[str, str]:
    """Settings of spark-defaults.conf, or of the file of --properties-file in its place."""
    words = shlex.split(os.environ.get(SUBMIT_ARGS, ""))
    named = flag_value(words, "--properties-file")
    if named is not None:
        if not Path(named).is_file():
            raise NotFoundError(
                f"there is no file {named}", remedy="check the path after --properties-file"
            )
        found = _read(Path(named))
        return {**_read(_defaults_file()), **found} if "--load-spark-defaults" in words else found
    return _read(_defaults_file())


def flag_value(words: Sequence[str], flag: str) -> str | None:
    """The value of one of spark-submit's flags, the last one if it is there twice.

    >>> flag_value(["--jars", "a.jar", "--name=x"], "--name")
    'x'
    """
    found = None
    for at, word in enumerate(words):
        if word == flag and at + 1 < len(words):
            found = words[at + 1]
        elif word.startswith(f"{flag}="):
            found = word.partition("=")[2]
    return found


def _defaults_file() -> Path:
    folder = os.environ.get("SPARK_CONF_DIR")
    return (Path(folder) if folder else find_spark_jars().folder.parent / "conf") / (
        "spark-defaults.conf"
    )


def _read(file: Path) -> dict[str, str]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read ({error})", remedy="check the file") from error
    return {k: v.strip() for k, v in parse_properties(text).items() if k.startswith("spark.")}
