"""Why an exception was raised: by its class and, for those of the JVM, by the kernel's report."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaClass, JavaObject
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from headgate.base.coded import CodedFailure
from headgate.base.errors import StorageError
from headgate.failures import Failure, Report, explain, read_text
from headgate.jvm.gateway import PACKAGE

_DISKS = {
    errno.ENOSPC: "DISK_FULL",
    errno.EDQUOT: "DISK_FULL",
    errno.EROFS: "READ_ONLY",
}
_DENIED = ("PermissionDeniedError", "UnauthenticatedError")
# a call into the JVM that gets no answer
_NO_ANSWER = (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError, BrokenPipeError)


def explain_failure(error: BaseException) -> Failure:
    """The reason for an exception of Spark's, the kernel's or ours, with a sentence."""
    return explain(failure_report(error))


def failure_report(error: BaseException) -> Report:
    """The code of an exception, with all that its sentence needs."""
    if isinstance(error, _NO_ANSWER) or type(error) is Py4JError:
        return Report("DRIVER_GONE")
    known = None
    for one in _chain(error):
        if isinstance(one, CodedFailure):
            return Report(one.code, one.fields)
        if isinstance(one, StorageError):
            return _storage(one)
        if (java := _java(one)) is not None:
            known = _from_kernel(java)
            break
    if known is not None and known.code is not None:
        return known
    text = read_text(failure_text(error))
    return text if known is None or text.code else known


def failure_text(error: BaseException) -> str:
    """All that an exception says: its text, the JVM's trace, and its causes."""
    return "\n".join(f"{one}\n{getattr(one, '_stackTrace', '') or ''}" for one in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it came from, Python's and pyspark's."""
    one: Any = error
    while isinstance(one, BaseException):
        yield one
        one = getattr(one, "_cause", None) or one.__cause__


def _java(error: BaseException) -> JavaObject | None:
    found = error.java_exception if isinstance(error, Py4JJavaError) else None
    return found or getattr(error, "_origin", None)


def _from_kernel(java: JavaObject) -> Report | None:
    """What the kernel says of a Java exception; nothing if it is gone, or is not in this JVM."""
    try:
        api = JavaClass(f"{PACKAGE}.api.FailureApi", java._gateway_client)
        return Report.from_json(str(api.report(java)))
    except Exception:
        return None


def _storage(error: StorageError) -> Report:
    """A file of the home that the driver could not read or write."""
    for one in _chain(error):
        if type(one).__module__.startswith("obstore"):  # the client of all object stores
            denied = type(one).__name__ in _DENIED
            return Report("STORE_DENIED" if denied else "STORE_UNREACHABLE", said=error.message)
    numbers = (one.errno for one in _chain(error) if isinstance(one, OSError))
    code = next((_DISKS[number] for number in numbers if number in _DISKS), None)
    return Report(code or "STORAGE", said=error.message)
