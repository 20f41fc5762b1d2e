"""Test drivers for jobs: the real kernel, no brokers."""

from headgate.testing.crash_safe import assert_crash_safe
from headgate.testing.job_driver import CrashPoint, Deleted, JobDriver

__all__ = ["CrashPoint", "Deleted", "JobDriver", "assert_crash_safe"]
