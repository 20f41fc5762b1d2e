"""Records as a registry's clients write them, by an implementation of Avro that is not Java's."""

from __future__ import annotations

import io
import struct
from typing import Any

import fastavro


def record(name: str, *fields: tuple[Any, ...], **more: Any) -> dict[str, Any]:
    """A record's schema; a field is (name, type) or (name, type, default)."""
    made = [
        {"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields
    ]
    return {"type": "record", "name": name, "fields": made, **more}


def framed(id: int, body: bytes) -> bytes:
    """Confluent's framing, by its documentation."""
    return struct.pack(">bI", 0, id) + body


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def resolved(data: bytes, writer: Any, reader: Any) -> dict[str, Any]:
    """What Avro's rules make of a value for a reader."""
    parse = fastavro.parse_schema
    found: Any = fastavro.schemaless_reader(io.BytesIO(data), parse(writer), parse(reader))
    return dict(found)
