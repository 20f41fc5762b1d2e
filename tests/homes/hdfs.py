"""A real HDFS on loopback: Hadoop's mini cluster, as a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from headgate.brokers.process import free_port
from headgate.jvm.jars import fetch
from headgate.jvm.java import find_java
from headgate.jvm.spark_jars import find_spark_jars

_HERE = Path(__file__).parent


class HdfsServer:
    """A name node and a data node."""

    def __init__(self, folder: Path) -> None:
        (jar,) = fetch(_HERE / "hdfs.lock")
        self.url = f"hdfs://localhost:{free_port()}"
        self._log = folder / "hdfs.log"
        path = os.pathsep.join([str(jar), f"{find_spark_jars().folder}/*"])
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [str(find_java().executable), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", path,
                 str(_HERE / "MiniHdfs.java"), str(folder / "dfs"), self.url.rpartition(":")[2]],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"ready"):
                return
        raise AssertionError(self._log.read_text()[-2000:])

    def stop(self) -> None:
        """End the process; what it held goes with the test's folder."""
        self._process.kill()
        self._process.wait()
