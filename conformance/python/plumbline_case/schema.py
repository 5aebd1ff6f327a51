"""Validates a document against its JSON schema in conformance/schema."""

import json
import os

import jsonschema


class FormatError(ValueError):
    """A file that violates its format; one line that begins with the file's name."""


FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema")


def is_integer(_, value):
    """JSON Schema accepts 1.0 too, which cannot be an index."""
    return isinstance(value, int) and not isinstance(value, bool)


def of_same_type(validator, value, instance, schema):
    """JSON Schema accepts 1.0 for the constant 1."""
    if type(value) is not type(instance):
        yield jsonschema.ValidationError(f"{instance!r} is not {value!r}")
    yield from jsonschema.Draft202012Validator.VALIDATORS["const"](validator, value, instance, schema)


Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {"const": of_same_type},
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer),
)


def read_json(path, schema):
    """The document in `path`. Raises FormatError, with the place, if it violates the schema of that name."""
    with open(os.path.join(FOLDER, schema + ".schema.json"), encoding="utf-8") as file:
        validator = Validator(json.load(file))
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file, object_pairs_hook=without_repetition)
        except ValueError as error:
            raise FormatError(f"{path}: not JSON ({error})") from None
    error = jsonschema.exceptions.best_match(validator.iter_errors(document))
    if error:
        raise FormatError(f"{path}: {error.json_path[2:] or 'the document'}: {error.message[:200]}")
    return document


def without_repetition(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object names a member twice")
    return members
