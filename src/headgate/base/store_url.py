"""Addresses of object stores: one text from which Python and Spark learn where a home is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from headgate.base.errors import UsageError

_KINDS = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs",
    "az": "az", "abfs": "az", "abfss": "az",
}  # fmt: skip
_OPTIONS = {
    "s3": ("endpoint", "region", "path_style", "profile"),
    "gs": ("endpoint",),
    "az": ("account", "endpoint"),
}


@dataclass(frozen=True)
class StoreUrl:
    """A bucket, a prefix in it, and how the bucket is reached.

    >>> found = StoreUrl.parse("s3://data/headgate?endpoint=http://minio:9000&region=eu-west-1")
    >>> found.bucket, found.prefix, found.option("region")
    ('data', 'headgate', 'eu-west-1')
    >>> found.spark("jobs")
    's3a://data/headgate/jobs'
    >>> found.address("jobs")
    's3://data/headgate/jobs?endpoint=http://minio:9000&region=eu-west-1'
    """

    kind: str
    """s3, gs or az."""
    bucket: str
    prefix: str
    options: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def parse(url: str) -> StoreUrl | None:
        """What a URL says; nothing if it is not one of an object store."""
        scheme = url.partition(":")[0]
        kind = _KINDS.get(scheme)
        if kind is None or "://" not in url:
            return None
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        bucket = parts.netloc
        if kind == "az" and "@" in bucket:  # as Hadoop writes it: container@account.dfs.core...
            bucket, _, host = bucket.partition("@")
            options.setdefault("account", host.partition(".")[0])
        _check(url, kind, bucket, options)
        return StoreUrl(kind, bucket, parts.path.strip("/"), tuple(options.items()))

    def option(self, name: str, *variables: str) -> str | None:
        """An option of the URL, else the first of these environment variables that is set."""
        given = dict(self.options).get(name)
        return given or next((os.environ[v] for v in variables if os.environ.get(v)), None)

    @property
    def endpoint(self) -> str | None:
        """Where requests go, if not to the cloud itself."""
        of_kind = {
            "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
            "gs": ("STORAGE_EMULATOR_HOST",),
            "az": ("AZURE_STORAGE_ENDPOINT",),
        }
        return self.option("endpoint", *of_kind[self.kind])

    @property
    def region(self) -> str:
        """The region of an S3 bucket."""
        return self.option("region", "AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"

    @property
    def account(self) -> str | None:
        """The storage account of an Azure container."""
        return self.option("account", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")

    @property
    def path_style(self) -> bool:
        """Whether the bucket stands in the path of a request and not in its host name."""
        given = self.option("path_style")
        return self.endpoint is not None if given is None else given == "true"

    def key(self, path: str = "") -> str:
        """The whole name of an object."""
        return "/".join(part for part in (self.prefix, path) if part)

    def spark(self, path: str = "") -> str:
        """The address as Spark takes it."""
        return f"{self._root()}/{self.key(path)}".rstrip("/")

    def address(self, path: str = "") -> str:
        """The address as ``parse`` takes it."""
        query = f"?{urlencode(self.options, safe=':/')}" if self.options else ""
        return f"{self.kind}://{self.bucket}/{self.key(path)}".rstrip("/") + query

    def _root(self) -> str:
        if self.kind == "az":
            return f"abfss://{self.bucket}@{self.account}.dfs.core.windows.net"
        return f"{'s3a' if self.kind == 's3' else 'gs'}://{self.bucket}"


def _check(url: str, kind: str, bucket: str, options: dict[str, str]) -> None:
    if not bucket:
        raise UsageError(
            f"the address must name a bucket: {kind}://BUCKET/PREFIX",
            remedy="write the bucket after the slashes",
            got=repr(url),
        )
    known = _OPTIONS[kind]
    for name, value in options.items():
        if name not in known:
            raise UsageError(
                f"a {kind}:// address can have the options {', '.join(known)}",
                got=repr(name),
                remedy="credentials come from the environment or from files of the cloud's own "
                "tools, never from the address",
            )
        if name == "path_style" and value not in ("true", "false"):
            raise UsageError(
                "path_style must be true or false",
                remedy="write one of the two, or leave it out",
                got=repr(value),
            )
