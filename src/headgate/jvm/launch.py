"""Starting Spark's JVM: with an archive of its classes, and at once.

PySpark runs `spark-submit`, a shell script that starts a JVM (Spark's launcher) to put together
the command of another one. That takes a second. Where nothing is set that the launcher would look
at, its command is known, and run without it. All else goes PySpark's own way.
"""

from __future__ import annotations

import atexit
import os
import platform
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext, java_gateway

from headgate.base.errors import HeadgateError
from headgate.jvm.class_archive import java_options
from headgate.jvm.java import JavaHome
from headgate.jvm.spark_jars import find_spark_jars

FIRST_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m")
"""For a JVM that lives for seconds: the second compiler costs it more than it gains.

With the first one alone Java keeps 48 MB for compiled code. Spark needs twice that: it would drop
and compile the same methods again and again.
"""
_SPARK = "4.2.0"
_MEMORY, _JAVA_OPTIONS = "spark.driver.memory", "spark.driver.extraJavaOptions"
_OPTIONS, _PORT, _SECRET = "SPARK_SUBMIT_OPTS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
"""The one flag of Spark's launcher that is left out: Java warns of the module on every start, and
only the linear algebra of spark.ml is quicker with it (it has a way without)."""
# What else Spark's launcher always adds (JavaModuleOptions); a test compares.
_MODULES = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens=java.base/{name}=ALL-UNNAMED"
        for name in (
            "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
            "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref",
            "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar",
        )
    ),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
]  # fmt: skip
# Variables that the launcher's JVM does not look at; others that begin with SPARK_ are its own.
_HARMLESS = {
    _OPTIONS, "SPARK_LAUNCHER_OPTS", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_HOSTNAME",
    "SPARK_PUBLIC_DNS", "SPARK_USER", "SPARK_REMOTE",
}  # fmt: skip
_ITS_OWN = {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS"}
# Settings that change the command, or that ask for another one.
_DECIDING = ("spark.driver.extra", "spark.driver.default", "spark.submit.", "spark.remote",
             "spark.api.mode")  # fmt: skip


def begin_jvm(java: JavaHome, settings: Mapping[str, str], *, brief: bool = False) -> None:
    """Let the JVM start beside what this process does before it calls `start_jvm` with the same.

    If settings or variables are others by then, it is ended, and another one started.
    """
    if SparkContext._gateway is not None or _PORT in os.environ or _begun:
        return
    command = _command(java, settings, brief=brief)
    if command is not None:
        _begun.append(_Begun(command))
        atexit.register(_drop)


def start_jvm(java: JavaHome, settings: Mapping[str, str], *, brief: bool = False) -> None:
    """Start the JVM of this process, unless it has one; `brief` if it will soon end.

    What fails here fails as it would in PySpark.
    """
    if SparkContext._gateway is not None or _PORT in os.environ:
        _drop()
        return
    command = _command(java, settings, brief=brief)
    if command is not None:
        gateway = _run(command)
    else:
        _drop()
        options = _options(java, brief=brief)
        given = os.environ.get(_OPTIONS, "")
        with _environment({_OPTIONS: f"{shlex.join(options)} {given}".strip()}):
            gateway = _connect(_conf(settings))
    SparkContext._ensure_initialized(gateway=gateway)


def _options(java: JavaHome, *, brief: bool) -> list[str]:
    return [*java_options(java), *(FIRST_COMPILER if brief else ())]


def _command(java: JavaHome, settings: Mapping[str, str], *, brief: bool) -> list[str] | None:
    return known_command(java, settings, _options(java, brief=brief))


def known_command(
    java: JavaHome, settings: Mapping[str, str], options: list[str]
) -> list[str] | None:
    """The command that Spark's launcher would make; None if it has more to look at than we know.

    >>> from headgate.jvm.java import Origin
    >>> java = JavaHome(Path("/opt/jdk"), "21.0.8", Origin.JAVA_HOME)
    >>> known_command(java, {"spark.driver.extraClassPath": "/my.jar"}, []) is None
    True
    """
    environment = os.environ
    conf = Path(pyspark.__file__).parent / "conf"
    try:
        jars = find_spark_jars()
        given = shlex.split(environment.get(_OPTIONS, ""))
        own = shlex.split(settings.get(_JAVA_OPTIONS, ""))
    except (HeadgateError, ValueError):
        return None  # the launcher says what is wrong
    if (
        platform.system() not in ("Linux", "Darwin")
        or jars.spark != _SPARK
        or conf.exists()
        or any(name.startswith("SPARK_") and name not in _HARMLESS for name in environment)
        or any(environment.get(name) for name in _ITS_OWN)
        or any(name.startswith(_DECIDING) and name != _JAVA_OPTIONS for name in settings)
        or any(option.startswith("-Xmx") for option in own)
        or _MEMORY not in settings
    ):
        return None
    first = sorted(str(jar) for jar in jars.folder.glob("slf4j-api-*.jar"))
    pairs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [
        str(java.executable),
        "-cp", ":".join([str(conf), *first, f"{jars.folder}/*"]),
        *options, *given, f"-Xmx{settings[_MEMORY]}", *own, *_MODULES,
        "org.apache.spark.deploy.SparkSubmit", *pairs, "pyspark-shell",
    ]  # fmt: skip


def _connect(conf: SparkConf | None = None) -> Any:
    return java_gateway.launch_gateway(conf)  # type: ignore[no-untyped-call]


def _conf(settings: Mapping[str, str]) -> SparkConf:
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    return conf


def _run(command: list[str]) -> Any:
    begun = _taken(command) or _Begun(command)
    try:
        port, secret = _address(_wait_for(begun.answer, begun.process))
    except BaseException:
        # interrupted: a JVM that finds no place for its address would live on for ever
        begun.end()
        raise
    shutil.rmtree(begun.folder, ignore_errors=True)
    with _environment({_PORT: str(port), _SECRET: secret}):
        gateway = _connect()
    gateway.proc = begun.process
    return gateway


class _Begun:
    """A JVM that starts, and will write down its address."""

    def __init__(self, command: list[str]) -> None:
        self.command, self.environment = command, dict(os.environ)
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-"))
        self.answer = self.folder / "address"
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # the JVM ends when we do
                env={
                    **os.environ,
                    # as spark-submit and the scripts behind it set them
                    "SPARK_HOME": str(Path(pyspark.__file__).parent),
                    "PYTHONHASHSEED": "0",
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self.answer),
                },
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
            )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


_begun: list[_Begun] = []


def _taken(command: list[str]) -> _Begun | None:
    """The JVM that was begun, if it is the one that is wanted now; another one is ended."""
    if _begun and _begun[-1].command == command and _begun[-1].environment == dict(os.environ):
        return _begun.pop()
    _drop()
    return None


def _drop() -> None:
    """End a JVM that was begun and is not needed."""
    while _begun:
        _begun.pop().end()


def _wait_for(answer: Path, process: subprocess.Popen[bytes]) -> bytes:
    while not answer.exists():
        if process.poll() is not None:
            raise HeadgateError(
                f"Spark's JVM ended with code {process.returncode} before it was up",
                code="DRIVER_GONE",
                remedy="see what it said above; `headgate doctor --live` looks for a reason",
            )
        time.sleep(0.01)
    return answer.read_bytes()


def _address(answer: bytes) -> tuple[int, str]:
    """Port and secret, as Spark's PythonGatewayServer writes them down."""
    port, length = struct.unpack("!ii", answer[:8])
    return port, answer[8 : 8 + length].decode()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
