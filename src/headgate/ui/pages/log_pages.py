"""The logs of a job: its newest lines, by search and level. A script follows what comes."""

from __future__ import annotations

from headgate.base.errors import UsageError
from headgate.home.log_lines import Level, LogFilter
from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse

_LINES = 300
_LEVELS: dict[str, Level] = {"info": "info", "warn": "warn", "error": "error"}


def logs(request: PageRequest) -> PageResponse:
    """One log file, by default the newest."""
    job = request.model.job(request.name("job")).summary
    files = request.model.logs(job.name).files
    chosen = request.text("file") or (files[0].name if files else None)
    search, level = request.text("search") or "", request.text("level") or ""
    if level and level not in _LEVELS:
        raise UsageError(
            f"'level' must be {', '.join(_LEVELS)} or empty", remedy="correct or remove it"
        )
    view = None
    before = request.byte("before")
    if chosen is not None:
        of = LogFilter(search, _LEVELS.get(level, ""))
        view = request.model.log(job.name, chosen, limit=_LINES, before=before, of=of)
    values = {"job": job, "tab": "logs", "files": files, "view": view, "search": search,
              "level": level, "before": before}  # fmt: skip
    return PageResponse("logs.html", values)
