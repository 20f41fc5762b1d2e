"""Why a job failed: reasons as an enum, found by the codes of failures.

The kernel and the connectors name a code with fields; `jvm.explain_failure` finds that of any
exception.
"""

from headgate.failures.explain import explain
from headgate.failures.reasons import Failure, Reason
from headgate.failures.report import PYTHON, Report
from headgate.failures.sentences import broker_reason
from headgate.failures.signs import read_text

__all__ = ["PYTHON", "Failure", "Reason", "Report", "broker_reason", "explain", "read_text"]
