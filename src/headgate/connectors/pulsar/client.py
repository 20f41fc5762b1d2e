"""How a Pulsar service is reached: its addresses, who we are, and whom we trust."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.base.errors import GraphError
from headgate.connectors.pulsar.names import check_service, web_address

if TYPE_CHECKING:
    import pulsar

ACCESS_OPTIONS = (
    "admin_url", "token", "token_file", "tls_trust_certs", "tls_cert", "tls_key", "tls_insecure",
)  # fmt: skip
_ANSWER_SECONDS = 30


@dataclass(frozen=True)
class PulsarAccess:
    """A service and the options that say how to reach it.

    `token` or `token_file` (a JSON web token), `tls_trust_certs` (a file of authorities),
    `tls_cert` and `tls_key` (a certificate of our own), `tls_insecure` ("true": trust anybody),
    `admin_url` (the REST interface, where it is not at the usual port of the first host).

    >>> PulsarAccess("pulsar://localhost:6650").admin_url
    'http://localhost:8080'
    """

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @staticmethod
    def split(
        url: str, options: Mapping[str, str], *, known: tuple[str, ...], what: str
    ) -> tuple[PulsarAccess, dict[str, str]]:
        """The access of a source or sink, and the options of its own."""
        own = {name: str(value) for name, value in options.items() if name in known}
        access = {name: str(value) for name, value in options.items() if name in ACCESS_OPTIONS}
        for name in options:
            if name not in own and name not in access:
                raise GraphError(
                    f"a Pulsar {what} has no option '{name}'",
                    expected=", ".join((*known, *ACCESS_OPTIONS)),
                    remedy="correct or remove the option",
                )
        return PulsarAccess(url, access), own

    def check(self) -> None:
        """Raise if the service can never be reached so."""
        check_service(self.url)
        if "token" in self.options and "token_file" in self.options:
            raise GraphError(
                "token and token_file exclude each other",
                remedy="leave one of them out",
            )
        if ("tls_cert" in self.options) != ("tls_key" in self.options):
            raise GraphError(
                "tls_cert and tls_key must be given together",
                remedy="give both, or neither",
            )
        if self.options.get("tls_insecure", "false") not in ("true", "false"):
            raise GraphError(
                "tls_insecure must be true or false",
                got=repr(self.options["tls_insecure"]),
                remedy="leave it out (false)",
            )
        for name in ("token_file", "tls_trust_certs", "tls_cert", "tls_key"):
            if name in self.options and not Path(self.options[name]).is_file():
                raise GraphError(
                    f"there is no file {self.options[name]}, which {name} names",
                    remedy="correct the path; executors need the file at the same place",
                )

    @property
    def admin_url(self) -> str:
        """The REST interface."""
        return self.options.get("admin_url", "").rstrip("/") or web_address(self.url)

    @property
    def insecure(self) -> bool:
        """Whether anybody's certificate will do."""
        return self.options.get("tls_insecure") == "true"

    def token(self) -> str | None:
        """The token, read anew from its file each time: files are renewed."""
        if "token_file" in self.options:
            return Path(self.options["token_file"]).read_text(encoding="utf-8").strip()
        return self.options.get("token")

    def connect(self, *, answer_seconds: int = _ANSWER_SECONDS) -> pulsar.Client:
        """A client of the service. Close it.

        It writes no log: that would go to stdout, and what matters comes as exceptions.
        """
        import pulsar

        given: dict[str, Any] = {}
        if "tls_cert" in self.options:
            given["authentication"] = pulsar.AuthenticationTLS(
                self.options["tls_cert"], self.options["tls_key"]
            )
        elif self.token() is not None:
            given["authentication"] = pulsar.AuthenticationToken(self.token)
        if "tls_trust_certs" in self.options:
            given["tls_trust_certs_file_path"] = self.options["tls_trust_certs"]
        return pulsar.Client(
            self.url,
            operation_timeout_seconds=answer_seconds,
            tls_allow_insecure_connection=self.insecure,
            tls_validate_hostname=not self.insecure,
            logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
            **given,
        )
