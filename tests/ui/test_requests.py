"""Requests that are not as described: the status, and a sentence with what must hold and came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from headgate.ui.app import create_app
from tests.ui.small_home import EVIL, JOB, small_home


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    home = small_home(tmp_path_factory.mktemp("requests"))
    with TestClient(create_app(home), base_url="http://127.0.0.1") as found:
        yield found


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("limit=0", "limit must be greater than or equal to 1, got '0'"),
        ("limit=5001", "limit must be less than or equal to 5000, got '5001'"),
        ("limit=1_0", "limit must be a whole number, got '1_0'"),
        ("limit=5.0", "limit must be a whole number, got '5.0'"),
        ("limit=%205", "limit must be a whole number, got ' 5'"),
        ("limit=", "limit must be a whole number, got ''"),
        ("limit=5&limit=6", "'limit' is given twice"),
        ("nope=1", "there is no parameter 'nope' (expected run, limit, before)"),
        ("run=x", "run must match r[0-9]{1,9}, got 'x'"),
        ("run=", "run must have at least 1 character, got ''"),
    ],
)
def test_a_wrong_parameter_is_400(client: TestClient, query: str, sentence: str) -> None:
    answer = client.get(f"/jobs/{JOB}/checkpoints?{query}")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [sentence] and answer.json()["code"] == "USAGE"
    assert answer.json()["remedy"]


@pytest.mark.parametrize("text", ["1", "yes", "True", "on", ""])
def test_a_flag_is_true_or_false_alone(client: TestClient, text: str) -> None:
    answer = client.get(f"/jobs/{JOB}/plan/stop", params={"drain": text})
    assert answer.status_code == 400
    assert answer.json()["errors"] == [f"drain must be true or false, got '{text}'"]
    assert client.get(f"/jobs/{JOB}/plan/stop", params={"drain": "true"}).status_code == 200


def test_a_password_that_came_is_masked(client: TestClient) -> None:
    answer = client.get(f"/jobs/{JOB}/checkpoints", params={"run": "kafka://me:hunter2@h:1/t"})
    assert answer.status_code == 400 and "hunter2" not in answer.text


def test_what_came_is_cut(client: TestClient) -> None:
    answer = client.get(f"/jobs/{JOB}/checkpoints", params={"limit": "9" * 5000})
    assert answer.status_code == 400 and len(answer.text) < 300


@pytest.mark.parametrize("path", ["checkpoints/details/x", "checkpoints/details/-1",
                                  "checkpoints/details/9999999999", "plan/nope"])  # fmt: skip
def test_a_wrong_part_of_a_path_is_404(client: TestClient, path: str) -> None:
    answer = client.get(f"/jobs/{JOB}/{path}")
    assert answer.status_code == 404 and "there is no such" in answer.json()["errors"][0]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("[]", "the body must be a JSON object"),
        ("{", "the body must be a JSON object"),
        ('{"drain": "true"}', "drain must be a valid boolean, got 'true'"),
        ('{"drain": 1}', "drain must be a valid boolean, got 1"),
        ('{"label": 7}', "label must be a valid string, got 7"),
        ('{"nope": 1}', "there is no field 'nope' (expected confirm, label, drain, savepoint)"),
    ],
)
def test_a_wrong_body_is_400(client: TestClient, body: str, sentence: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"/jobs/{JOB}/stop", headers=headers, content=body)
    assert answer.status_code == 400 and answer.json()["errors"] == [sentence]


@pytest.mark.parametrize("body", ["", "{}", '{"label": null}'])
def test_an_empty_body_and_null_are_as_if_left_out(client: TestClient, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"/jobs/{JOB}/stop", headers=headers, content=body)
    assert answer.status_code == 409 and "is not running" in answer.json()["errors"][0]


@pytest.mark.parametrize("path", ["/jobs/overview", "/metrics", "/healthz", "/ui/jobs"])
def test_head_is_get_without_its_body(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert head.status_code == get.status_code == 200 and not head.content
    assert head.headers["content-type"] == get.headers["content-type"]


def test_no_page_of_fastapi_is_served(client: TestClient) -> None:
    for path in ("/docs", "/redoc", "/docs/oauth2-redirect"):
        assert client.get(path).status_code == 404


def test_metrics_come_as_open_metrics_where_that_is_accepted(client: TestClient) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = client.get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = {one.name: one for one in text_string_to_metric_families(answer.text)}
    (counted,) = families["headgate_step_counted"].samples
    assert counted.labels == {"job": JOB, "step": EVIL, "name": EVIL} and counted.value == 9
    assert families["headgate_checkpoint_duration_seconds"].type == "histogram"
    assert all(family.documentation for family in families.values())


def test_the_description_has_what_fields_are(client: TestClient, tmp_path: Path) -> None:
    found = client.get("/openapi.json").json()
    schemas = found["components"]["schemas"]
    view = schemas["CheckpointView"]
    assert view["properties"]["status"]["description"] == "COMPLETED, IN_PROGRESS or FAILED."
    assert set(view["required"]) == set(view["properties"]) and not view["additionalProperties"]
    assert schemas["JobSummary"]["properties"]["start-time"]["anyOf"][0] == {"type": "integer"}
    limit = found["paths"]["/jobs/{job}/checkpoints"]["get"]["parameters"][2]
    assert limit["schema"]["minimum"] == 1 and limit["schema"]["maximum"] == 5000
    for methods in found["paths"].values():
        for operation in methods.values():
            assert "422" not in operation["responses"]
