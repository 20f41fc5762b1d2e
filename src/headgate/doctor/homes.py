"""Looks at a home that is no folder: by Python's client, and by Spark's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

from headgate.base.errors import HeadgateError
from headgate.doctor.check import Check
from headgate.home.files import Files, open_files


def remote_checks(
    home: str, live: bool, *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> Iterator[Check]:
    """Whether the address can be opened; `live`: whether both sides write, and conditions hold.

    >>> [check.detail for check in remote_checks("memory://doctor_doc", live=False)]
    ['memory://doctor_doc (memory; --live tries to write)']
    """
    protocol = home.split(":", 1)[0]
    remedy = f"check the address, its credentials and that there is a client for '{protocol}'"
    try:
        files = open_files(home)
        if not live:
            yield Check("home", True, f"{home} ({protocol}; --live tries to write)")
            return
        wrong = _tried(files)
    except Exception as error:  # each file system raises errors of its own
        said = error.message if isinstance(error, HeadgateError) else str(error)
        yield Check("home", False, f"{home}: {type(error).__name__}: {said}", remedy)
        return
    if wrong is not None:
        yield Check("home", False, f"{home}: {wrong}", _CONDITIONS)
        return
    yield Check("home", True, f"{home} is writable")
    if files.conditional:
        yield _by_spark(files, master, conf or {})


_CONDITIONS = "use a store that checks If-None-Match and If-Match when it writes an object"


def _tried(files: Files) -> str | None:
    """Write, replace under a condition, delete; what is wrong with the store's answers."""
    name = f".doctor-{uuid.uuid4().hex}"
    try:
        files.write_text(name, "headgate")
        if not files.conditional:
            return None
        if files.write_if(name, "again", None):
            return "the store replaces an object that was to be new"
        found = files.read_versioned(name)
        assert found is not None
        if not files.write_if(name, "changed", found[1]):
            return "the store does not replace an object that nobody has changed"
        if files.write_if(name, "changed twice", found[1]):
            return "the store replaces an object that somebody else has changed"
        return None
    finally:
        files.delete(name)


def _by_spark(files: Files, master: str | None, conf: Mapping[str, str]) -> Check:
    from headgate import jvm
    from headgate.runtime.session import session_for_reading

    remedy = "let Spark reach the store as Python does: see docs/deploy/s3.md"
    try:
        with session_for_reading(master=master, conf=conf) as spark:
            jvm.need_store(spark, files.url)
            wrong = jvm.try_store(spark, files.location(f".doctor-{uuid.uuid4().hex}"))
    except Exception as error:
        failure = jvm.explain_failure(error)
        return Check("home_spark", False, failure.sentence, failure.remedy or remedy)
    if wrong is not None:
        return Check("home_spark", False, wrong, _CONDITIONS)
    return Check("home_spark", True, f"Spark writes to {files.location()}, under conditions")
