"""Signals in a real process: the first asks, a second Ctrl-C ends at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import time
from headgate.runtime.signals import StopRequest, signals
stop = StopRequest()
with signals(stop):
    print("ready", flush=True)
    while not stop:
        time.sleep(0.01)
    print("asked by", stop.reason, flush=True)
    time.sleep(LATER)
    print("finished", flush=True)
"""


def start(later: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("LATER", str(later))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_for_a_stop(number: signal.Signals) -> None:
    process = start(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert out == f"asked by {number.name}\nfinished\n"
    assert "finishing the batch" in err
    assert ("press Ctrl-C again to stop at once" in err) == (number == signal.SIGINT)
    assert process.returncode == 0


def test_a_second_ctrl_c_ends_at_once() -> None:
    process = start(30)
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked by SIGINT\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "run again on the next start" in err


def test_a_second_sigterm_still_waits() -> None:
    process = start(0.5)
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10)
    assert out.endswith("finished\n")
    assert process.returncode == 0


def test_sigterm_may_ask_for_a_savepoint_and_ends_when_its_grace_is_over() -> None:
    program = PROGRAM.replace("signals(stop)", "signals(stop, savepoint=True, grace=0.2)").replace(
        "stop.reason, flush", "stop.reason, stop.plan.savepoint, flush"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program.replace("LATER", "60")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert out == "asked by SIGTERM True\n"
    assert "not over within 0.2 seconds; the unfinished batch is run again" in err
    assert process.returncode == 130
