"""`make demo-pulsar`: the tutorials' store on Pulsar; killed, and restarted from a checkpoint."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pulsar
from generate import Round, Settings, Store
from show import (
    INPUTS,
    OUTPUTS,
    account,
    app,
    headgate,
    local_broker,
    refuse_if_ended,
    say,
    start,
    wait_for_checkpoints,
)

from headgate.brokers import PulsarBroker
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.home.layout import Home
from headgate.snapshots.snapshot import restorable


def main() -> int:
    """Start a broker, play the store against it, and tell where every order went."""
    options = _options()
    with local_broker(PulsarBroker, options.dir) as url:
        client = PulsarAccess(url).connect()
        try:
            return _Demo(url, client, options.dir / "home", options).play()
        finally:
            client.close()


class _Demo:
    def __init__(
        self, url: str, client: pulsar.Client, home: Path, options: argparse.Namespace
    ) -> None:
        self._client = client
        self._home = home
        self._store = Store(
            Settings(users=options.users, items=options.items, orders=options.orders)
        )
        self._topics = {name: f"{url}/{name}" for name in (*INPUTS, *OUTPUTS)}
        sets = [w for name, address in self._topics.items() for w in ("--set", f"{name}={address}")]
        self._command = ["run", app(), "--home", str(home), *sets]
        self._sent = 0

    def play(self) -> int:
        """The six points of the tutorial, in its order."""
        say("1. topics whose messages are kept for ever, and the first orders of the day in them")
        for address in self._topics.values():
            if headgate("topic", "create", address, "--partitions", "2", "--retention", "infinite"):
                return 1
        rounds = list(self._store.play())
        self._send(rounds[0], *INPUTS)
        if headgate("topic", "read", self._topics["orders"], "--limit", "3"):
            return 1

        say("2. the job: orders with users and items; state in RocksDB, a checkpoint every 5 s")
        job = start(*self._command)
        wait_for_checkpoints(job, self._home, 1)
        for made in rounds[1 : len(rounds) // 2]:
            self._send(made, *INPUTS)
            time.sleep(1)  # so that the job sees the day pass
        self._wait_until_out(job)
        say("3. enriched orders, and orders of users that nobody knows, in topics of their own")
        for name in ("enriched", "missing_users"):
            if headgate("topic", "read", self._topics[name], "--limit", "2"):
                return 1

        say(f"4. kill -9 of the job's process {job.pid}")
        job.kill()
        job.wait()
        say("5. more orders while it is down, but not one user or item")
        for made in rounds[len(rounds) // 2 :]:
            self._send(made, "orders")
        if headgate("checkpoint", "list", "store", "--home", str(self._home)):
            return 1

        chosen = self._newest()
        say(f"6. a new run from checkpoint {chosen}: the state of both tables comes from there")
        job = start(*self._command, "--from", f"ck:{chosen}")
        self._wait_until_out(job)
        job.send_signal(signal.SIGTERM)
        code = job.wait()
        code = code or headgate("checkpoint", "show", "store", "--home", str(self._home))
        read_again = self._read_again()
        print(f"users and items that the new run read: {read_again}", flush=True)
        seen = {name: count for name, count in self._out().items() if name in OUTPUTS}
        right = account(self._sent, seen, when_right="every order is there once")
        return code or right or int(read_again > 0)

    def _send(self, made: Round, *topics: str) -> None:
        failed: list[Any] = []
        parts: dict[str, Iterable[Any]] = {
            "users": made.users, "items": made.items, "orders": made.orders
        }  # fmt: skip
        for topic in ("users", "items", "orders"):
            if topic not in topics:
                continue
            producer = self._client.create_producer(
                topic, batching_enabled=True, block_if_queue_full=True
            )
            for record in parts[topic]:
                producer.send_async(
                    (record.value or "").encode(),  # nothing deletes the key
                    lambda result, _: failed.append(result) if result.name != "Ok" else None,
                    partition_key=record.key,
                )
            producer.flush()
            producer.close()
        if failed:
            raise SystemExit(f"demo: the broker did not take {len(failed)} messages: {failed[0]}")
        self._sent += len(made.orders)

    def _wait_until_out(self, job: subprocess.Popen[bytes]) -> None:
        """Until a checkpoint has every order that was sent, and so they are in the outputs."""
        while self._written() < self._sent:
            refuse_if_ended(job)
            time.sleep(0.5)

    def _written(self) -> int:
        run = Home(str(self._home)).job("store").current()
        record = run.latest_checkpoint() if run else None
        totals = record.totals if record else {}
        return sum(totals.get(name, {}).get("records_out", 0) for name in OUTPUTS)

    def _newest(self) -> int:
        run = Home(str(self._home)).job("store").current()
        assert run is not None
        return max(restorable(run))

    def _read_again(self) -> int:
        """What the current run read of the two tables, over all its checkpoints."""
        run = Home(str(self._home)).job("store").current()
        assert run is not None
        return sum(
            record.rows.get(table, {}).get("records_out", 0)
            for record in run.checkpoints()
            for table in ("users", "items")
        )

    def _out(self) -> Counter[str]:
        """How many messages are in each output."""
        seen: Counter[str] = Counter()
        for name in OUTPUTS:
            for partition in self._client.get_topic_partitions(
                f"persistent://public/default/{name}"
            ):
                reader = self._client.create_reader(partition, pulsar.MessageId.earliest)
                while reader.has_message_available():
                    reader.read_next()
                    seen[name] += 1
                reader.close()
        return seen


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("build/demo-pulsar"), help="where to work")
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--orders", type=int, default=50_000)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
