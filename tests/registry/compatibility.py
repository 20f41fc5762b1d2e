"""Whether data of one Avro schema can be read with another, by the specification's rules."""

from __future__ import annotations

from typing import Any

_WIDER = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def misfit(reader: Any, writer: Any) -> str | None:
    """Why a reader cannot read what a writer writes; None if it can."""
    if isinstance(writer, list):
        return next((why for one in writer if (why := misfit(reader, one))), None)
    if isinstance(reader, list):
        if any(misfit(one, writer) is None for one in reader):
            return None
        return f"no branch of the union takes {_kind(writer)}"
    to, of = _kind(reader), _kind(writer)
    if to != of:
        return None if to in _WIDER.get(of, ()) else f"{of} is not read as {to}"
    if to == "record":
        if reader["name"].split(".")[-1] != writer["name"].split(".")[-1]:
            return f"the record {writer['name']} is not {reader['name']}"
        fields = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            names = [field["name"], *field.get("aliases", ())]
            found = next((fields[name] for name in names if name in fields), None)
            if found is None and "default" not in field:
                return f"the field {field['name']} has no default"
            if found is not None and (why := misfit(field["type"], found["type"])):
                return f"the field {field['name']}: {why}"
    if to == "enum" and "default" not in reader:
        gone = [one for one in writer["symbols"] if one not in reader["symbols"]]
        return f"the symbols {gone} are gone" if gone else None
    if to == "array":
        return misfit(reader["items"], writer["items"])
    if to == "map":
        return misfit(reader["values"], writer["values"])
    return None


def _kind(schema: Any) -> str:
    found = schema["type"] if isinstance(schema, dict) else schema
    return _kind(found) if isinstance(found, dict) else str(found)
