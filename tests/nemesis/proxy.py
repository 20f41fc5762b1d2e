"""A TCP proxy between a job and its broker that can break connections, and single requests.

It runs on a thread of its own. Of Kafka it understands how requests and answers are framed, which
is enough to lose, delay, repeat or hold back one request by its kind.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeVar

from headgate.brokers.process import HOST, free_port

PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN = 0, 22, 24
ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 25, 26, 28
API_NAMES = {
    PRODUCE: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 9: "OffsetFetch",
    10: "FindCoordinator", INIT_PRODUCER_ID: "InitProducerId",
    ADD_PARTITIONS_TO_TXN: "AddPartitionsToTxn", ADD_OFFSETS_TO_TXN: "AddOffsetsToTxn",
    END_TXN: "EndTxn", TXN_OFFSET_COMMIT: "TxnOffsetCommit",
}  # fmt: skip

Way = Literal["up", "down"]
"""Up is from the job to the broker."""
WAYS: tuple[Way, ...] = ("up", "down")
_PIECE = 65536
_T = TypeVar("_T")


class Do(StrEnum):
    """What happens to a request, or to its answer.

    An answer that is lost takes its connection along: on a connection answers are in order, so a
    client that misses one hangs up itself.
    """

    LOSE_ANSWER = "lose the answer of"
    DELAY_ANSWER = "delay the answer of"
    REPEAT_ANSWER = "repeat the answer of"
    LOSE_REQUEST = "lose"
    DELAY_REQUEST = "delay"
    HOLD_REQUEST = "hold back"
    """Keep the request, and break its connection; `Proxy.deliver` sends it later."""
    MEET_REQUEST = "meet"
    """Call `then`, before the request goes on."""


@dataclass
class Rule:
    """What happens to the next `times` requests of a kind."""

    api: int
    do: Do
    times: int = 1
    seconds: float = 0.0
    then: Callable[[], None] | None = None
    met: int = 0

    def __str__(self) -> str:
        return f"{self.do} {API_NAMES.get(self.api, self.api)}"


@dataclass(frozen=True)
class Held:
    """A request that was kept, as it was sent."""

    api: int
    frame: bytes


@dataclass(eq=False)
class _Link:
    """One connection of a client, and ours to the broker."""

    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    asked: dict[bytes, int] = field(default_factory=dict)
    """The kind of each request that has no answer yet, by its correlation id."""

    def abort(self) -> None:
        for writer in (self.client, self.broker):
            _abort(writer)


class Proxy:
    """Listens on `port`, and passes on to `target`, both on loopback."""

    def __init__(self, target: int, *, port: int | None = None, kafka: bool = False) -> None:
        self.target, self.port, self._kafka = target, port or free_port(), kafka
        self.held: list[Held] = []
        self._rules: list[Rule] = []
        self._links: set[_Link] = set()
        self._refuses = False
        self._delay = {"up": 0.0, "down": 0.0}
        self._rate: float | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> Proxy:
        self._thread.start()
        assert self._ready.wait(30), "the proxy does not start"
        return self

    def __exit__(self, *ended: object) -> None:
        self.heal()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # What may be done to it, from any thread.

    def heal(self) -> None:
        """Be a plain proxy again; connections that are broken stay so."""

        async def heal() -> None:
            self._refuses, self._rate = False, None
            self._delay = {"up": 0.0, "down": 0.0}
            self._rules.clear()
            for way in WAYS:
                self._gates[way].set()

        self._do(heal())

    def reset(self) -> int:
        """Break all connections; gives how many there were."""

        async def reset() -> int:
            links = list(self._links)
            for link in links:
                link.abort()
            return len(links)

        return self._do(reset())

    def refuse(self, refuse: bool = True) -> None:
        """Break connections as soon as they are made."""
        self._refuses = refuse

    def shut(self, *ways: Way) -> None:
        """Pass on nothing that way, without a word; bytes wait until it heals."""

        async def shut() -> None:
            for way in ways:
                self._gates[way].clear()

        self._do(shut())

    def delay(self, up: float, down: float) -> None:
        """Seconds that everything takes longer."""
        self._delay = {"up": up, "down": down}

    def limit(self, bytes_per_second: float | None) -> None:
        """How much each connection may carry, each way."""
        self._rate = bytes_per_second

    def add(self, rule: Rule) -> Rule:
        """Let a rule hold from now on."""

        async def add() -> Rule:
            assert self._kafka, "only Kafka's requests are understood"
            self._rules.append(rule)
            return rule

        return self._do(add())

    def deliver(self, held: Held) -> bytes:
        """Send a request that was held back, on a connection of its own; gives the answer."""

        async def deliver() -> bytes:
            reader, writer = await asyncio.open_connection(HOST, self.target)
            writer.write(held.frame)
            answer = await _frame(reader)
            writer.close()
            return answer

        return self._do(deliver())

    # How it does it, all on the loop's thread.

    def _do(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # Connections break here all the time. Tracebacks of that are of no use, and those of two
        # threads at once break the parser of Python 3.11 (gh-106905).
        self._loop.set_exception_handler(lambda loop, context: None)
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        self._server.close()
        self._loop.run_until_complete(self._hang_up())
        self._loop.close()

    async def _hang_up(self) -> None:
        """Let every connection end by itself: a task that is cancelled complains."""
        for link in list(self._links):
            link.abort()
        ours = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not ours]
        if others:
            await asyncio.wait(others, timeout=2)

    async def _listen(self) -> None:
        self._gates = {way: asyncio.Event() for way in WAYS}
        for gate in self._gates.values():
            gate.set()
        self._server = await asyncio.start_server(self._serve, HOST, self.port)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            if self._refuses:
                raise ConnectionRefusedError
            answers, broker = await asyncio.open_connection(HOST, self.target)
        except OSError:
            _abort(client)
            return
        link = _Link(client, broker)
        self._links.add(link)
        pumps = [
            asyncio.create_task(self._pump(link, "up", reader, broker)),
            asyncio.create_task(self._pump(link, "down", answers, client)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._links.discard(link)
            link.abort()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(
        self, link: _Link, way: Way, source: asyncio.StreamReader, to: asyncio.StreamWriter
    ) -> None:
        """Read on while what was read before waits for its time."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)
        reading = asyncio.create_task(self._read(link, way, source, waiting))
        writing = asyncio.create_task(self._write(way, waiting, to))
        try:
            await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and reading.exception() is None:
                await writing  # what was read before the end goes on
        except OSError:
            pass
        finally:
            reading.cancel()
            writing.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

    async def _read(
        self,
        link: _Link,
        way: Way,
        source: asyncio.StreamReader,
        waiting: asyncio.Queue[tuple[float, bytes]],
    ) -> None:
        while data := await (_frame(source) if self._kafka else source.read(_PIECE)):
            more, copies = await self._judge(link, way, data) if self._kafka else (0.0, 1)
            due = self._loop.time() + self._delay[way] + more
            for _ in range(copies):
                await waiting.put((due, data))
        await waiting.put((0.0, b""))

    async def _write(
        self, way: Way, waiting: asyncio.Queue[tuple[float, bytes]], to: asyncio.StreamWriter
    ) -> None:
        while True:
            due, data = await waiting.get()
            if not data:
                return
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            await self._gates[way].wait()
            rate = self._rate
            if rate is None:
                to.write(data)
            else:
                piece = max(1, int(rate / 10))
                for at in range(0, len(data), piece):
                    to.write(data[at : at + piece])
                    await asyncio.sleep(piece / rate)
            await to.drain()

    async def _judge(self, link: _Link, way: Way, frame: bytes) -> tuple[float, int]:
        """How much later a request or an answer goes on, and how often; raises if it does not."""
        if way == "up":
            api = struct.unpack(">h", frame[4:6])[0]
            link.asked[frame[8:12]] = api
        else:
            api = link.asked.pop(frame[4:8], -1)
        rule = self._rule(api, way)
        if rule is None:
            return 0.0, 1
        match rule.do:
            case Do.DELAY_ANSWER | Do.DELAY_REQUEST:
                return rule.seconds, 1
            case Do.REPEAT_ANSWER:
                return 0.0, 2
            case Do.MEET_REQUEST:
                assert rule.then is not None
                await self._loop.run_in_executor(None, rule.then)
                return 0.0, 1
            case Do.HOLD_REQUEST:
                self.held.append(Held(api, frame))
        raise ConnectionResetError

    def _rule(self, api: int, way: Way) -> Rule | None:
        for rule in self._rules:
            answers = rule.do in (Do.LOSE_ANSWER, Do.DELAY_ANSWER, Do.REPEAT_ANSWER)
            if rule.api == api and rule.met < rule.times and answers == (way == "down"):
                rule.met += 1
                return rule
        return None


def _abort(writer: asyncio.StreamWriter) -> None:
    """Hang up with a reset, as a host does that knows nothing of the connection any more."""
    made = writer.get_extra_info("socket")
    if made is not None and made.fileno() >= 0:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _frame(source: asyncio.StreamReader) -> bytes:
    """One request or answer of Kafka with its length; nothing at the end."""
    try:
        head = await source.readexactly(4)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return b""
    return head + await source.readexactly(struct.unpack(">i", head)[0])
