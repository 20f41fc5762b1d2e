"""A failure in words, from a report or from all that was said."""

from __future__ import annotations

from dataclasses import replace

from headgate.base.secrets import redact, shown
from headgate.failures.reasons import Failure
from headgate.failures.report import Report
from headgate.failures.sentences import failure_of
from headgate.failures.signs import read_text


def explain(failed: Report | str) -> Failure:
    """The reason with a sentence; secrets are not in it.

    >>> explain('... HEADGATE {"code": "TOPIC_MISSING", "path": "data/orders"}').sentence
    'there is no topic at data/orders'
    """
    found = failure_of(read_text(failed) if isinstance(failed, str) else failed)
    frames = tuple(redact(frame) for frame in found.frames)
    return replace(found, sentence=shown("", found.sentence), frames=frames)
