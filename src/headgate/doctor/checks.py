"""What `headgate doctor` looks at: everything a job needs before Spark is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headgate.base.errors import HeadgateError
from headgate.doctor.check import Check
from headgate.doctor.homes import remote_checks
from headgate.home.files import open_files
from headgate.jvm.class_archive import VARIABLE, Use, archive_path, use
from headgate.jvm.java import find_java
from headgate.jvm.spark_jars import KERNEL_JAR, find_spark_jars, read_kernel_jar

_GIB = 1024**3
_MEMORY_HINT, _DISK_HINT = 4 * _GIB, 5 * _GIB
_OLDEST_PYTHON = (3, 11)


def run_checks(
    home: str | None = None,
    live: bool = False,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> list[Check]:
    """Look at everything once; `live` also starts Java, writes to a remote home, asks brokers.

    `master` and `conf` are for the Spark that writes there.

    >>> [check.name for check in run_checks()][:3]
    ['python', 'java', 'pyspark']
    """
    home = home or os.environ.get("HEADGATE_HOME") or ".headgate"
    checks: list[Callable[[], Check]] = [
        _python,
        lambda: _java(live),
        _pyspark,
        _scala,
        _kernel,
        _classes,
        _worker_python,
        _connect,
    ]
    return [
        *(check() for check in checks),
        *_home(home, live, master, conf or {}),
        _memory(),
        _disk(home),
        *(_brokers(home) if live else ()),
    ]


def _python() -> Check:
    found = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info[:2] >= _OLDEST_PYTHON
    return Check("python", ok, f"{found} ({sys.executable})", None if ok else "use Python 3.11+")


def _java(live: bool) -> Check:
    try:
        java = find_java()
    except HeadgateError as error:
        return _failed("java", error)
    detail = f"{java.version} from {java.origin.value} ({java.path})"
    if live:
        try:
            command = [str(java.executable), "-version"]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            return Check("java", False, f"{detail} does not start: {error}", "install Java again")
    return Check("java", True, detail, java.note)


def _pyspark() -> Check:
    try:
        package = version("pyspark")
        jars = find_spark_jars()
    except PackageNotFoundError:
        return Check("pyspark", False, "not installed", "pip install headgate brings it")
    except HeadgateError as error:
        return _failed("pyspark", error)
    if jars.spark != package:
        return Check(
            "pyspark",
            False,
            f"the package is {package}, but the Spark in {jars.folder} is {jars.spark}",
            "unset SPARK_HOME or point it at a Spark of the package's version",
        )
    return Check("pyspark", True, package)


def _scala() -> Check:
    try:
        jars = find_spark_jars()
    except HeadgateError as error:
        return _failed("scala", error)
    return Check("scala", True, f"{jars.scala} (in {jars.folder})")


def _kernel() -> Check:
    kernel = read_kernel_jar()
    if kernel is None:
        return Check(
            "kernel",
            False,
            f"there is no kernel jar at {KERNEL_JAR}",
            "in a checkout: make kernel; else install headgate again",
        )
    built_for = f"built for Spark {kernel.spark}, Scala {kernel.scala}"
    try:
        jars = find_spark_jars()
    except HeadgateError as error:
        return _failed("kernel", error)
    if (kernel.spark, kernel.scala) != (jars.spark, jars.scala):
        return Check(
            "kernel",
            False,
            f"{built_for}, but this is Spark {jars.spark}, Scala {jars.scala}",
            f"install pyspark=={kernel.spark}, or rebuild in a checkout: make kernel",
        )
    return Check("kernel", True, built_for)


def _classes() -> Check:
    try:
        allowed, path = use(), archive_path(find_java(), find_spark_jars())
    except HeadgateError as error:
        return _failed("classes", error)
    if allowed is Use.OFF:
        return Check("classes", True, f"no archive is used ({VARIABLE}=off)")
    if path.exists():
        return Check("classes", True, f"Spark's are in {path}")
    hint = "`headgate doctor --warm` makes an archive of them: Spark starts in half the time"
    return Check("classes", True, "no archive of Spark's classes yet", hint)


def _worker_python() -> Check:
    """Spark starts Python workers by PYSPARK_PYTHON; another minor version fails at run time."""
    name = "pyspark_python"
    program = os.environ.get("PYSPARK_PYTHON")
    if not program:
        return Check(name, True, f"not set: workers run {sys.executable}")
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        ran = subprocess.run(
            [program, "-c", code], check=True, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        remedy = f"unset PYSPARK_PYTHON or set it to {sys.executable}"
        return Check(name, False, f"{program} does not run: {error}", remedy)
    driver, worker = f"{sys.version_info[0]}.{sys.version_info[1]}", ran.stdout.strip()
    if driver != worker:
        remedy = f"unset PYSPARK_PYTHON or set it to a Python {driver}"
        return Check(name, False, f"{program} is Python {worker}, the driver is {driver}", remedy)
    return Check(name, True, f"{program} (Python {worker})")


def _connect() -> Check:
    for variable in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        if value := os.environ.get(variable):
            return Check(
                "spark_connect",
                False,
                f"{variable} is set to {value}: Spark Connect and serverless Spark give no access "
                "to the JVM, which Headgate's operators need",
                f"unset {variable} and run on local, standalone, YARN or Kubernetes",
            )
    return Check("spark_connect", True, "not in use (it is not supported)")


def _home(home: str, live: bool, master: str | None, conf: Mapping[str, str]) -> list[Check]:
    if "://" in home and not home.startswith("file:"):
        return list(remote_checks(home, live, master=master, conf=conf))
    return [_folder(Path(open_files(home).url))]


def _folder(path: Path) -> Check:
    existing = _nearest_existing(path)
    remedy = "choose another with --home or HEADGATE_HOME, or change its rights"
    if not existing.is_dir():
        return Check("home", False, f"{existing} is not a folder", remedy)
    try:
        # Rights can lie (read-only mounts, root): only a write tells. It leaves nothing behind.
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Check("home", False, f"cannot write in {existing} ({error.strerror})", remedy)
    suffix = "" if existing == path else " (does not exist yet, can be created)"
    return Check("home", True, f"{path} is writable{suffix}")


def _brokers(home: str) -> list[Check]:
    from headgate.doctor.brokers import broker_checks

    try:
        return list(broker_checks(home))
    except (HeadgateError, OSError):
        return []  # a home that cannot be read has its own check


def _memory() -> Check:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return Check("memory", True, "unknown")
    hint = "give Spark less with spark.driver.memory" if size < _MEMORY_HINT else None
    return Check("memory", True, f"{size / _GIB:.1f} GiB, {os.cpu_count()} cores", hint)


def _disk(home: str) -> Check:
    local = "." if "://" in home and not home.startswith("file:") else open_files(home).url
    places = {_nearest_existing(Path(local)), _scratch()}
    free = {path: shutil.disk_usage(path).free for path in places if path.exists()}
    detail = ", ".join(f"{size / _GIB:.1f} GiB free at {path}" for path, size in free.items())
    low = any(size < _DISK_HINT for size in free.values())
    return Check("disk", True, detail, "state and shuffles may need more room" if low else None)


def _scratch() -> Path:
    """Where Spark puts shuffle files and the working copies of state stores."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())


def _nearest_existing(path: Path) -> Path:
    """The path itself if it exists, else the first of its parents that does."""
    return next(found for found in (path, *path.absolute().parents) if found.exists())


def _failed(name: str, error: HeadgateError) -> Check:
    got = f" ({error.got})" if error.got else ""
    return Check(name, False, f"{error.message}{got}", error.remedy)
