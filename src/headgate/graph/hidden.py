"""Hidden columns: what rows carry beside the columns that users see."""

from __future__ import annotations

PREFIX = "__hg_"
"""How the names of hidden columns begin; users may not have such names."""
EVENT_TIME = "__hg_event_time"
POSITION = "__hg_position"
DELETED = "__hg_deleted"
"""Whether a change, or a record of a table, deletes the row of its key."""
CARRIED = (EVENT_TIME, POSITION)
"""What rows carry from a source to the windows and process functions behind it."""
