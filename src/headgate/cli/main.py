"""The ``headgate`` command: all verbs, and errors as one sentence with the right exit code."""

from __future__ import annotations

import atexit
import errno
import json
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from headgate.base.errors import ExitCode, HeadgateError, Location, StorageError, UsageError
from headgate.base.near import or_else
from headgate.base.secrets import redact, redacted
from headgate.cli import common
from headgate.cli.brokers import register as register_brokers
from headgate.cli.checkpoints import register as register_checkpoints
from headgate.cli.control import register as register_control
from headgate.cli.detach import register as register_detach
from headgate.cli.dev import register as register_dev
from headgate.cli.doctor import register as register_doctor
from headgate.cli.explain import register as register_explain
from headgate.cli.failures import register as register_failures
from headgate.cli.graphs import register as register_graphs
from headgate.cli.jobs import register as register_jobs
from headgate.cli.metrics import register as register_metrics
from headgate.cli.plans import register as register_plans
from headgate.cli.project import register as register_project
from headgate.cli.replay import register as register_replay
from headgate.cli.run import register as register_run
from headgate.cli.savepoints import register as register_savepoints
from headgate.cli.state import register as register_state
from headgate.cli.submit import register as register_submit
from headgate.cli.topics import register as register_topics
from headgate.cli.ui import register as register_ui
from headgate.failures.codes import where_explained
from headgate.runtime.options import versions

app = typer.Typer(
    name="headgate",
    help="Stateful streaming jobs on Spark: named steps, checkpoints, exactly-once sinks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=common.HELP,
)
register_run(app)
register_submit(app)
register_dev(app)
register_graphs(app)
register_jobs(app)
register_metrics(app)
register_failures(app)
register_explain(app)
register_detach(app)
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


def _show_version(wanted: bool) -> None:
    if wanted:
        found = versions()
        print(f"headgate {found['headgate']} (spark {found['spark']}, python {found['python']})")
        raise typer.Exit(ExitCode.DONE)


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions."),
    ] = False,
) -> None:
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
    common.arguments = tuple(arguments)
    common.current = common.Ui(json="--json" in arguments, debug="--debug" in arguments)
    try:
        result = typer.main.get_command(app).main(
            args=list(arguments), prog_name="headgate", standalone_mode=False
        )
        if result == ExitCode.INTERRUPTED:  # newer typers make an exit code of Ctrl-C
            print("interrupted", file=sys.stderr)
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
        if type(error).__name__ == "NoArgsIsHelpError" or not message:
            if message:  # the help of a command that has verbs; older ones have printed it
                print(message, file=sys.stderr)
            return ExitCode.USAGE
        said, _, near = message.partition(" Did you mean ")
        guess = f"did you mean {near.rstrip('?').replace(', ', ' or ')}?" if near else None
        return _show(UsageError(said.rstrip("."), remedy=or_else(guess, "see headgate --help")))
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
        where = where_explained(error.code)
        print(f"{mark} {redact(str(error))}{f' ({where})' if where else ''}", file=sys.stderr)
    if ui.json:
        fields = {
            "code": error.code,
            "docs": where_explained(error.code),
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
    elif isinstance(error, OSError) and error.errno is not None:
        known = _of_the_system(error)
    else:
        known = HeadgateError(
            f"unexpected {type(error).__name__}: {first}",
            code="UNEXPECTED",
            remedy="run the command again with --debug, and report the error together with the "
            "output",
        )
    known.__cause__ = error
    return known


def _of_the_system(error: OSError) -> HeadgateError:
    """What the operating system refused, with the path: nothing that a report could mend."""
    path = error.filename if error.filename is not None else "a file or connection"
    remedy = _REMEDIES.get(error.errno or 0, "see that it is there and may be used")
    return StorageError(f"cannot use {path}: {error.strerror}", remedy=remedy)


_REMEDIES = {
    errno.EACCES: "let this user read and write it, or name another path",
    errno.EPERM: "let this user read and write it, or name another path",
    errno.ENOENT: "check the path",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "check the path: a file is where a folder should be",
    errno.EEXIST: "name another path",
    errno.ENOSPC: "make room on the disk",
    errno.EROFS: "mount the disk for writing, or name another path",
}


def _line_of_the_job(error: Exception) -> Location | None:
    """The innermost line that is neither ours nor a library's, and that we called."""
    ours = str(Path(__file__).resolve().parent.parent)
    libraries = tuple(sysconfig.get_paths().values())
    called, line = False, None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(ours):
            called = True
        elif called and not _is_library(frame.filename, libraries):
            line = Location(frame.filename, frame.lineno or 0)
    return line


def _is_library(file: str, libraries: tuple[str, ...]) -> bool:
    """Whether a file is a package's; those of a shared environment are not below its own paths."""
    return file.startswith(("<", *libraries)) or "site-packages" in Path(file).parts


if __name__ == "__main__":
    main()
