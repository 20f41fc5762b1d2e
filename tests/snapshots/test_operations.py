"""Operations in the home: asked for, taken once, ended, taken back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headgate.base.errors import NotFoundError, RefusedError, UsageError
from headgate.home.layout import Home
from headgate.home.model import JobRecord
from headgate.home.operations import OperationRecord, Operations, find_operation


@pytest.fixture
def operations(tmp_path: Path) -> Operations:
    job = Home(tmp_path).job("store")
    job.change(lambda old: JobRecord("store"))
    return Operations(job)


def test_an_operation_goes_from_requested_to_done(operations: Operations) -> None:
    asked = operations.request("stop", {"drain": True}, driver="t1")
    assert (asked.state, asked.ended) == ("requested", False)
    taken = operations.take(asked.id)
    assert taken is not None and taken.state == "running" and taken.started_at is not None
    operations.end(asked.id, "done", result={"checkpoint": 7})
    read = operations.read(asked.id)
    assert read.ended and read.ended_at is not None
    assert (read.state, read.result, read.args) == ("done", {"checkpoint": 7}, {"drain": True})
    assert read.driver == "t1"
    assert OperationRecord.from_json(read.to_json()).to_json() == read.to_json()


def test_only_one_of_many_takes_it(operations: Operations) -> None:
    asked, taken = operations.request("savepoint"), []

    def take() -> None:
        if operations.take(asked.id):
            taken.append(1)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1


def test_a_request_can_be_taken_back_until_it_is_carried_out(operations: Operations) -> None:
    asked = operations.request("stop")
    assert operations.cancel(asked.id).state == "cancelled"
    assert operations.take(asked.id) is None
    second = operations.request("stop")
    operations.take(second.id)
    with pytest.raises(RefusedError, match=rf"{second.id} .* is being carried out"):
        operations.cancel(second.id)


def test_an_operation_is_found_by_its_id_or_the_start_of_it(operations: Operations) -> None:
    home, asked = operations.job.home, operations.request("cancel")
    number = asked.id.removeprefix("op-")
    for text in (asked.id, f"op:{number}", number, number[:5]):
        assert find_operation(home, text)[1].id == asked.id
    with pytest.raises(NotFoundError, match="no operation 'op-zz'"):
        find_operation(home, "op-zz")
    while len({id[:4] for id in operations.ids()}) == len(operations.ids()):
        operations.request("cancel")
    starts = [id[:4] for id in operations.ids()]
    twice = next(start for start in starts if starts.count(start) > 1)
    with pytest.raises(UsageError, match="several operations"):
        find_operation(home, twice)


def test_an_unknown_kind_is_refused(operations: Operations) -> None:
    with pytest.raises(UsageError, match="no operation 'explode'"):
        operations.request("explode")
