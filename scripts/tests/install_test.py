#!/usr/bin/env python3
"""Installs a build, moves the tree, and uses it as a stranger would; exit 77: what that needs is not here.

usage: install_test.py BUILD WAY      WAY: tree, script, pkg-config, meson or cmake

tree        the files are complete, none of them names the source tree, and the program runs
script      the same of what scripts/install leaves below a DESTDIR; BUILD is build/, which gets its prefix back
pkg-config  docs/example/skips.cc with the compiler and pkg-config alone
meson       the project docs/example with Meson
cmake       the same with CMake
Each example is run: no result may differ, and gpipe and 1f1b must pass.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / 'docs' / 'example'
CORPUS = ['corpus.lock', 'corpus/cases/*.toml', 'INTERPRETING.md', 'schema/*.json', 'waivers/*.toml']
LIBRARIES_OF_USERS = re.compile(r'(torch|ATen|c10)/|[a-z_]+$')  # LibTorch and the standard library


def fail(message):
    sys.exit(f'install_test: {message}')


def run(*command, exit_code=0, **options):
    print('+', *command, flush=True)
    ended = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if ended.returncode != exit_code:
        fail(f'exit code {ended.returncode} instead of {exit_code}\n{ended.stdout}')
    return ended.stdout


def find(name):
    if not shutil.which(name):
        print(f'skipped: no {name} here')
        sys.exit(77)
    return name


def install(build, home):
    """Installs below a DESTDIR, then moves the tree to a place that no option named; returns that place."""
    shutil.rmtree(home, ignore_errors=True)
    run(find('meson'), 'install', '-C', build, '--no-rebuild', '--quiet', '--destdir', home / 'destdir')
    bins = list((home / 'destdir').rglob('bin/plumbline'))
    if len(bins) != 1:
        fail(f'{len(bins)} programs were installed: {bins}')
    return bins[0].parents[1].rename(home / 'moved')


def install_by_script(build, home):
    """The same by scripts/install, for a prefix that must not be written."""
    if build != SOURCE / 'build':
        fail(f'scripts/install installs {SOURCE}/build, not {build}')
    shutil.rmtree(home, ignore_errors=True)
    options = json.loads(run(find('meson'), 'introspect', '--buildoptions', build))
    before = next(option['value'] for option in options if option['name'] == 'prefix')
    prefix = Path('/opt/plumbline-install-test')
    try:
        run(SOURCE / 'scripts' / 'install', prefix, env={**os.environ, 'DESTDIR': str(home / 'destdir')})
    finally:
        run('meson', 'configure', build, f'-Dprefix={before}')
    installed = home / 'destdir' / prefix.relative_to('/')
    if prefix.exists() or not installed.is_dir():
        fail(f'scripts/install {prefix} with DESTDIR={home}/destdir did not install to {installed}')
    return installed.rename(home / 'moved')


def pkg_config(tree, *words):
    folders = [str(file.parent) for file in tree.rglob('plumbline.pc')]
    if len(folders) != 1:
        fail(f'{len(folders)} plumbline.pc were installed: {folders}')
    return run(find('pkg-config'), *words, 'plumbline', env={**os.environ, 'PKG_CONFIG_PATH': folders[0]}).split()


def check_example(program):
    # LibTorch learns of the library's kernels from initializers: the linker must keep every object, called or not.
    if 'plumbline::split::read_pipe(' not in run('nm', '-C', program):
        fail(f'{program} does not hold the whole of libplumbline.a')
    output = run(program)
    for schedule in ('gpipe', '1f1b'):
        if not re.search(rf'PASS \S+ x {schedule}:', output):
            fail(f'no PASS of {schedule}\n{output}')


def tree(tree, home):
    include = tree / 'include' / 'plumbline'
    headers = {str(file.relative_to(include)) for file in include.rglob('*.h')}
    for header in sorted(headers):
        for opening, name in re.findall(r'^\s*#\s*include\s+([<"])([^>"]+)', (include / header).read_text(), re.MULTILINE):
            if opening == '"' and name not in headers:
                fail(f'{header} includes {name}, which is not installed; public_headers in scripts/meson/install lists them')
            if opening == '<' and not LIBRARIES_OF_USERS.match(name):
                fail(f'{header} includes <{name}>: a user of the installed headers has LibTorch, and nothing else')
    corpus = Path(pkg_config(tree, '--variable=corpusdir')[0])
    conformance = SOURCE / 'conformance'
    for pattern in CORPUS:
        sources = list(conformance.glob(pattern))
        if not sources:
            fail(f'conformance/ has no {pattern}')
        for source in sources:
            installed = corpus / str(source.relative_to(conformance)).removeprefix('corpus/')
            if not installed.exists() or installed.read_bytes() != source.read_bytes():
                fail(f'{installed} is not {source}')
    for file in filter(Path.is_file, tree.rglob('*')):
        if os.fsencode(SOURCE) in file.read_bytes():
            fail(f'{file} names the source tree, which an installed program does not have')
    program = tree / 'bin' / 'plumbline'
    run(program, 'run', '--case', 'exact-mlp-mean', '--schedule', '1f1b', '--ranks', '2', '--report', home / 'report')
    cases = ElementTree.parse(home / 'report' / 'junit.xml').findall('.//testcase')
    if len(cases) != 1 or len(cases[0]):
        fail(f'{home}/report/junit.xml has not just one case that passed')
    if (tree / 'bin' / 'plumbline-bench').exists():
        run(program, 'bench', '--help')


def with_pkg_config(tree, home):
    compiler = os.environ['CXX'].split()
    run(*compiler, '-std=c++20', '-c', EXAMPLES / 'skips.cc', '-o', home / 'skips.o', *pkg_config(tree, '--cflags'))
    run(*compiler, home / 'skips.o', '-o', home / 'skips', *pkg_config(tree, '--libs'))
    check_example(home / 'skips')


def with_meson(tree, home):
    project = shutil.copytree(EXAMPLES, home / 'project')
    folder = next(tree.rglob('plumbline.pc')).parent
    run(find('meson'), 'setup', project / 'build', project, '--buildtype=plain', f'-Dpkg_config_path={folder}')
    run(find('ninja'), '-C', project / 'build')
    check_example(project / 'build' / 'own_model')


def with_cmake(tree, home):
    project = shutil.copytree(EXAMPLES, home / 'project')
    # Ninja: a machine that builds with Meson need not have make.
    configure = ['cmake', '-G', 'Ninja', f'-DCMAKE_MAKE_PROGRAM={find("ninja")}', '-S', project,
                 '-B', project / 'build', f'-DCMAKE_PREFIX_PATH={tree}']
    refused = run(*configure, '-Dplumbline_LIBTORCH=/nowhere', exit_code=1)
    if not re.search(r'built with\s+LibTorch 2\.\d+;\s+plumbline_LIBTORCH=/nowhere\s+holds\s+nothing', refused):
        fail(f'another LibTorch is not refused in plain words\n{refused}')
    shutil.rmtree(project / 'build')
    with open(project / 'CMakeLists.txt', 'a') as file:
        file.write('file(READ "${plumbline_CORPUSDIR}/corpus.lock" lock)\n')
    run(*configure)
    run('cmake', '--build', project / 'build')
    check_example(project / 'build' / 'own_model')


def main():
    build, way = Path(sys.argv[1]).resolve(), sys.argv[2]
    check = {'tree': tree, 'script': tree, 'pkg-config': with_pkg_config, 'meson': with_meson, 'cmake': with_cmake}[way]
    if way == 'cmake':
        find('cmake')
    if way == 'pkg-config' and not os.environ.get('PLUMBLINE_IN_FULL'):
        print('skipped: in scripts/nightly; Meson, which is tested here, takes the flags of pkg-config too')
        sys.exit(77)
    if way != 'script':  # for which another CXX than the build's would be another build
        compiler = os.environ.get('CXX', 'g++')
        os.environ['CXX'] = f'ccache {compiler}' if shutil.which('ccache') else compiler
    home = build / 'installed' / way
    check((install_by_script if way == 'script' else install)(build, home), home)
    shutil.rmtree(home)  # after a success: archives are large


main()
