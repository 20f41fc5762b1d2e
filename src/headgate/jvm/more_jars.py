"""Jars that a session needs beside the kernel's own, brought to it while it runs."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.jvm.gateway import java_list, kernel_api
from headgate.jvm.jars import fetch

_LOCKS = Path(__file__).parent / "locks"


def need_jars(spark: SparkSession, class_name: str, lock: str) -> None:
    """Bring the jars of a lock file to driver and executors, unless the class is there already.

    A user's own jars come first. The first time they may have to be downloaded.
    """
    jars = kernel_api(spark, "JarApi")
    if not jars.knows(class_name):
        paths = [str(path) for path in fetch(_LOCKS / lock)]
        jars.addUnlessKnown(spark._jsparkSession, class_name, java_list(spark, paths))
