"""The readers of plumbline-case for files from outside, under Atheris (scripts/fuzz/run), or with a corpus whose files are
changed at random:

python3 python_readers.py READER OPTION...          options and folders of libFuzzer
python3 python_readers.py --replay CORPUS CHANGES SEED

Each reader reads its input or raises FormatError with one line; what it has read it writes, and reads again as the same.
"""

import contextlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
import tracemalloc
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'conformance/python'))
REPLAYS = sys.argv[1:2] == ['--replay']
if not REPLAYS:
    import atheris

import numpy  # noqa: F401  is not instrumented

with contextlib.nullcontext() if REPLAYS else atheris.instrument_imports(include=['plumbline_case']):
    from plumbline_case.case import has_isolated_loss, read_schedule, writes_buffers
    from plumbline_case.judge import judge, rank_of
    from plumbline_case.report_folder import Checker, output_folder, result_prefix
    from plumbline_case.results import key, parse_key
    from plumbline_case.schema import FormatError, check, parse_json, read_json
    from plumbline_case.tensors import encode_tensors, read_stored

FOLDER = tempfile.TemporaryDirectory()
RESULTS = HERE / 'corpus/safetensors/rank'


def file_of(data, name='input'):
    file = os.path.join(FOLDER.name, name)
    with open(file, 'wb') as out:
        out.write(data)
    return file


class CaseOfResults:
    """A case whose expected results are those of the corpus."""

    replicas, microbatches = 1, 4

    @staticmethod
    def expected():
        return read_stored(RESULTS)


def safetensors(data):
    """As a file of tensors, and as the results of a rank, which are judged whatever they are."""
    file = file_of(data, 'rank0.safetensors')
    status, clause = judge(CaseOfResults, [file], name=rank_of)
    assert '\n' not in clause, clause
    clause.encode()
    stored = read_stored(file)
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


def document(data, schema):
    found = read_json(file_of(data), schema)
    again = parse_json(json.dumps(found), 'written')
    check(again, schema, 'written')
    assert json.dumps(again) == json.dumps(found)
    return found


def program(data):
    found = document(data, 'program')
    has_isolated_loss(found), writes_buffers(found)


def csv(data):
    rows = read_schedule(file_of(data))
    assert all(cell == cell.strip() and cell for row in rows for cell in row)


def folder_of(data, name):
    """The folder of a report, with one rank's results, in which the file `name` is this one."""
    folder = os.path.join(FOLDER.name, 'report')
    shutil.rmtree(folder, ignore_errors=True)
    results = os.path.join(output_folder(folder, 'threads', 2), result_prefix('exact-mlp-sum', 'gpipe') + '0.safetensors')
    os.makedirs(os.path.dirname(results))
    shutil.copy(RESULTS, results)
    shutil.copy(HERE / 'corpus/run_record/two', os.path.join(folder, 'run.json'))
    file_of(data, os.path.join(folder, name))
    return folder


def checked(folder):
    """Of its runs the corpus has none, so that each is told as it is recorded, or is not judged."""
    checker = Checker(folder, corpus=FOLDER.name)
    said = [checker.verdict(run).sentence() for run in checker.record['runs']] + checker.problems
    assert not any('\n' in line for line in said), said


# By the corpus that they read. scripts/fuzz/run finds the names here.
READERS = {
    'case': lambda data: document(data, 'case'),
    'csv': csv,
    'description': lambda data: document(data, 'describe'),
    'job': lambda data: document(data, 'job'),
    'plan': lambda data: document(data, 'plan'),
    'program': program,
    'report': lambda data: checked(folder_of(data, 'report.json')),
    'result_key': result_key,
    'run_record': lambda data: checked(folder_of(data, 'run.json')),
    'safetensors': safetensors,
    'verdicts': lambda data: checked(folder_of(data, 'results.jsonl')),
}


def takes(reader, data):
    """Whether the reader took it."""
    try:
        READERS[reader](data)
        return True
    except FormatError as error:
        assert '\n' not in str(error), str(error)
        str(error).encode()
        return False


AWKWARD = (b'-1', b'18446744073709551616', b'1e999', b'NaN', b'[' * 5000, b'{"a":', b'"', b'\\ud800', b'\xff', b'\n', b'\0', b'null')
# In place of a whole value: of a list, such as a shape, of a text, such as a name, and of another one.
LISTS = (b'[]', b'[0]', b'[' + b'1,' * 69 + b'1]', b'[0,4611686018427387904,4611686018427387904]', b'[9223372036854775807,0]', b'{}')
TEXTS = (b'""', b'".."', b'"../x"', b'"\\u0000"', b'"\\ud800"', b'"a\\nb"', b'"' + b'9' * 5000 + b'"', b'7')
OTHERS = (b'-1', b'0', b'4611686018427387904', b'1e999', b'NaN', b'1.0', b'9' * 5000, b'null', b'true', b'"7"', b'[]')
VALUE = re.compile(rb'\[[^][]*\]|"(?:[^"\\]|\\.)*"|-?\d+|null|true|false')


def changed(data, choose):
    """A whole value is exchanged, as far as there are any, or some bytes."""
    if choose.random() < 0.5 and (values := list(VALUE.finditer(data))):
        value = choose.choice(values)
        awkward = {b'[': LISTS, b'"': TEXTS}.get(value[0][:1], OTHERS)
        return data[: value.start()] + choose.choice(awkward) + data[value.end() :]
    for _ in range(choose.randint(1, 4)):
        at = choose.randint(0, len(data))
        count = min(choose.randint(0, 16), len(data) - at)
        part = choose.choice((b'', data[at : at + count] * 2, bytes([choose.randrange(256)]), choose.choice(AWKWARD)))
        data = data[:at] + part + data[at + count :]
    return data


def changed_file(reader, data, choose):
    """Of a file of tensors often the header alone, whose length is made right: else few changes get past it."""
    if reader != 'safetensors' or choose.random() < 0.3:
        return changed(data, choose)
    end = 8 + int.from_bytes(data[:8], 'little')
    header = changed(data[8:end], choose)
    return len(header).to_bytes(8, 'little') + header + data[end:]


# Of the shortest values, nested and in lists: what takes the most memory for a byte.
DENSE = tuple((head + part * (65536 // len(part)) + end) for head, part, end in (
    (b'', b'[', b''), (b'[0', b',0', b']'), (b'[[]', b',[]', b']'), (b'[{}', b',{}', b']'), (b'', b'{"":', b''),
    (b'{"a":0', b',"a":0', b'}'), (b'', b'\n', b''), (b'', b'0,', b''), (b'', b'0\n', b'')))  # fmt: skip
# The memory that a reader may take at one time: this much, and this many times its input.
FIXED_BYTES, BYTES_PER_BYTE = 4 << 20, 256


def takes_bounded(reader, data):
    """takes(), within the memory that the data account for."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    taken = takes(reader, data)
    _, peak = tracemalloc.get_traced_memory()
    most = FIXED_BYTES + BYTES_PER_BYTE * len(data)
    assert peak - before <= most, f'{reader} took {peak - before} bytes of memory for {len(data)} bytes of input, expected at most {most}'
    return taken


def replay(corpus, changes, seed):
    tracemalloc.start()
    for reader in READERS:
        taken = 0
        for number, data in enumerate(DENSE):
            try:
                takes_bounded(reader, data)
            except BaseException:
                print(f'python_readers: {reader}: dense text {number}', file=sys.stderr)
                raise
        for file in sorted((Path(corpus) / reader).iterdir()):
            for change in range(int(changes) + 1):
                data = file.read_bytes()
                if change:
                    data = changed_file(reader, data, random.Random(f'{seed} {file.name} {change}'))
                try:
                    taken += takes_bounded(reader, data)
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
