"""`doctor --live` asks the Pulsar services that the home's jobs use."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.doctor.brokers import broker_checks
from headgate.home.layout import Home

pytestmark = pytest.mark.slow


def test_the_doctor_asks_the_services_of_all_jobs(pulsar_url: str, tmp_path: Path) -> None:
    # the service's own port answers, but not where its REST interface should be
    web = pulsar_url.replace("pulsar://", "").split(":")
    alone = f"pulsar://{web[0]}:{int(web[1]) + 1430}"
    services = {"a": pulsar_url, "b": "pulsar://127.0.0.1:9", "c": alone}
    for job, service in services.items():
        made = Home(str(tmp_path)).job(job)
        step = {"id": "in", "detail": {"address": f"{service}/t"}}
        run = made.new_run(graph={"steps": [step], "sources": []}, graph_fingerprint="x",
                           parallelism=1, params={}, versions={}, code={})  # fmt: skip
        made.set_current(run.id)
    found = {check.name: check for check in broker_checks(str(tmp_path))}
    assert found[pulsar_url].ok
    assert found[pulsar_url].detail == "the service answers (used by a)"
    assert found[alone].ok
    assert "takes connections, but the REST interface does not" in found[alone].detail
    assert not found["pulsar://127.0.0.1:9"].ok
    assert "used by b" in found["pulsar://127.0.0.1:9"].detail
