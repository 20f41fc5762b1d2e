"""The benchmarks: the same work through Headgate and through the engines it is measured by."""
