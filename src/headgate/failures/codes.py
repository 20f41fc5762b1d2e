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
        "an option, an argument, a param or a setting is wrong, and nothing was done",
        "correct it: the sentence names what must hold and what came; `headgate VERB --help` and "
        "the API reference list what there is",
    ),
    Code(
        "INVALID_GRAPH",
        "the job's graph is not valid, and nothing was started",
        "correct the line at the end of the sentence; `headgate check` builds the graph again "
        "without a start",
    ),
    Code(
        "NOT_FOUND",
        "a job, topic, file, step or snapshot is not there",
        "check its name, and that --home names the right home: `headgate list` shows the jobs of "
        "a home, `headgate checkpoint list` and `headgate savepoint list` the snapshots",
    ),
    Code(
        "REFUSED",
        "state or output would be at risk, so nothing was done",
        "read what would be lost; where there is an option that allows it, the sentence names it",
    ),
    Code(
        "JOB_FAILED",
        "the job ran and stopped with a failure that has no reason of its own",
        "see `headgate errors JOB` and `headgate logs JOB`",
    ),
    Code(
        "OPERATION",
        "a savepoint, a stop or another operation on a running job failed or was cancelled",
        "the job itself may be well: see `headgate show JOB`, mend what the sentence says, and "
        "ask again",
    ),
    Code(
        "START_FAILED",
        "a job was started in the background, and does not run",
        "its log has the reason: the sentence names the file",
    ),
    Code(
        "PROCESS_GONE",
        "the process that drove a job is gone without a word: it was killed, or its machine went "
        "down",
        "start the job again as it was started: it goes on where it was, and nothing is lost or "
        "written twice",
    ),
    Code(
        "LOCKED",
        "another process holds or changes the same file of the home",
        "wait for the other headgate command to end, then try again",
    ),
    Code(
        "DAMAGED",
        "a file of the home or of a snapshot is missing, or not what Headgate wrote",
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
        "Java, Spark or the kernel is missing, too old, or cannot be used",
        "`headgate doctor` looks at each of them and says what to do",
    ),
    Code(
        "JARS",
        "jars of a client could not be fetched, or are not those of the lock file",
        "check the network, or bring the jars in a folder that HEADGATE_JAR_CACHE names",
    ),
    Code(
        "LOCAL_BROKER",
        "a broker of this machine, of `headgate broker`, cannot be started, stopped or found",
        "the sentence names its port, folder or log; --port and --dir choose others",
    ),
    Code(
        "PULSAR_ADMIN",
        "Pulsar's REST interface refused a request for a reason of its own",
        "the sentence has what it said; see the broker's log, too",
    ),
    Code(
        "NOT_ACKNOWLEDGED",
        "a broker did not take all records of `headgate topic produce`",
        "the sentence says how many it took: go on behind them when its cause is gone",
    ),
    Code(
        "NOT_IN_TIME",
        "something was not finished in the time that it was given; what was begun goes on",
        "wait longer, with --timeout or with `headgate op wait`",
    ),
    Code(
        "UNEXPECTED",
        "something happened that Headgate does not expect: a defect of Headgate, or of a library",
        "run the command again with --debug, and report it with what that shows",
    ),
    Code(
        "HEADGATE",
        "an error that a step or sink of your own raised as a plain HeadgateError",
        "the sentence says what to do; a `code` of your own makes it easier to find",
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
