"""A schema registry: where it is, who asks it, and what it says about a subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from pyspark.sql import SparkSession

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.base.secrets import protect
from headgate.connectors.base import Finding
from headgate.failures import Failure

OPTIONS = ("registry", "registry_credentials", "registry_ca")


@dataclass(frozen=True)
class Registry:
    """A schema registry with Confluent's REST interface.

    >>> Registry.of({"registry": "http://app:s3same-open@a:8081,http://b:8081"}).urls
    ('http://a:8081', 'http://b:8081')
    """

    urls: tuple[str, ...]
    login: str | None = field(default=None, repr=False)
    ca: str | None = None
    """A file of certificates that vouch for it, read where the job is started."""

    @staticmethod
    def of(options: Mapping[str, str]) -> Registry | None:
        """The registry that a topic's options name, if they name one."""
        given = options.get("registry")
        if given is None:
            for name in OPTIONS:
                if name in options:
                    raise GraphError(
                        f"'{name}' must stand beside the registry that it is for",
                        remedy='name it: registry="https://host:8081"',
                    )
            return None
        login, urls = options.get("registry_credentials"), []
        for url in (text.strip() for text in given.split(",")):
            parts = _parts(url)
            if parts is None:
                raise GraphError(
                    "registry must be http://host:port or https://host:port, or several separated"
                    " by commas",
                    got=repr(url.rpartition("@")[2]),  # before it may be a password
                    remedy="write it with its scheme",
                )
            user, at, host = parts.netloc.rpartition("@")
            if at and login is None:
                login = unquote(user)
            urls.append(parts._replace(netloc=host).geturl().rstrip("/"))
        if login is not None:
            name, colon, word = login.partition(":")
            if not colon or not name:
                raise GraphError(
                    "registry_credentials must be user:password",
                    remedy='take them from a param: registry_credentials=job.secret("registry")',
                )
            protect(login, word)
        return Registry(tuple(urls), login, options.get("registry_ca"))

    def to_json(self) -> dict[str, Any]:
        """What the kernel needs to ask it."""
        return {"urls": list(self.urls), "login": self.login, "ca": self._certificates()}

    def _certificates(self) -> str | None:
        if self.ca is None:
            return None
        try:
            text = Path(self.ca).read_text()
        except (OSError, ValueError) as error:
            raise GraphError(
                "registry_ca must be a file of certificates (PEM)",
                got=f"{self.ca}: {error}",
                remedy="name a file that is there where the job is started",
            ) from error
        if "BEGIN CERTIFICATE" not in text:
            raise GraphError(
                "registry_ca must be a file of certificates (PEM)",
                got=f"{self.ca}, which has none",
                remedy="name the file of the authority that signed the registry's certificate",
            )
        return text

    def find(self, spark: SparkSession, subject: str) -> Finding:
        """What the registry says about a subject."""
        about = f"{self.urls[0]}/subjects/{subject}"
        found = jvm.registry_subject(spark, self.to_json(), subject)
        if isinstance(found, Failure):
            return Finding(about, found.sentence, found.reason)
        return Finding(about, f"{about}: {found or 'no schema yet'}")


def _parts(url: str) -> SplitResult | None:
    """The parts of a registry's address; None if it is none."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for one that is no number
    except ValueError:
        return None
    good = parts.scheme in ("http", "https") and parts.hostname
    return parts if good and "@" not in parts._replace(netloc="").geturl() else None
