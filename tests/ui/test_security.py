"""Attacks on the web interface: names, origins, tokens, paths, methods and bodies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headgate.base.errors import UsageError
from headgate.home.audit import audit
from headgate.home.layout import Home
from headgate.ui.access import COOKIE, Access
from headgate.ui.app import create_app
from tests.ui.small_home import EVIL, EVIL_ROW, JOB, LOG, small_home

TOKEN = "a-token-that-is-long-enough"
READ_TOKEN = "another-token-for-those-who-look"
JSON = {"Content-Type": "application/json"}
TRAVERSALS = (
    "../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/secret",
    "..",
    ".",
    "....//....//secret",
    "store/../../secret",
    "store%00",
    "\\..\\..\\secret",
    "file:///etc/passwd",
    "-rf",
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "secret").write_text("top secret")
    return small_home(tmp_path)


def client(home: Home, **access: Any) -> TestClient:
    app = create_app(home, access=Access(**access))
    return TestClient(app, base_url="http://127.0.0.1:8181", follow_redirects=False)


@pytest.fixture
def open_client(home: Home) -> Iterator[TestClient]:
    with client(home) as found:
        yield found


def gets(found: TestClient) -> list[str]:
    """Every path of the description that is read, with the ids of the small home."""
    paths = found.get("/openapi.json").json()["paths"]
    ids = {"{job}": JOB, "{checkpoint}": "1", "{step}": "out", "{action}": "stop",
           "{operation}": "op-000000", "{label}": "x", "{file}": LOG}  # fmt: skip
    made = []
    for path, methods in paths.items():
        for part, value in ids.items():
            path = path.replace(part, value)
        if "get" in methods:
            made.append(path)
    assert len(made) > 15
    return made


def posts(found: TestClient) -> list[str]:
    paths = found.get("/openapi.json").json()["paths"]
    return [
        path.replace("{job}", JOB).replace("{checkpoint}", "1").replace("{label}", "x")
        for path, methods in paths.items()
        if "post" in methods
    ]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("id", TRAVERSALS)
def test_no_id_leads_out_of_the_home(open_client: TestClient, id: str) -> None:
    description = open_client.get("/openapi.json").json()["paths"]
    for path, methods in description.items():
        for part in (word for word in path.split("/") if word.startswith("{")):
            target = path.replace(part, id).replace("{job}", JOB).replace("{checkpoint}", "1")
            target = target.replace("{step}", "out").replace("{action}", "stop")
            target = target.replace("{operation}", "op-000000").replace("{label}", "x")
            for method in methods:
                answer = open_client.request(method, target, headers=JSON)
                # some ids make the path of something else that exists, such as /jobs/. and /
                if answer.status_code == 307:
                    assert answer.headers["location"].startswith("/ui/"), (target, answer.headers)
                    continue
                assert answer.status_code in (200, 202, 400, 404, 405, 409), (target, answer.text)
                assert "top secret" not in answer.text and "root:" not in answer.text
                if part == "{job}" and answer.status_code == 200:
                    assert "secret" not in answer.text
    for name in ("run", "snapshot", "label", "before", "state"):
        answer = open_client.get(f"/jobs/{JOB}/checkpoints", params={name: id})
        assert answer.status_code in (400, 404), (name, id)
        answer = open_client.get(f"/jobs/{JOB}/plan/restart", params={name: id})
        assert answer.status_code in (200, 400) and "top secret" not in answer.text
        if answer.status_code == 200:
            assert name == "label" and not answer.json()["allowed"]
    assert open_client.get(f"/static/{id}").status_code in (307, 404, 405)


def test_texts_of_others_arrive_as_data_and_nothing_else(open_client: TestClient) -> None:
    for path in gets(open_client):
        answer = open_client.get(path)
        if path.endswith("/text"):  # a file to be saved, which no browser shows
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert answer.headers["content-disposition"].startswith("attachment; ")
        elif answer.status_code == 200:
            assert answer.headers["content-type"] == "application/json"
            answer.json()
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
    graph = open_client.get(f"/jobs/{JOB}/plan").json()
    (node,) = [node for node in graph["nodes"] if node["id"] == EVIL]
    assert node["counted"] == {EVIL: 9}  # three in each of three batches
    rows = open_client.get(f"/jobs/{JOB}/outputs/out").json()["rows"]
    assert json.loads(rows[0]["value"]) == {"note": EVIL_ROW}
    metrics = open_client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert 'step="\\"><script>' in metrics.text
    (counted,) = [
        x for x in metrics.text.split("\n") if x.startswith("headgate_step_counted_total{")
    ]
    assert counted.endswith('</script>"} 9.0') and ',name="\\"><script>' in counted


def test_secrets_are_masked(open_client: TestClient) -> None:
    for path in [*gets(open_client), "/metrics"]:
        assert "hunter2" not in open_client.get(path).text, path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8181", "127.0.0.1.evil.example",
                                  "localhost.evil.example", "10.0.0.7", ""])  # fmt: skip
def test_a_foreign_host_gets_nothing(open_client: TestClient, host: str) -> None:
    for path in ("/jobs/overview", "/metrics", "/openapi.json", "/", "/healthz"):
        answer = open_client.get(path, headers={"Host": host})
        assert answer.status_code == 421 and "jobs" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8181", "127.0.0.1", "[::1]:8181", "LOCALHOST"])
def test_names_of_this_machine_are_known(open_client: TestClient, host: str) -> None:
    assert open_client.get("/jobs/overview", headers={"Host": host}).status_code == 200


def test_a_server_for_all_addresses_is_known_by_address_or_by_given_name(home: Home) -> None:
    with client(home, host="0.0.0.0", token=TOKEN, names=("flow.example.org",)) as found:
        auth = {"Authorization": f"Bearer {TOKEN}"}
        for host, status in (("10.0.0.7:8181", 200), ("flow.example.org", 200),
                             ("Flow.Example.Org:8181", 200), ("evil.example", 421)):  # fmt: skip
            answer = found.get("/jobs/overview", headers={**auth, "Host": host})
            assert answer.status_code == status, host


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9999"},
    {"Origin": "http://127.0.0.1:8181.evil.example"}, {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
])  # fmt: skip
def test_a_foreign_origin_neither_reads_nor_acts(
    home: Home, open_client: TestClient, headers: dict[str, str]
) -> None:
    before = tree(Path(home.url))
    for path in posts(open_client):
        answer = open_client.post(path, headers={**headers, **JSON}, content="{}")
        assert answer.status_code == 403, path
    assert open_client.get("/jobs/overview", headers=headers).status_code == 403
    assert tree(Path(home.url)) == before, "a refused stranger leaves no trace"


def test_a_link_from_elsewhere_opens_a_page_but_our_own_site_may_do_all(
    open_client: TestClient,
) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert open_client.get("/healthz", headers=link).status_code == 200
    own = {"Origin": "http://127.0.0.1:8181", "Sec-Fetch-Site": "same-origin"}
    assert open_client.get("/jobs/overview", headers=own).status_code == 200
    answer = open_client.post(f"/jobs/{JOB}/cancel", headers={**own, **JSON}, content="{}")
    assert answer.status_code == 409


def test_forms_of_other_sites_cannot_act(open_client: TestClient) -> None:
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""):
        answer = open_client.post(f"/jobs/{JOB}/cancel", headers={"Content-Type": kind})
        assert answer.status_code == 415


@pytest.mark.parametrize("headers", [
    {}, {"Authorization": "Bearer wrong-token-wrong-token"}, {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Bearer {TOKEN[:-1]}"},
    {"Authorization": "Bearer "}, {"Cookie": f"{COOKIE}={TOKEN}"}, {"Cookie": f"{COOKIE}=x"},
    {"Cookie": "\x01bad"},
])  # fmt: skip
def test_without_the_right_token_nothing_is_shown_and_nothing_done(
    home: Home, headers: dict[str, str]
) -> None:
    with client(home, token=TOKEN, read_token=READ_TOKEN) as found:
        before = tree(Path(home.url))
        for path in ("/jobs/overview", "/metrics", "/openapi.json", f"/jobs/{JOB}/state", "/ui/x"):
            answer = found.get(path, headers=headers)
            assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        answer = found.post(f"/jobs/{JOB}/savepoints", headers={**headers, **JSON}, content="{}")
        assert answer.status_code == 401
        html = {"Accept": "text/html", **headers}
        assert found.get("/", headers=html).headers["location"] == "/login"
        assert found.get("/healthz", headers=headers).text == "ok\n"
        assert tree(Path(home.url)) == before


def test_a_browser_gets_a_cookie_for_the_token(home: Home) -> None:
    with client(home, token=TOKEN, read_token=READ_TOKEN) as found:
        for wrong in ({}, {"token": "x"}, {"token": 7}, {"token": None}, {"token": TOKEN + "x"}):
            assert found.post("/login", json=wrong).status_code == 401
        assert found.post("/login", content="[]", headers=JSON).status_code == 401
        answer = found.post("/login", json={"token": TOKEN})
        assert answer.json() == {"role": "operator"}
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        assert TOKEN not in cookie, "the cookie does not give the token away"
        assert found.get("/jobs/overview").status_code == 200
        assert found.post("/logout", json={}).status_code == 200
        assert found.get("/jobs/overview").status_code == 401
        assert found.post("/login", json={"token": READ_TOKEN}).json() == {"role": "reader"}
        assert found.get("/jobs/overview").status_code == 200
        assert found.post(f"/jobs/{JOB}/cancel", json={}).status_code == 403


@pytest.mark.parametrize("access", [
    {"read_only": True}, {"token": TOKEN, "read_only": True},
    {"token": TOKEN, "read_token": READ_TOKEN},
])  # fmt: skip
def test_readers_cannot_act(home: Home, access: dict[str, Any]) -> None:
    token = access.get("read_token") or access.get("token") or ""
    headers = {"Authorization": f"Bearer {token}", **JSON}
    with client(home, **access) as found:
        found.headers.update(headers)
        before = tree(Path(home.url))
        for path in posts(found):
            assert found.post(path, content="{}").status_code == 403, path
        assert found.get("/jobs/overview").status_code == 200
        assert tree(Path(home.url)) == before


def test_get_changes_nothing(home: Home, open_client: TestClient) -> None:
    before = tree(Path(home.url))
    for path in [*gets(open_client), "/metrics", "/healthz"]:
        assert open_client.get(path).status_code in (200, 400, 404, 409), path
        assert open_client.head(path).status_code in (200, 400, 404, 405, 409), path
    for path in posts(open_client):
        if path not in gets(open_client):
            assert open_client.get(path).status_code == 405, path
        for method in ("PUT", "DELETE", "PATCH"):
            assert open_client.request(method, path, headers=JSON).status_code == 405
    assert tree(Path(home.url)) == before


def test_every_action_is_written_down_with_its_caller_and_result(
    home: Home, open_client: TestClient
) -> None:
    for path in posts(open_client):
        assert open_client.post(path, json={}).status_code == 409, path
    records = audit(home.job(JOB))
    assert len(records) == len(posts(open_client)) > 5
    assert {record.role for record in records} == {"operator"}
    assert all(record.refused and record.address for record in records)
    shown = open_client.get(f"/jobs/{JOB}/operations").json()["audit"]
    assert [one["action"] for one in shown] == [record.action for record in reversed(records)]


@pytest.mark.parametrize("body", ["[]", "7", "{", '{"label": 7}', '{"nope": 1}', '{"label": ""}',
                                  '{"label": "../x"}', '{"label": "a/b"}', '"x"', "nul",
                                  '{"snapshot": "/etc"}', '{"snapshot": "other@latest"}',
                                  '{"snapshot": "s3://bucket/x"}', "[" * 5000])  # fmt: skip
def test_a_body_that_is_not_as_described_is_refused(open_client: TestClient, body: str) -> None:
    answer = open_client.post(f"/jobs/{JOB}/savepoints", headers=JSON, content=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["errors"]


def test_a_huge_body_is_refused(open_client: TestClient) -> None:
    body = json.dumps({"label": "x" * 200_000})
    assert (
        open_client.post(f"/jobs/{JOB}/savepoints", headers=JSON, content=body).status_code == 413
    )
    assert open_client.post("/login", headers=JSON, content=body).status_code == 413


def test_a_damaged_file_is_reported_and_hides_no_other_job(
    home: Home, open_client: TestClient
) -> None:
    bad = home.job("bad")
    run = bad.new_run(graph={"steps": [], "sources": []}, graph_fingerprint="f", parallelism=1,
                      params={}, versions={}, code={})  # fmt: skip
    bad.set_current(run.id)
    Path(home.url, run.path, "run.json").write_text("{")
    answer = open_client.get("/jobs/bad")
    assert answer.status_code == 500 and "not valid JSON" in answer.json()["errors"][0]
    jobs = open_client.get("/jobs/overview").json()
    assert [job["name"] for job in jobs["jobs"]] == [JOB]
    assert jobs["unreadable"]["bad"].startswith(str(Path(home.url)))
    assert "headgate_ui_unreadable_jobs 1.0\n" in open_client.get("/metrics").text


def test_an_open_address_needs_a_token() -> None:
    for host in ("0.0.0.0", "::", "10.1.2.3", "flow.example.org"):
        with pytest.raises(UsageError, match="open to everybody"):
            Access(host=host)
        Access(host=host, token=TOKEN)
    for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"):
        Access(host=host)
    with pytest.raises(UsageError, match="16 characters or more, got 5"):
        Access(token="short")
    with pytest.raises(UsageError, match="must differ"):
        Access(token=TOKEN, read_token=TOKEN)
