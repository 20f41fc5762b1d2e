"""`make demo`: an online store's topics are generated, enriched, and every order accounted for."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from generate import Settings, generate
from show import OUTPUTS, account, app, headgate, say, typed_headgate

from headgate.connectors.log.files import TopicFiles


def main() -> int:
    """Generate, run, show and account; exit code 1 if an order is lost or counted twice."""
    options = _options()
    folder: Path = options.dir
    data, home = folder / "data", folder / "home"
    if folder.exists():
        say(f"clearing {folder} of the last demo")
        shutil.rmtree(folder)

    say(f"generating users, items and {options.orders:,} orders into log topics in {data}")
    settings = Settings(users=options.users, items=options.items, orders=options.orders)
    produced = generate(data, settings, progress=sys.stderr.isatty())
    say(
        f"made {produced.users:,} users with {produced.user_updates:,} updates and "
        f"{produced.user_deletions:,} deletions, {produced.items:,} items, "
        f"{produced.orders:,} orders"
    )

    say("running the job until all that is there has been read (Spark starts first)")
    topics = {name: f"log:{data / name}" for name in ("orders", "users", "items", *OUTPUTS)}
    sets = [word for name, address in topics.items() for word in ("--set", f"{name}={address}")]
    began = time.monotonic()
    code = headgate("run", app(), "--bounded", "--home", str(home), *sets)
    if code != 0:
        say(f"the job failed with exit code {code}")
        return code
    took = time.monotonic() - began

    say("three of the enriched orders")
    code = headgate("topic", "read", topics["enriched"], "--limit", "3")
    say("what each step took in and gave out")
    code = code or headgate("show", "store", "--steps", "--home", str(home))
    if code != 0:
        return code
    say(f"done in {took:.0f} s; accounting for every order")
    out = {name: _records(data / name) for name in OUTPUTS}
    code = account(produced.orders, out, when_right="every order is accounted for")
    if code == 0:
        say(f"see it at http://127.0.0.1:8181/ with: {typed_headgate()} ui --home {home}")
    return code


def _records(topic: Path) -> int:
    """How many records the topic holds; a sink that got none has made no topic."""
    files = TopicFiles(topic)
    return sum(files.end_offsets().values()) if files.exists() else 0


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
