"""Keys of AWS that this machine knows by itself: from the environment, or from a profile."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.base.secrets import protect
from headgate.base.store_url import StoreUrl


@dataclass(frozen=True, repr=False)
class AwsKeys:
    """What signs a request."""

    id: str
    secret: str
    token: str | None = None


def aws_keys(url: StoreUrl) -> AwsKeys | None:
    """The keys for an address: of its profile, of the environment, of the default profile.

    Nothing if there are none to be read: then it is the machine that knows (web identity,
    container, instance), or a profile with single sign-on or a role.
    """
    named = dict(url.options).get("profile")
    found = None if named is not None else _of(os.environ, str.upper)
    if found is None:
        profile = named or os.environ.get("AWS_PROFILE") or "default"
        found = _of(_profile(profile), str.lower)
    if found is not None:
        protect(found.secret, *([found.token] if found.token else ()))
    return found


def _of(values: Mapping[str, str], spelled: Callable[[str], str]) -> AwsKeys | None:
    id, secret, token = (
        values.get(spelled(name)) or None
        for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    )
    return AwsKeys(id, secret, token) if id and secret else None


def _profile(name: str) -> Mapping[str, str]:
    given = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    path = Path(given) if given else Path.home() / ".aws" / "credentials"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, configparser.Error):
        return {}
    return parser[name] if parser.has_section(name) else {}
