"""Values that are not for everybody's eyes: which they are, and what is shown instead.

Two things hide them. `shown` and the patterns know a secret by its name or its place in an address.
`protect` keeps the values themselves for as long as the process lives, and `redact` replaces them
in whatever is written or printed, however they got there.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "******"
_WORD = r"pass(?:word|wd|phrase)|pwd|secret|tokens?(?![a-z])|credential|jaas"
_NAME = re.compile(
    rf"{_WORD}|(?:api|access|private|signing|encryption|account).?key|sasl$", re.IGNORECASE
)
# The name of something beside a secret, such as the file it is in.
_BESIDE = re.compile(
    r"[._-]?(files?|paths?|location|topics?|columns?|fields?|names?|types?|class|mechanism|"
    r"enabled|count|length|size|ttl|timeout|seconds)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_VALUE = r"""("[^"]*"|'[^']*'|[^\s,;&"')]+)"""
_IN_TEXT = re.compile(
    rf"""((?:{_WORD}|(?:api|access|private).?key)[\w.-]*(?:\s*=\s*|["']\s*:\s*))(?:{_VALUE})""",
    re.IGNORECASE,
)
# A password may have an unescaped slash; digits before one are a port.
_IN_ADDRESS = re.compile(r"(?<=://)(?:[^\s/@:\"'<>]*:(?!\d+[/,])[^\s\"'<>]*|[^/\s\"'<>]+)(?=@)")
_NOT_SECRET = ("", "true", "false", "yes", "no", "none", "null")
_SHORT = 4
_LINE = 8


def is_secret(name: str) -> bool:
    """Whether a setting of this name is taken for a secret.

    >>> [is_secret(n) for n in ("db_password", "authToken", "ssl.key.password", "sasl.jaas.config")]
    [True, True, True, True]
    >>> [is_secret(n) for n in ("password_file", "tokens_topic", "tokenizer", "sasl.mechanism")]
    [False, False, False, False]
    """
    words = _CAMEL.sub("_", name)
    return bool(_NAME.search(words)) and not _BESIDE.search(words)


def shown(name: str, value: str) -> str:
    """A setting's value as it may be seen.

    >>> shown("db_password", "hunter2"), shown("home", "s3://key:word@lake/home")
    ('******', 's3://******@lake/home')
    >>> shown("options", "-Dssl.keyStorePassword=hunter2 -Xmx1g")
    '-Dssl.keyStorePassword=****** -Xmx1g'
    """
    if is_secret(name):
        return HIDDEN
    return _IN_TEXT.sub(rf"\g<1>{HIDDEN}", _without_userinfo(_keeper.redact(value)))


def redact(text: str) -> str:
    """A text without the secrets that are known, and without those of addresses.

    >>> redact("cannot reach postgresql://reader:pw/9@db:5432/shop")
    'cannot reach postgresql://******@db:5432/shop'
    >>> redact("kafka://a:9092,b:9092/orders")
    'kafka://a:9092,b:9092/orders'
    """
    return _without_userinfo(_keeper.redact(text))


def redacted(value: Any) -> Any:
    """The same as `value`, with every text in it redacted; keys of mappings stay.

    >>> redacted({"at": ["http://me:pw@host/x", 5]})
    {'at': ['http://******@host/x', 5]}
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return value


def protect(*values: str) -> None:
    """Let nobody see these values from now on, as they are or as they stand in addresses and JSON.

    >>> protect("correct horse")
    >>> redact("it said: correct+horse, correct horse")
    'it said: ******, ******'
    """
    _keeper.add(values)


def protect_settings(settings: Mapping[str, Any]) -> None:
    """Protect what is secret in settings, such as the params of a job or options of a client."""
    for name, value in settings.items():
        if isinstance(value, str):
            protect(*_secret_parts(name, value))


def protect_address(address: str) -> None:
    """Protect the password of an address.

    >>> protect_address("kafka://app:s3same@broker:9092/orders")
    >>> redact("no such server: 'app:s3same@broker:9092'")
    "no such server: 'app:******@broker:9092'"
    """
    protect(*_secret_parts("", address))


def scrub(error: BaseException) -> None:
    """Redact an exception and those that it came from: a trace may be printed by anybody."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.args = tuple(redact(arg) if isinstance(arg, str) else arg for arg in one.args)
        for name, value in list(vars(one).items()):  # pyspark keeps what the JVM said in fields
            if isinstance(value, str):
                setattr(one, name, redact(value))
            elif name == "_cause" and isinstance(value, BaseException):
                waiting.append(value)
        waiting += [one.__cause__, one.__context__]


def _secret_parts(name: str, value: str) -> Iterator[str]:
    if is_secret(name) and value.lower() not in _NOT_SECRET:
        yield value
    for found in _IN_ADDRESS.findall(value):
        _, colon, password = found.partition(":")
        if colon and password:  # a name alone is no secret
            yield from (password, unquote(password))
    for _, inner in _IN_TEXT.findall(value):
        yield inner.strip("\"'")


def _without_userinfo(text: str) -> str:
    return _IN_ADDRESS.sub(HIDDEN, text) if "://" in text else text


class _Keeper:
    """The secrets of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, values: Iterable[str]) -> None:
        # a short one hides nothing: 'a' is in every sentence, and masking it would spell it out
        kept = (value for value in values if len(value.strip()) >= _SHORT)
        found = {spelled for value in kept for spelled in _spellings(value)}
        with self._lock:
            if not found <= self._values:
                self._values |= found
                # the longest first: one secret may be a part of another
                words = sorted(self._values, key=lambda word: (-len(word), word))
                self._pattern = re.compile("|".join(map(re.escape, words)))

    def redact(self, text: str) -> str:
        pattern = self._pattern
        return pattern.sub(HIDDEN, text) if pattern is not None else text


def _spellings(value: str) -> Iterator[str]:
    """A secret as it stands in texts: itself, in an address, in JSON, and each line of a key."""
    lines = value.splitlines()
    if len(lines) > 1:
        whole = [line.strip() for line in lines if not line.startswith("-----")]
        for line in whole:
            if len(line) >= _LINE:
                yield from _spellings(line)
    for text in (value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1]):
        if text.strip() and text != HIDDEN:
            yield text


_keeper = _Keeper()
