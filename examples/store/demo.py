"""`make demo`: an online store's topics are generated, enriched, and every order accounted for."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from generate import Settings, generate

from headgate.connectors.log_files import TopicFiles

HERE = Path(__file__).resolve().parent
OUTPUTS = ("enriched", "missing_users", "missing_items", "malformed")


def main() -> int:
    """Generate, run, show and account; exit code 1 if an order is lost or counted twice."""
    options = _options()
    folder: Path = options.dir
    data, home = folder / "data", folder / "home"
    if folder.exists():
        _say(f"clearing {folder} of the last demo")
        shutil.rmtree(folder)

    _say(f"generating users, items and {options.orders:,} orders into log topics in {data}")
    settings = Settings(users=options.users, items=options.items, orders=options.orders)
    produced = generate(data, settings, progress=sys.stderr.isatty())
    _say(
        f"made {produced.users:,} users with {produced.user_updates:,} updates and "
        f"{produced.user_deletions:,} deletions, {produced.items:,} items, "
        f"{produced.orders:,} orders"
    )

    _say("running the job until all that is there has been read (Spark starts first)")
    topics = {name: f"log:{data / name}" for name in ("orders", "users", "items", *OUTPUTS)}
    sets = [word for name, address in topics.items() for word in ("--set", f"{name}={address}")]
    app = _short(HERE / "store.py")
    began = time.monotonic()
    code = _headgate("run", app, "--bounded", "--home", str(home), *sets)
    if code != 0:
        _say(f"the job failed with exit code {code}")
        return code
    took = time.monotonic() - began

    _say("three of the enriched orders")
    code = _headgate("topic", "read", topics["enriched"], "--limit", "3")
    _say("what each step took in and gave out")
    code = code or _headgate("show", "store", "--steps", "--home", str(home))
    if code != 0:
        return code
    _say(f"done in {took:.0f} s; accounting for every order")
    return _account(produced.orders, {name: _records(data / name) for name in OUTPUTS})


def _account(orders: int, out: dict[str, int]) -> int:
    """Say where the orders are. A user who was deleted before the order counts as missing."""
    total = sum(out.values())
    parts = " + ".join(f"{out[name]:,} {name.replace('_', ' ')}" for name in OUTPUTS)
    if total != orders:
        print(f"{parts} = {total:,}, but {orders:,} orders were produced", flush=True)
        return 1
    print(f"{parts} = {orders:,} orders produced: every order is accounted for", flush=True)
    return 0


def _records(topic: Path) -> int:
    """How many records the topic holds; a sink that got none has made no topic."""
    files = TopicFiles(topic)
    return sum(files.end_offsets().values()) if files.exists() else 0


def _headgate(*arguments: str) -> int:
    """Run a command of the command line as a user would, and show it."""
    print(f"\n$ headgate {shlex.join(arguments)}", file=sys.stderr, flush=True)
    beside = Path(sys.executable).with_name("headgate")
    program = [str(beside)] if beside.exists() else [sys.executable, "-m", "headgate.cli.main"]
    return subprocess.run([*program, *arguments], check=False).returncode


def _short(path: Path) -> str:
    """The path as one would type it in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _say(text: str) -> None:
    print(f"\ndemo: {text}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    defaults = Settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("build/demo"), help="where to work")
    parser.add_argument("--users", type=int, default=defaults.users)
    parser.add_argument("--items", type=int, default=defaults.items)
    parser.add_argument("--orders", type=int, default=defaults.orders)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
