"""A command that is killed with -9 at its n-th write: python -m tests.dead_letters.killed N ARGS"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from headgate.cli.main import invoke
from headgate.connectors.kafka.topic import KafkaTopic
from headgate.connectors.log.files import TopicFiles
from headgate.runtime import replay

CHUNK = 100


def dying(write: Any, at: int) -> Any:
    left = at

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return write(*args, **options)

    return counted


if __name__ == "__main__":
    replay.CHUNK = CHUNK
    # of a log a chunk is a file that is renamed in, of Kafka the records of a transaction
    chunks = int(sys.argv[1])
    TopicFiles._publish = dying(TopicFiles._publish, chunks)  # type: ignore[method-assign]
    KafkaTopic._produce = dying(  # type: ignore[method-assign]
        KafkaTopic._produce, chunks * CHUNK + CHUNK // 2
    )
    sys.exit(invoke(sys.argv[2:]))
