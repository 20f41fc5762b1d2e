"""Who may do what: tokens, the two roles, and the host names of the server."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Literal, TypeAlias

from headgate.base.errors import UsageError

Role: TypeAlias = Literal["operator", "reader"]
COOKIE = "headgate_session"
SHORTEST_TOKEN = 16
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_ANY = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Access:
    """Who may come in, as the server was configured.

    >>> Access(read_only=True).role(None, None)
    'reader'
    >>> Access(token="a-very-long-token").role(None, None)
    >>> Access(token="a-very-long-token").role("a-very-long-token", None)
    'operator'
    """

    host: str = "127.0.0.1"
    token: str | None = None
    """Lets its holder act."""
    read_token: str | None = None
    """Lets its holder look."""
    read_only: bool = False
    """Nobody may act."""
    names: Sequence[str] = ()
    """More host names under which the server is reached."""

    def __post_init__(self) -> None:
        for token in (self.token, self.read_token):
            if token is not None and len(token) < SHORTEST_TOKEN:
                raise UsageError(
                    f"a token must have {SHORTEST_TOKEN} characters or more, got {len(token)}",
                    remedy='make one with: python -c "import secrets; print(secrets.token_hex())"',
                )
        if self.token is not None and self.token == self.read_token:
            raise UsageError(
                "the token and the read token must differ, got the same",
                remedy="make two, or leave one out",
            )
        if not is_loopback(self.host) and self.token is None and self.read_token is None:
            raise UsageError(
                f"a UI on {self.host} must have a token, or it is open to everybody",
                remedy="set HEADGATE_UI_TOKEN or --token, or leave --host out",
            )

    @property
    def needs_token(self) -> bool:
        """Whether a caller has to show a token."""
        return self.token is not None or self.read_token is not None

    def role(self, token: str | None, cookie: str | None) -> Role | None:
        """What a caller may do, by the token or the cookie that it brings; None if neither fits.

        Every comparison takes the same time whatever differs, and all are made.
        """
        if not self.needs_token:
            return "reader" if self.read_only else "operator"
        found: Role | None = None
        offered: list[tuple[str | None, Role]] = [
            (self.read_token, "reader"),
            (self.token, "reader" if self.read_only else "operator"),
        ]
        for known, role in offered:
            if known is None:
                continue
            by_token = _same(token or "", known)
            by_cookie = _same(cookie or "", self._cookie_of(known))
            if by_token or by_cookie:
                found = role
        return found

    def cookie(self, token: str) -> str | None:
        """What a browser keeps instead of the token; None if the token is wrong."""
        known = [one for one in (self.token, self.read_token) if one is not None]
        fits = [one for one in known if _same(token, one)]
        return self._cookie_of(fits[0]) if fits else None

    @staticmethod
    def _cookie_of(token: str) -> str:
        # not the token itself: a leaked cookie does not give it away
        return hmac.new(token.encode(), b"headgate-ui-session", hashlib.sha256).hexdigest()

    def knows_host(self, host: str) -> bool:
        """Whether a Host header names this server, not somebody's page that points here.

        >>> Access().knows_host("localhost:8181"), Access().knows_host("evil.example:8181")
        (True, False)
        """
        name = host_name(host)
        known = {*_LOOPBACK_NAMES, *(one.lower() for one in self.names)}
        if self.host not in _ANY:
            known.add(_bracketed(self.host).lower())
        if name in known:
            return True
        # an address cannot be pointed elsewhere by a name server, a name can
        return self.host in _ANY and _is_address(name)


def host_name(host: str) -> str:
    """The name in a Host header, without its port, in lower case.

    >>> host_name("LocalHost:8181"), host_name("[::1]:80")
    ('localhost', '[::1]')
    """
    text = host.strip().lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone.

    >>> is_loopback("127.0.0.2"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def cookie_of(header: str | None) -> str | None:
    """Our cookie in a Cookie header."""
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(header or "")
    except CookieError:
        return None
    return jar[COOKIE].value if COOKIE in jar else None


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
