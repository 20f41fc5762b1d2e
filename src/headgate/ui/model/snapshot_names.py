"""How pages and REST name a snapshot: one of the job's own, never a path, URL or other job."""

from __future__ import annotations

SNAPSHOT_PATTERN = r"latest|(?:r[0-9]{1,9}/)?ck:[0-9]{1,9}|sp:[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
