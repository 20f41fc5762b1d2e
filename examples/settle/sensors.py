"""Alert when two readings of a sensor differ by more than 20 degrees within a minute."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import headgate as hg


@dataclass
class Reading:
    """What a sensor measured."""

    sensor: str
    degrees: float
    at: datetime


@dataclass
class Alert:
    """Two readings that are too far apart."""

    sensor: str
    before: float
    after: float
    at: datetime


class Jumps(hg.Process):
    """Remembers the last reading of each sensor, for a minute."""

    last = hg.value_state(Reading)
    quiet = hg.timer("event")

    def on_readings(self, reading: Reading, ctx: hg.Context) -> hg.Out[Alert]:
        """Compare a reading with the one before it."""
        before = self.last.get()
        minute = timedelta(minutes=1)
        recent = before if before is not None and reading.at - before.at <= minute else None
        if recent is not None and abs(reading.degrees - recent.degrees) > 20:
            yield Alert(reading.sensor, recent.degrees, reading.degrees, reading.at)
        self.last.set(reading)
        self.quiet.set(reading.at + minute)

    def on_quiet(self, ctx: hg.Context) -> None:
        """Forget a sensor that has been silent for a minute."""
        self.last.clear()


@hg.job("sensor_jumps")
def sensor_jumps(job: hg.Job) -> None:
    """Read the sensors and write alerts."""
    readings = job.source(
        "readings",
        hg.topic(job.param("readings", "log:data/readings"), schema=Reading),
        event_time=hg.event_time("at", out_of_orderness="10 seconds"),
    )
    alerts = job.process("jumps", Jumps(), readings=readings.key_by("sensor"))
    alerts.sink("alerts", hg.topic(job.param("alerts", "log:data/alerts"), key="sensor"))
