"""Every code of an error with what it means: those of commands and graphs, and a job's reasons."""

from __future__ import annotations

import os
from dataclasses import dataclass

from headgate.failures.reasons import Reason

DOCS = "HEADGATE_DOCS"
"""The address of the documentation site, for who has it on a server."""


@dataclass(frozen=True)
class Code:
    """A code as people read it."""

    name: str
    meaning: str
    remedy: str
    page: str = "errors"
    may_pass: bool | None = None
    """For a reason why a job failed: whether trying again can help."""

    @property
    def anchor(self) -> str:
        """Its place in the documents.

        >>> code_named("USAGE").anchor, code_named("TOPIC_MISSING").anchor
        ('errors/#usage', 'failures/#topic_missing')
        """
        return f"{self.page}/#{self.name.lower()}"


CODES = (
    Code(
        "USAGE",
        "an option, argument, param or setting is wrong, and nothing was done",
        "correct it: the message says what is required and what was given; `headgate VERB --help` "
        "and the API reference list what is available",
    ),
    Code(
        "INVALID_GRAPH",
        "the job's graph is not valid, and nothing was started",
        "correct the line named at the end of the message; `headgate check` rebuilds the graph "
        "without starting the job",
    ),
    Code(
        "NOT_FOUND",
        "a job, topic, file, step or snapshot does not exist",
        "check its name, and that --home names the right home: `headgate list` lists a home's "
        "jobs, `headgate checkpoint list` and `headgate savepoint list` its snapshots",
    ),
    Code(
        "REFUSED",
        "state or output would be at risk, so nothing was done",
        "read what would be lost; if an option allows it, the message names that option",
    ),
    Code(
        "JOB_FAILED",
        "the job ran and stopped with a failure that has no more specific reason",
        "see `headgate errors JOB` and `headgate logs JOB`",
    ),
    Code(
        "OPERATION",
        "a savepoint, a stop or another operation on a running job failed or was cancelled",
        "the job itself may be fine: see `headgate show JOB`, fix what the message says, and try "
        "again",
    ),
    Code(
        "START_FAILED",
        "a job was started in the background but is not running",
        "see its log for the reason: the message names the file",
    ),
    Code(
        "PROCESS_GONE",
        "the process that was driving a job disappeared: it was killed, or its machine went down",
        "start the job again with the same command: it continues where it left off, and nothing is "
        "lost or written twice",
    ),
    Code(
        "LOCKED",
        "another process is holding or changing the same file in the home",
        "wait for the other headgate command to finish, then try again",
    ),
    Code(
        "DAMAGED",
        "a file in the home or in a snapshot is missing, or is not what Headgate wrote",
        "restore the file from a backup, or start from another snapshot; `headgate checkpoint "
        "verify` and `headgate savepoint verify` read every file",
    ),
    Code(
        "NEWER_FORMAT",
        "a file was written by a newer Headgate",
        "upgrade Headgate on this machine",
    ),
    Code(
        "INSTALLATION",
        "Java, Spark or the kernel is missing, too old, or unusable",
        "`headgate doctor` checks each of them and says what to do",
    ),
    Code(
        "JARS",
        "a client's jars could not be fetched, or do not match the lock file",
        "check the network, or put the jars in the folder that HEADGATE_JAR_CACHE names",
    ),
    Code(
        "LOCAL_BROKER",
        "a local broker, from `headgate broker`, cannot be started, stopped or found",
        "the message names its port, folder or log; choose different ones with --port and --dir",
    ),
    Code(
        "PULSAR_ADMIN",
        "Pulsar's REST interface refused a request for a reason that has no other code",
        "the message quotes Pulsar's answer; see the broker's log as well",
    ),
    Code(
        "NOT_ACKNOWLEDGED",
        "a broker did not accept all records of `headgate topic produce`",
        "the message says how many it accepted: fix the cause, then continue with the rest",
    ),
    Code(
        "NOT_IN_TIME",
        "something did not finish in the time allowed; whatever was started continues",
        "wait longer, with --timeout or with `headgate op wait`",
    ),
    Code(
        "UNEXPECTED",
        "something happened that Headgate did not expect: a bug in Headgate or in a library",
        "run the command again with --debug, and report the error together with the output",
    ),
    Code(
        "HEADGATE",
        "one of your own steps or sinks raised a plain HeadgateError",
        "the message says what to do; a `code` of your own makes the error easier to find",
    ),
)
"""Codes of errors that are not a job's failure."""

_BY_NAME = {
    **{
        reason.name: Code(
            reason.name, reason.text, reason.remedy, "failures", may_pass=reason.retryable
        )
        for reason in Reason
    },
    **{code.name: code for code in CODES},
}


def code_names() -> tuple[str, ...]:
    """The names of all codes: first those that are not a job's failure."""
    return (*(code.name for code in CODES), *(reason.name for reason in Reason))


def code_named(name: str) -> Code | None:
    """What is known of a code; nothing of one that a user's own step has.

    >>> code_named("DISK_FULL").meaning, code_named("MINE") is None
    ('a disk is full', True)
    """
    return _BY_NAME.get(name)


def where_explained(name: str) -> str | None:
    """Where to read about a code: an address if the site has one, else a command.

    >>> where_explained("USAGE")
    'headgate explain USAGE'
    """
    code = code_named(name)
    if code is None:
        return None
    site = os.environ.get(DOCS, "").rstrip("/")
    return f"{site}/{code.anchor}" if site else f"headgate explain {code.name}"
