"""Validates a document against its JSON schema, with the part of JSON Schema that plumbline's schemas use."""

import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
# Installed, the schemas are in the package; in plumbline's sources in conformance/schema.
FOLDER = next(
    (f for f in (os.path.join(HERE, "schema"), os.path.join(HERE, "..", "..", "schema")) if os.path.isdir(f)), "schema"
)
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class FormatError(ValueError):
    """A file that violates its format; one line that begins with the file's name."""


def read_json(path, schema):
    """The document in `path`. Raises FormatError, with the place, if it violates the schema of that name."""
    with open(path, "rb") as file:
        document = parse_json(file.read(), path)
    check(document, schema, path)
    return document


def parse_json(text, source):
    """The value of a JSON text in UTF-8, of a str or bytes. Raises FormatError, in one line that begins with `source`, for any
    other text, for an object that names a member twice, for values that are nested too deep, for NaN and infinity, and for half
    of a surrogate pair, which no text can have."""
    try:
        text = text if isinstance(text, str) else text.decode()
        value = json.loads(text, object_pairs_hook=without_repetition, parse_constant=no_number)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError:
        raise FormatError(f"{source}: not JSON that can be read here: its values are nested too deep") from None
    except ValueError as error:
        raise FormatError(f"{source}: not JSON ({error})".replace("\n", " ")) from None


def check(document, schema, source):
    """Raises FormatError, in one line that begins with `source`, if the document violates the schema of that name."""
    with open(os.path.join(FOLDER, schema + ".schema.json"), encoding="utf-8") as file:
        check_by(json.load(file), document, source)


def check_by(root, document, source):
    """check() with the schema itself."""
    for place, message in violations(root, document, root, ""):
        raise FormatError(f"{source}: {place or 'the document'}: {message}"[:400])


def without_repetition(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names a member twice")
    return members


def no_number(word):
    raise ValueError(f"{word} is no number of JSON")


def text(value):
    return json.dumps(value)[:80]


def quoted(name):
    """A name of the document, on one line."""
    return json.dumps(name, ensure_ascii=False)[1:-1]


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": is_number,
    # JSON Schema accepts 1.0 too, which cannot be an index.
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}


def same(a, b):
    """JSON Schema accepts 1.0 for the constant 1, and Python True."""
    return type(a) is type(b) and a == b


def violations(schema, value, root, place):
    """(place, message) of each violation."""
    for keyword, expected in schema.items():
        yield from KEYWORDS[keyword](expected, value, root, place, schema)


def of_type(names, value, root, place, schema):
    names = [names] if isinstance(names, str) else names
    if not any(TYPES[name](value) for name in names):
        yield place, f"expected {' or '.join(names)}, got {text(value)}"


def const(expected, value, root, place, schema):
    if not same(expected, value):
        yield place, f"expected {text(expected)}, got {text(value)}"


def enum(expected, value, root, place, schema):
    if not any(same(one, value) for one in expected):
        yield place, f"expected one of {', '.join(map(text, expected))}, got {text(value)}"


def reference(target, value, root, place, schema):
    yield from violations(root["$defs"][target.removeprefix("#/$defs/")], value, root, place)


def one_of(choices, value, root, place, schema):
    found = [list(violations(choice, value, root, place)) for choice in choices]
    if sum(not errors for errors in found) > 1:
        yield place, f"{text(value)} has several meanings"
    elif all(found):
        # The choice that it nearly was: the one with the deepest first violation.
        yield max((errors[0] for errors in found), key=lambda error: (error[0].count("."), error[0].count("[")))


def properties(members, value, root, place, schema):
    if isinstance(value, dict):
        for name, inner in members.items():
            if name in value:
                yield from violations(inner, value[name], root, f"{place}.{name}" if place else name)


def required(names, value, root, place, schema):
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                yield place, f"member '{name}' is missing"


def additional_properties(allowed, value, root, place, schema):
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    for name in value:
        if name in known:
            continue
        if allowed is False:
            yield place, f"unknown member '{quoted(name)}'; expected {', '.join(known)}"
        else:
            yield from violations(allowed, value[name], root, f"{place}.{quoted(name)}" if place else quoted(name))


def items(inner, value, root, place, schema):
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from violations(inner, item, root, f"{place}[{number}]")


def min_items(least, value, root, place, schema):
    if isinstance(value, list) and len(value) < least:
        yield place, f"expected at least {least} items, got {len(value)}"


def unique_items(wanted, value, root, place, schema):
    if wanted and isinstance(value, list) and len({text(item) for item in value}) != len(value):
        yield place, f"{text(value)} repeats an item"


def min_length(least, value, root, place, schema):
    if isinstance(value, str) and len(value) < least:
        yield place, f"expected at least {least} characters, got {text(value)}"


def pattern(wanted, value, root, place, schema):
    if isinstance(value, str) and not re.search(wanted, value):
        yield place, f"{text(value)} does not match {wanted}"


def minimum(least, value, root, place, schema):
    if is_number(value) and not value >= least:
        yield place, f"expected at least {least}, got {text(value)}"


def exclusive_minimum(limit, value, root, place, schema):
    if is_number(value) and not value > limit:
        yield place, f"expected more than {limit}, got {text(value)}"


def exclusive_maximum(limit, value, root, place, schema):
    if is_number(value) and not value < limit:
        yield place, f"expected less than {limit}, got {text(value)}"


def nothing(expected, value, root, place, schema):
    return ()


# A schema with another keyword is an error of plumbline, which must not pass unnoticed: a KeyError.
KEYWORDS = {
    "$schema": nothing, "$id": nothing, "$defs": nothing, "title": nothing,
    "type": of_type, "const": const, "enum": enum, "$ref": reference, "oneOf": one_of,
    "properties": properties, "required": required, "additionalProperties": additional_properties,
    "items": items, "minItems": min_items, "uniqueItems": unique_items,
    "minLength": min_length, "pattern": pattern,
    "minimum": minimum, "exclusiveMinimum": exclusive_minimum, "exclusiveMaximum": exclusive_maximum,
}  # fmt: skip
