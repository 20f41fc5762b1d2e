"""A real YARN with one node manager, from Hadoop's own mini cluster, on loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from headgate.jvm.jars import fetch
from headgate.jvm.java import find_java
from headgate.jvm.spark_jars import find_spark_jars

_SCALA = """
import org.apache.hadoop.yarn.conf.YarnConfiguration
import org.apache.hadoop.yarn.server.MiniYARNCluster

object Mini {
  def main(args: Array[String]): Unit = {
    val conf = new YarnConfiguration()
    conf.set("yarn.scheduler.capacity.root.queues", "default")
    conf.set("yarn.scheduler.capacity.root.default.capacity", "100")
    conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0")
    conf.setInt("yarn.scheduler.minimum-allocation-mb", 256)
    conf.setInt("yarn.nodemanager.resource.memory-mb", 6144)
    conf.setInt("yarn.nodemanager.resource.cpu-vcores", 4)
    conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false)
    conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false)
    conf.setBoolean("yarn.nodemanager.disk-health-checker.enable", false)
    val cluster = new MiniYARNCluster("mini", 1, 1, 1)
    cluster.init(conf)
    cluster.start()
    val made = new java.io.File(args(0), "made.xml")
    val out = new java.io.FileOutputStream(made)
    cluster.getConfig.writeXml(out)
    out.close()
    made.renameTo(new java.io.File(args(0), "yarn-site.xml"))
    System.in.read()
  }
}
"""


class Yarn:
    """The processes of a YARN; `conf` is the folder that HADOOP_CONF_DIR names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True)
        mini, *needed = fetch(Path(__file__).with_name("yarn.lock"), quiet=True)
        jars, java = find_spark_jars().folder, str(find_java().executable)
        (folder / "Mini.scala").write_text(_SCALA)
        subprocess.run(
            [java, "-cp", f"{jars}/*", "scala.tools.nsc.Main", "-cp",
             os.pathsep.join(map(str, (mini, *jars.glob("hadoop-client-api-*.jar")))),
             "-usejavacp", "-d", str(folder), str(folder / "Mini.scala")],
            check=True,
        )  # fmt: skip
        with open(folder / "yarn.log", "wb") as log:
            self._process = subprocess.Popen(
                [java, "-Xmx1g", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp",
                 os.pathsep.join(map(str, (folder, mini, *needed, f"{jars}/*"))), "Mini",
                 str(self.conf)],
                cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 120
        while not (self.conf / "yarn-site.xml").exists():
            if self._process.poll() is not None or time.monotonic() > until:
                raise TimeoutError((folder / "yarn.log").read_text(errors="replace")[-3000:])
            time.sleep(0.2)

    def flags(self, attempts: int = 1) -> tuple[str, ...]:
        """Spark's flags for a small application in cluster mode."""
        jars = find_spark_jars().folder
        return ("--master", "yarn", "--deploy-mode", "cluster", "--driver-memory", "1g",
                "--executor-memory", "1g", "--num-executors", "1",
                "--conf", f"spark.yarn.jars=local:{jars}/*",
                "--conf", f"spark.yarn.stagingDir=file://{self.folder}/staging",
                "--conf", f"spark.yarn.maxAppAttempts={attempts}")  # fmt: skip

    def kill(self, main: str) -> None:
        """kill -9 of a container: of the one whose Java runs this class, and all it has started."""
        found = [
            os.getpgid(pid)
            for pid in self._processes()
            if main in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        ]
        (group,) = set(found)
        assert group != os.getpgid(self._process.pid), "a container has a group of its own"
        os.killpg(group, signal.SIGKILL)

    def logs(self) -> str:
        """What the containers have said, as far as it is on the disk."""
        found = sorted(self.folder.rglob("std*"))
        return "\n".join(f"{f}\n{f.read_text(errors='replace')[-3000:]}" for f in found)

    def stop(self) -> None:
        """End every process."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _processes(self) -> list[int]:
        """Those that work below the folder: containers are in sessions of their own."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if os.readlink(entry / "cwd").startswith(str(self.folder)):
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
        return found
