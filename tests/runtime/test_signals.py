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


SWALLOWED = """
import os, signal, subprocess, time
from headgate.runtime.signals import StopRequest, signals

def at_fork():  # Python swallows what such a function raises, as in the start of Spark's JVM
    global signalled
    if not signalled:
        signalled = True
        signal.raise_signal(signal.SIGINT)

stop, signalled = StopRequest(), False
stop.starting = True
os.register_at_fork(after_in_parent=at_fork)
try:
    with signals(stop):
        subprocess.run(["true"], preexec_fn=lambda: None)
        print("went on", signalled, flush=True)
        time.sleep(20)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_in_start_up_is_not_lost_where_python_swallows_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("went on True\ninterrupted\n", "")
