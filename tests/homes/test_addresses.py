"""Addresses of object stores: what they say to Python and to Spark, and where keys come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.base.aws_keys import aws_keys
from headgate.base.errors import UsageError
from headgate.base.store_url import StoreUrl
from headgate.home.files import LocalFiles, open_files
from headgate.jvm.stores import need_store, s3a_settings

VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def parsed(url: str) -> StoreUrl:
    found = StoreUrl.parse(url)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("url", "spark"),
    [
        ("s3://bucket/a/b/", "s3a://bucket/a/b/x"),
        ("s3a://bucket", "s3a://bucket/x"),
        ("gs://bucket/a", "gs://bucket/a/x"),
        ("az://box/a?account=me", "abfss://box@me.dfs.core.windows.net/a/x"),
        ("abfss://box@me.dfs.core.windows.net/a", "abfss://box@me.dfs.core.windows.net/a/x"),
    ],
)
def test_an_address_is_the_same_place_for_python_and_for_spark(url: str, spark: str) -> None:
    assert parsed(url).spark("x") == spark
    assert parsed(parsed(url).address("x")).spark() == spark


def test_other_addresses_are_of_no_object_store(tmp_path: Path) -> None:
    for url in ("/data", "file:/data", "file:///data", "hdfs://host/a", "memory://a", "C:\\data"):
        assert StoreUrl.parse(url) is None
    assert isinstance(open_files(f"file:{tmp_path}"), LocalFiles)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3:///prefix", "must name a bucket"),
        ("s3://b/p?access_key=AKIA", "never from the address"),
        ("s3://b/p?path_style=yes", "path_style must be true or false"),
        ("gs://b/p?region=eu", "can have the options endpoint"),
    ],
)
def test_what_an_address_cannot_say_is_refused(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        StoreUrl.parse(url)


def test_spark_gets_what_the_address_and_the_environment_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aws = s3a_settings(parsed("s3://bucket/home"))
    assert "endpoint" not in aws and aws["path.style.access"] == "false"
    assert aws["endpoint.region"] == "us-east-1" and "secret.key" not in aws
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "open sesame")
    here = s3a_settings(parsed("s3://bucket/home"))
    assert here["endpoint"] == "http://minio:9000" and here["path.style.access"] == "true"
    assert here["endpoint.region"] == "eu-west-1"
    assert (here["access.key"], here["secret.key"]) == ("me", "open sesame")
    other = s3a_settings(parsed("s3://bucket/home?endpoint=http://other:1&path_style=false"))
    assert other["endpoint"] == "http://other:1" and other["path.style.access"] == "false"


def test_keys_are_those_of_the_profile_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert aws_keys(parsed("s3://bucket")) is None
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = d\naws_secret_access_key = d%s\n"
        "[work]\naws_access_key_id = w\naws_secret_access_key = ws\naws_session_token = wt\n"
        "[sso]\nsso_session = corp\n"
    )

    def key_of(url: str) -> tuple[str, str, str | None] | None:
        found = aws_keys(parsed(url))
        return None if found is None else (found.id, found.secret, found.token)

    assert key_of("s3://bucket") == ("d", "d%s", None)
    assert key_of("s3://bucket?profile=work") == ("w", "ws", "wt")
    assert key_of("s3://bucket?profile=sso") is None
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert key_of("s3://bucket") == ("w", "ws", "wt")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "e")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "es")
    assert key_of("s3://bucket") == ("e", "es", None)
    assert key_of("s3://bucket?profile=work") == ("w", "ws", "wt")


def test_a_session_reaches_a_bucket_at_one_endpoint(spark: SparkSession) -> None:
    need_store(spark, "s3://one-place/home?endpoint=http://127.0.0.1:1")
    need_store(spark, "s3://one-place/other?endpoint=http://127.0.0.1:1")
    with pytest.raises(UsageError, match=r"one-place is at .*:1, got .*:2"):
        need_store(spark, "s3://one-place/home?endpoint=http://127.0.0.1:2")
