"""Test drivers: jobs on the real kernel without brokers, process functions in plain Python."""

from headgate.testing.crash_safe import assert_crash_safe
from headgate.testing.job_driver import CrashPoint, JobDriver
from headgate.testing.postgres import PostgresServer
from headgate.testing.process_driver import ProcessDriver
from headgate.testing.records import Deleted

__all__ = [
    "CrashPoint",
    "Deleted",
    "JobDriver",
    "PostgresServer",
    "ProcessDriver",
    "assert_crash_safe",
]
