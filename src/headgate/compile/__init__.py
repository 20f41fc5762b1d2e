"""From a built job to one Spark query: DataFrames and kernel nodes, counters, sinks."""

from headgate.compile.compiled import CompiledJob, compile_job

__all__ = ["CompiledJob", "compile_job"]
