"""Which rows of a key match by their time: those so far apart, or those of the same window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from headgate.base.durations import Duration, parse_signed, spell_duration
from headgate.base.errors import GraphError, user_location

_US = timedelta(microseconds=1)


@dataclass(frozen=True)
class Between:
    """How far the right row's time may be from the left row's time; created by `between`.

    >>> print(hg.between("-10 minutes", "1 hour"))
    between -10 minutes and 1 hour
    """

    lower: timedelta
    upper: timedelta

    def config(self) -> dict[str, Any]:
        """What decides whether stored rows can still be used."""
        return {"type": "between", "lower_us": self.lower // _US, "upper_us": self.upper // _US}

    def __str__(self) -> str:
        return f"between {spell_duration(self.lower)} and {spell_duration(self.upper)}"


@dataclass(frozen=True)
class SameWindow:
    """Rows that are in the same window, which has this config and is called so."""

    window: Mapping[str, Any]
    text: str

    @property
    def size(self) -> timedelta:
        """How long windows are."""
        return timedelta(microseconds=self.window["size_us"])

    def config(self) -> dict[str, Any]:
        """What decides whether stored rows can still be used."""
        return dict(self.window)

    def __str__(self) -> str:
        return self.text


Within: TypeAlias = Between | SameWindow


def between(lower: Duration, upper: Duration) -> Between:
    """Rows match if the right time minus the left time is between these, both included.

    A negative duration means before the left row's time.

    >>> str(between("-10 minutes", "1 hour"))
    'between -10 minutes and 1 hour'
    """
    least = _whole(lower, "the lower bound of between")
    most = _whole(upper, "the upper bound of between")
    if least > most:
        raise GraphError(
            "the lower bound of between must not be above the upper one",
            expected=f"a lower bound of at most {spell_duration(most)}",
            got=spell_duration(least),
            remedy="swap the two",
            location=user_location(),
        )
    return Between(least, most)


def _whole(value: Duration, what: str) -> timedelta:
    """A duration in whole milliseconds, which is how exact watermarks are."""
    duration = parse_signed(value, what=what)
    if duration.microseconds % 1000:
        raise GraphError(
            f"{what} must be a whole number of milliseconds",
            got=repr(value),
            remedy='give a duration such as "-10 minutes"',
            location=user_location(),
        )
    return duration


def spelled(config: Mapping[str, Any]) -> str:
    """The `within` of a config, for people.

    >>> spelled(between("0 seconds", "1 hour").config())
    '0 seconds to 1 hour'
    >>> spelled(hg.sliding("10 minutes", every="1 minute").config())
    'sliding windows of 10 minutes every 1 minute'
    """
    if config["type"] == "between":
        return " to ".join(_spell(config[bound]) for bound in ("lower_us", "upper_us"))
    text = f"{config['type']} windows of {_spell(config['size_us'])}"
    if config["every_us"] != config["size_us"]:
        text += f" every {_spell(config['every_us'])}"
    return text + f" offset {_spell(config['offset_us'])}" * bool(config["offset_us"])


def _spell(micros: int) -> str:
    return spell_duration(timedelta(microseconds=micros)) if micros else "0 seconds"


def window_of(within: Within) -> dict[str, int] | None:
    """The windows of a join, as the kernel reads them."""
    if isinstance(within, Between):
        return None
    names = {"size": "size_us", "slide": "every_us", "offset": "offset_us"}
    return {name: within.window[field] for name, field in names.items()}


def bounds_of(within: Within) -> tuple[int, int]:
    """How far apart the times of matching rows may be, in microseconds.

    In a join in windows the time of a row is that of its window.
    """
    if isinstance(within, SameWindow):
        return 0, 0
    return within.lower // _US, within.upper // _US
