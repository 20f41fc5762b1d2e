"""A Pulsar broker that asks for tokens: its settings, and the tokens of its users."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

_KEY = b"a key that only tests know, of 32 bytes or more"
ADMIN = "admin"


def token(role: str) -> str:
    """A JSON web token for a role, signed with the tests' key."""
    head = _encode(json.dumps({"alg": "HS256"}).encode())
    body = _encode(json.dumps({"sub": role}).encode())
    sign = hmac.new(_KEY, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{_encode(sign)}"


def settings() -> dict[str, str]:
    """What `PulsarBroker(settings=...)` needs for it; the role `admin` may do everything."""
    plugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
    return {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders":
            "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": "data:;base64," + base64.b64encode(_KEY).decode(),
        "superUserRoles": ADMIN,
        "brokerClientAuthenticationPlugin": plugin,
        "brokerClientAuthenticationParameters": f"token:{token(ADMIN)}",
    }  # fmt: skip


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
