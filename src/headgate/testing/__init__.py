"""Test drivers for jobs: the real kernel, no brokers."""

from headgate.testing.job_driver import CrashPoint, Deleted, JobDriver

__all__ = ["CrashPoint", "Deleted", "JobDriver"]
