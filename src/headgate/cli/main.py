"""The ``headgate`` command: all verbs, and errors as one sentence with the right exit code."""

from __future__ import annotations

import atexit
import json
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import typer

from headgate.base.errors import ExitCode, HeadgateError, Location, UsageError
from headgate.base.secrets import redact, redacted
from headgate.cli import common
from headgate.cli.brokers import register as register_brokers
from headgate.cli.checkpoints import register as register_checkpoints
from headgate.cli.control import register as register_control
from headgate.cli.dev import register as register_dev
from headgate.cli.doctor import register as register_doctor
from headgate.cli.graphs import register as register_graphs
from headgate.cli.jobs import register as register_jobs
from headgate.cli.plans import register as register_plans
from headgate.cli.project import register as register_project
from headgate.cli.replay import register as register_replay
from headgate.cli.run import register as register_run
from headgate.cli.savepoints import register as register_savepoints
from headgate.cli.state import register as register_state
from headgate.cli.submit import register as register_submit
from headgate.cli.topics import register as register_topics
from headgate.cli.ui import register as register_ui

app = typer.Typer(
    name="headgate",
    help="Stateful streaming jobs on Spark: named steps, checkpoints, exactly-once sinks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=common.HELP,
)
register_run(app)
register_submit(app)
register_dev(app)
register_graphs(app)
register_jobs(app)
register_control(app)
register_plans(app)
register_checkpoints(app)
register_savepoints(app)
register_state(app)
register_topics(app)
register_replay(app)
register_brokers(app)
register_doctor(app)
register_project(app)
register_ui(app)


@app.callback()
def _root() -> None:
    """Stateful streaming jobs on Spark: named steps, checkpoints, exactly-once sinks."""


# typer carries its own click; this is the root of the errors that a wrong command line raises.
_ClickError: Any = typer.BadParameter.__mro__[2]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    code = int(invoke(sys.argv[1:] if arguments is None else arguments))
    if "_pulsar" in sys.modules:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End the process as Python does, but leave C++ libraries as they are.

    A process with Pulsar's client was seen to end with an abort after its work was done
    (`terminate called without an active exception`), and its exit code was lost.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):  # its reader is gone
                stream.flush()
    os._exit(code)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    common.current = common.Ui(json="--json" in arguments, debug="--debug" in arguments)
    try:
        result = typer.main.get_command(app).main(
            args=list(arguments), prog_name="headgate", standalone_mode=False
        )
        return int(result) if isinstance(result, int) else ExitCode.DONE
    except typer.Exit as exit:
        return int(exit.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: not an error of ours.
        sys.stdout = None
        return ExitCode.DONE
    except _ClickError as error:
        message = error.format_message().strip()
        if not message:  # no command was named: the help has been printed
            return ExitCode.USAGE
        return _show(UsageError(message.rstrip("."), remedy="see headgate --help"))
    except HeadgateError as error:
        error.location = error.location or _line_of_the_job(error)
        return _show(error)
    except Exception as error:
        return _show(_unexpected(error))


def _show(error: HeadgateError) -> int:
    ui = common.current
    if ui.debug:
        print(redact("".join(traceback.format_exception(error))), file=sys.stderr, end="")
        for trace in _java_traces(error):
            print(f"\nIn Spark's JVM:\n{redact(trace)}", file=sys.stderr)
    if ui.show_error is not None:
        ui.show_error(error)
    else:
        color = ui.color and sys.stderr.isatty()
        mark = "\033[31merror:\033[0m" if color else "error:"
        print(f"{mark} {redact(str(error))}", file=sys.stderr)
    if ui.json:
        fields = {
            "code": error.code,
            "message": error.message,
            "step": error.step,
            "expected": error.expected,
            "got": error.got,
            "remedy": error.remedy,
            "location": str(error.location) if error.location else None,
        }
        print(json.dumps({"version": 1, "error": redacted(fields)}, ensure_ascii=False))
    return int(error.exit_code)


def _java_traces(error: BaseException | None) -> Iterator[str]:
    """What the JVM said; pyspark keeps it out of Python's traces."""
    text = ""
    while error is not None:
        trace = str(getattr(error, "_stackTrace", None) or "").strip()
        if trace not in text:  # a trace ends with those of its causes
            text += trace
            yield trace
        error = getattr(error, "_cause", None) or error.__cause__


def _unexpected(error: Exception) -> HeadgateError:
    first = str(error).strip().split("\n")[0] or "no message"
    line = _line_of_the_job(error)
    known: HeadgateError
    if line is not None:
        known = UsageError(
            f"the job's own code raised {type(error).__name__}: {first}",
            remedy="correct the line",
            location=line,
        )
    else:
        known = HeadgateError(
            f"unexpected {type(error).__name__}: {first}",
            remedy="run the command again with --debug, and report it with what that shows",
        )
    known.__cause__ = error
    return known


def _line_of_the_job(error: Exception) -> Location | None:
    """The innermost line that is neither ours nor a library's, and that we called."""
    ours = str(Path(__file__).resolve().parent.parent)
    libraries = tuple(sysconfig.get_paths().values())
    called, line = False, None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(ours):
            called = True
        elif called and not frame.filename.startswith(("<", *libraries)):
            line = Location(frame.filename, frame.lineno or 0)
    return line


if __name__ == "__main__":
    main()
