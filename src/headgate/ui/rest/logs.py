"""The part of the REST interface that reads what jobs have printed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BeforeValidator, Field
from starlette.responses import StreamingResponse

from headgate.home.log_lines import LogFilter
from headgate.ui.model.logs import LogPartView, LogsView
from headgate.ui.rest.openapi import READING
from headgate.ui.rest.params import Job, Limit, Missing, Search, text, whole_number
from headgate.ui.rest.services import ReadModel, known_query

_LINES = 200
_MOST = 1 << 53  # JavaScript's numbers are exact up to here
_Byte = Annotated[int, Field(ge=0, le=_MOST), BeforeValidator(whole_number)]
_BEFORE = "Lines that begin before this byte; by default the last ones."
_AFTER = "Lines from this byte on, as `end` of the response before; then `before` counts nothing."

router = APIRouter(tags=["logs"], dependencies=[Depends(known_query)])

LogFile = Annotated[str, text(), Path(description="The name of a log file.")]
Before = Annotated[_Byte | Missing, Query(description=_BEFORE)]
After = Annotated[_Byte | Missing, Query(description=_AFTER)]
Least = Annotated[
    Literal["info", "warn", "error"] | Missing, Query(description="Its level at least.")
]


@router.get("/jobs/{job}/logs", responses=READING)
def logs(job: Job, model: ReadModel) -> LogsView:
    """The log files of a job that was started in the background."""
    return model.logs(job)


@router.get("/jobs/{job}/logs/{file}", responses=READING)
def log(
    job: Job,
    file: LogFile,
    model: ReadModel,
    limit: Limit = _LINES,
    before: Before = None,
    after: After = None,
    search: Search = None,
    level: Least = None,
) -> LogPartView:
    """Lines of a log file; reads 4 MB of it at most, so a search goes on from `start`."""
    of = LogFilter(search or "", level or "")
    return model.log(job, file, limit=limit, before=before, after=after, of=of)


_TEXT: dict[int | str, dict[str, Any]] = {
    **READING,
    200: {"description": "The file.", "content": {"text/plain": {"schema": {"type": "string"}}}},
}


@router.get("/jobs/{job}/logs/{file}/text", response_class=StreamingResponse, responses=_TEXT)
def log_text(job: Job, file: LogFile, model: ReadModel) -> StreamingResponse:
    """A whole log file, to be saved; secrets in it are masked as on the page."""
    return StreamingResponse(
        model.log_text(job, file),
        media_type="text/plain",
        headers={"Content-Disposition": f'attachment; filename="headgate-{file}"'},
    )
