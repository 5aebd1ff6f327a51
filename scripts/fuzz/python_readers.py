"""The readers of plumbline-case for files from outside, under Atheris (scripts/fuzz/run), or with a corpus whose files are
changed at random:

python3 python_readers.py READER OPTION...          options and folders of libFuzzer
python3 python_readers.py --replay CORPUS CHANGES SEED

Each reader reads its input or raises FormatError with one line; what it has read it writes, and reads again as the same.
"""

import contextlib
import os
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'conformance/python'))
REPLAYS = sys.argv[1:2] == ['--replay']
if not REPLAYS:
    import atheris

import numpy  # noqa: F401  is not instrumented

with contextlib.nullcontext() if REPLAYS else atheris.instrument_imports(include=['plumbline_case']):
    from plumbline_case.results import key, parse_key
    from plumbline_case.schema import FormatError, read_json
    from plumbline_case.tensors import encode_tensors, read_stored

FOLDER = tempfile.TemporaryDirectory()


def file_of(data):
    file = os.path.join(FOLDER.name, 'input')
    with open(file, 'wb') as out:
        out.write(data)
    return file


def safetensors(data):
    stored = read_stored(file_of(data))
    if all(one.dtype != 'BF16' for one in stored.values()):  # NumPy has none: its bits are written as U16
        again = read_stored(file_of(encode_tensors({name: one.array for name, one in stored.items()})))
        assert {n: (s.dtype, s.array.shape, s.array.tobytes()) for n, s in again.items()} == {
            n: (s.dtype, s.array.shape, s.array.tobytes()) for n, s in stored.items()
        }


def result_key(data):
    try:
        text = data.decode()
        parsed = parse_key(text)
    except ValueError as error:
        raise FormatError(str(error).splitlines()[0]) from None
    assert key(*parsed) == text


# By the corpus that they read.
READERS = {
    'safetensors': safetensors,
    'result_key': result_key,
    'description': lambda data: read_json(file_of(data), 'describe'),
    'job': lambda data: read_json(file_of(data), 'job'),
    'plan': lambda data: read_json(file_of(data), 'plan'),
}


def takes(reader, data):
    """Whether the reader took it."""
    try:
        READERS[reader](data)
        return True
    except FormatError as error:
        assert '\n' not in str(error), str(error)
        return False


AWKWARD = (b'-1', b'18446744073709551616', b'1e999', b'NaN', b'[' * 5000, b'{"a":', b'"', b'\\ud800', b'\xff', b'\n', b'\0', b'null')


def changed(data, choose):
    for _ in range(choose.randint(1, 4)):
        at = choose.randint(0, len(data))
        count = min(choose.randint(0, 16), len(data) - at)
        part = choose.choice((b'', data[at : at + count] * 2, bytes([choose.randrange(256)]), choose.choice(AWKWARD)))
        data = data[:at] + part + data[at + count :]
    return data


def replay(corpus, changes, seed):
    for reader in READERS:
        taken = 0
        for file in sorted((Path(corpus) / reader).iterdir()):
            for change in range(int(changes) + 1):
                data = file.read_bytes()
                if change:
                    data = changed(data, random.Random(f'{seed} {file.name} {change}'))
                try:
                    taken += takes(reader, data)
                except BaseException:
                    print(f'python_readers: {reader}: {file.name}, change {change} of seed {seed}', file=sys.stderr)
                    raise
        assert taken, f'{reader} took none of its files'


def fuzz(name, words):
    atheris.Setup([sys.argv[0], *words], lambda data: takes(name.removeprefix('python_'), data))
    atheris.Fuzz()


if __name__ == '__main__':
    if REPLAYS:
        replay(*sys.argv[2:])
    else:
        fuzz(sys.argv[1], sys.argv[2:])
