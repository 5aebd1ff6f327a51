"""Validates a document against its JSON schema in conformance/schema: the used part of draft 2020-12."""

import json
import os
import re


class FormatError(ValueError):
    """A file that violates its format; one line that begins with the file's name."""


FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema")
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
KNOWN = {
    "$schema", "$id", "$defs", "$ref", "title", "type", "const", "enum", "oneOf", "required", "properties",
    "additionalProperties", "items", "minItems", "uniqueItems", "minLength", "pattern", "minimum", "exclusiveMaximum",
}  # fmt: skip


def read_json(path, schema):
    """The document in `path`. FormatError, with the place, where it violates the schema of that name."""
    with open(os.path.join(FOLDER, schema + ".schema.json"), encoding="utf-8") as file:
        root = json.load(file)
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file, object_pairs_hook=without_repetition)
        except ValueError as error:
            raise FormatError(f"{path}: not JSON ({error})") from None
    wrong = first_wrong(document, root, root, "")
    if wrong:
        raise FormatError(f"{path}: {wrong}")
    return document


def without_repetition(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names a member twice")
    return members


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def first_wrong(value, schema, root, place):
    """None, or the first violation in `value`, with its place."""
    if schema.keys() - KNOWN:
        raise FormatError(f"schema {root['$id']}: {sorted(schema.keys() - KNOWN)} is not understood here")
    if "$ref" in schema:
        return first_wrong(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, place)
    wrong = wrong_itself(value, schema)
    if wrong:
        return f"{place or 'the document'}: {wrong}"
    if "oneOf" in schema:
        tries = [first_wrong(value, option, root, place) for option in schema["oneOf"]]
        if tries.count(None) != 1:
            return f"{place or 'the document'}: {json.dumps(value)[:80]} is not one of the forms that may stand here"
    if isinstance(value, dict):
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
            if inner is False:
                return f"{place}.{name}: a member that is not known".lstrip(".")
            if inner is not True:
                wrong = first_wrong(item, inner, root, f"{place}.{name}".lstrip("."))
                if wrong:
                    return wrong
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            wrong = first_wrong(item, schema["items"], root, f"{place}[{i}]")
            if wrong:
                return wrong
    return None


def wrong_itself(value, schema):
    shown = json.dumps(value)[:80]
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(is_type(value, name) for name in names):
            return f"expected {' or '.join(names)}, not {shown}"
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        return f"expected {json.dumps(schema['const'])}, not {shown}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected one of {', '.join(map(str, schema['enum']))}, not {shown}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0) or not re.search(schema.get("pattern", ""), value):
            return f"{shown} is no text that may stand here"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value >= schema.get("exclusiveMaximum", value + 1):
            return f"{shown} is out of range"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return f"expected at least {schema['minItems']} items, not {len(value)}"
        if schema.get("uniqueItems") and len({json.dumps(item) for item in value}) != len(value):
            return "an item stands there twice"
    if isinstance(value, dict):
        missing = [name for name in schema.get("required", []) if name not in value]
        if missing:
            return f"{missing[0]} is missing"
    return None
