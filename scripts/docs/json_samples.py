"""JSON on a page, against the schemas of conformance/schema."""

import importlib.util
import json
from pathlib import Path

CONFORMANCE = Path(__file__).resolve().parents[2] / 'conformance'


def schema_module():
    """plumbline_case.schema alone, since the package needs NumPy."""
    spec = importlib.util.spec_from_file_location('plumbline_schema', CONFORMANCE / 'python/plumbline_case/schema.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def what_is_wrong(name, text):
    """Why the text is no document of the schema of that name, nor members of one; None if it is."""
    file, schema = CONFORMANCE / 'schema' / f'{name}.schema.json', schema_module()
    if not file.exists():
        return f'no schema {name}; expected one of {", ".join(sorted(f.name.split(".")[0] for f in file.parent.glob("*.json")))}'
    root = json.loads(file.read_text(encoding='utf-8'))
    is_whole = text.lstrip()[:1] in ('{', '[')
    try:
        document = schema.parse_json(text if is_whole else f'{{{text}}}', 'the block')
    except schema.FormatError as error:
        return str(error)
    if is_whole:
        found = schema.violations(root, document, root, '')
    else:
        members = root['properties']
        unknown = [member for member in document if member not in members]
        if unknown:
            return f'{name} has no member {unknown[0]}'
        found = (one for member in document for one in schema.violations(members[member], document[member], root, member))
    return next((f'{place or "the document"}: {message}' for place, message in found), None)
