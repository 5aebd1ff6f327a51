"""The files of scripts/package, with equal bytes for equal contents: sorted names, one time stamp, no owners.

usage: package_files.py corpus|wheel|all PROGRAM DIR
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / 'conformance' / 'python'
TIME = 315532800  # 1980-01-01, the first time that a wheel can hold
# The schedules and numbers of ranks under which the corpus has each case; a case with a schedule of its own has that.
SCHEDULES, RANKS = '1f1b,gpipe', (2, 4)


def version():
    return re.search(r"version: '([^']*)'", (ROOT / 'meson.build').read_text()).group(1)


def export(program, folder, only_exact):
    """Exports the cases, exact ones with expected results, in the form that `plumbline check` verifies. Returns the
    manifest."""
    folder.mkdir()
    cases, refused = {}, []
    for ranks in RANKS:
        # The exact cases last, in place of those without expected results.
        for which in ([] if only_exact else [['--case', '*']]) + [['--case', 'exact-*', '--expected']]:
            words = ['export', *which, '--schedule', SCHEDULES, '--ranks', str(ranks), '-o', str(folder)]
            done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                sys.exit(f'package: plumbline {" ".join(words)}: {done.stderr.strip()}')
            manifest = json.loads((folder / 'manifest.json').read_text())
            cases |= {case['folder']: case for case in manifest['cases']}
            refused += [case for case in manifest['refused'] if case not in refused]
    for case in cases.values():
        if (case['truth'] == 'exact') != ('expected.json' in case['files']):
            sys.exit(f'package: {case["id"]}: exact cases, and only they, are called exact-*')
    return manifest | {'cases': [cases[folder] for folder in sorted(cases)], 'refused': refused}


def copy_cases(manifest, source, target):
    """The cases of the manifest, and the manifest."""
    for case in manifest['cases']:
        shutil.copytree(source / case['folder'], target / case['folder'])
    write_json(target / 'manifest.json', manifest)


def write_json(path, document):
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')


def about(manifest):
    """The versions that a reader must know, and the cases."""
    page = (ROOT / 'conformance' / 'INTERPRETING.md').read_text(encoding='utf-8')
    cases = [{name: case[name] for name in ('id', 'truth', 'schedule', 'ranks', 'folder')} for case in manifest['cases']]
    return {
        'format': 'plumbline-corpus/1',
        'version': version(),
        'contract': int(re.search(r'Version \*\*(\d+)\*\*', page).group(1)),
        'protocol': int(re.search(r'This is protocol \*\*(\d+)\*\*', page).group(1)),
        'opset': int(re.search(r'^## Opset (\d+)$', page, re.MULTILINE).group(1)),
        'formats': ['plumbline-case/1', 'plumbline-program/1', 'plumbline-expected/1', 'plumbline-manifest/1'],
        'seed': manifest['seed'],
        'cases': cases,
    }


def oracle(manifest, folder):
    """What the oracle of a case without expected results is computed from, beside its files: ORACLE.md says how."""
    sys.path.insert(0, str(PYTHON))
    from plumbline_case import load

    recipes = []
    for entry in manifest['cases']:
        if entry['truth'] == 'exact':
            continue
        case = load(str(folder / entry['folder']))
        orders = {
            name: [order(s) for s in range(case.stages)]
            for name, order in (('forward_order', case.forward_order), ('backward_order', case.backward_order))
        }
        copies = {p['name']: p['stages'] for p in case.program['parameters'] if len(p['stages']) > 1}
        recipes.append({'folder': entry['folder'], 'truth': entry['truth'], **orders, 'shared_parameters': copies})
    return {'format': 'plumbline-oracle/1', 'threads': 1, 'cases': recipes}


def add_common(folder):
    """The contract, the schemas and the licence."""
    shutil.copytree(ROOT / 'conformance' / 'schema', folder / 'schema')
    for file in (ROOT / 'conformance' / 'INTERPRETING.md', ROOT / 'LICENSE'):
        if file.exists():
            shutil.copy(file, folder)


def make_corpus(manifest, exported, scratch, out):
    name = f'plumbline-corpus-{version()}'
    folder = scratch / name
    copy_cases(manifest, exported, folder / 'cases')
    add_common(folder)
    shutil.copy(ROOT / 'conformance' / 'corpus.lock', folder)
    shutil.copy(ROOT / 'conformance' / 'export' / 'ORACLE.md', folder)
    write_json(folder / 'corpus.json', about(manifest))
    write_json(folder / 'oracle.json', oracle(manifest, folder / 'cases'))
    archive = out / f'{name}.tar.gz'
    with open(archive, 'wb') as raw, gzip.GzipFile('', 'wb', mtime=0, fileobj=raw) as packed:
        with tarfile.open(fileobj=packed, mode='w', format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(folder.rglob('*')):
                tar.add(path, str(path.relative_to(scratch)), recursive=False, filter=anonymous)
    return archive


def anonymous(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ''
    entry.mtime = TIME
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry


def wheel_readme():
    """The part of docs/your-backend.md about the wheel, whose commands the test `docs` runs."""
    page = (ROOT / 'docs' / 'your-backend.md').read_text(encoding='utf-8')
    part = re.search(r'^## In Python: the wheel\n(.*?)^## ', page, re.MULTILINE | re.DOTALL).group(1)
    part = re.sub(r'<!--.*?-->\n', '', part)
    return f'# plumbline-case {version()}\n{part}'


def make_wheel(manifest, exported, scratch, out):
    project = scratch / 'wheel'
    package = project / 'plumbline_case'
    shutil.copytree(PYTHON / 'plumbline_case', package, ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copy(PYTHON / 'pyproject.toml', project)
    (project / 'README.md').write_text(wheel_readme(), encoding='utf-8')
    (package / '_version.py').write_text(f"__version__ = '{version()}'\n")
    manifest = manifest | {'cases': [case for case in manifest['cases'] if case['truth'] == 'exact']}
    copy_cases(manifest, exported, package / 'corpus')
    write_json(package / 'corpus.json', about(manifest))
    add_common(package)
    subprocess.run(
        [sys.executable, '-m', 'flit_core.wheel', '--outdir', str(out), str(project)],
        env=os.environ | {'SOURCE_DATE_EPOCH': str(TIME)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return out / f'plumbline_case-{version()}-py3-none-any.whl'


def main():
    what, program, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    makers = {'corpus': [make_corpus], 'wheel': [make_wheel], 'all': [make_corpus, make_wheel]}[what]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        manifest = export(program, scratch / 'exported', what == 'wheel')
        for make in makers:
            made = make(manifest, scratch / 'exported', scratch, out.resolve())
            digest = hashlib.sha256(made.read_bytes()).hexdigest()
            print(f'{out / made.name}: {made.stat().st_size / 1e6:.1f} MB, SHA-256 {digest}')


if __name__ == '__main__':
    main()
