#!/usr/bin/env python3
"""Checks scripts/Containerfile without a container engine; exit 77: not a Debian, whose packages the file
names, or the programs are linked with another MPI than the file's.

usage: container_test.py PROGRAM...

Every script that a step runs exists and knows the step's options; every file that a step copies is in the sources or
made by an earlier step. Of the libraries that the PROGRAMs load, the packages of the last stage bring those of the system
(and mpirun), and the step that copies LibTorch's finds each of these.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
PACKAGED = re.compile(r'/(usr/)?lib')  # elsewhere is LibTorch, which a step copies


def fail(message):
    sys.exit(f'container_test: scripts/Containerfile: {message}')


def output(*command):
    return subprocess.run(command, text=True, check=True, stdout=subprocess.PIPE).stdout


def stages():
    """[[(instruction, argument)]]: the instructions of each stage."""
    found = []
    for line in (SOURCE / 'scripts' / 'Containerfile').read_text().splitlines():
        if line and not line.startswith('#'):
            instruction, argument = line.split(maxsplit=1)
            if instruction == 'FROM':
                found.append([])
            found[-1].append((instruction, argument))
    return found


def check_script(command):
    script, *words = command.split()
    if not os.access(SOURCE / script, os.X_OK):
        fail(f'{script} is not a script')
    accepted = output(SOURCE / script, '--help')
    for word in words:
        if word.startswith('--') and word not in accepted:
            fail(f'{script} does not know {word}')


def check_copy(argument, steps_of_build):
    *sources, _ = [word for word in argument.split() if not word.startswith('--')]
    for source in sources:
        if '--from=build' not in argument:
            if not (SOURCE / source).exists():
                fail(f'{source} is not in the sources')
        elif not any(instruction == 'RUN' and any(str(folder) in step.split() for folder in (Path(source), Path(source).parent))
                     for instruction, step in steps_of_build):
            fail(f'no step makes {source}')


def installed_with(packages):
    """The packages and all that they depend on, of those installed here."""
    depends = dict(line.split('\t') for line in output('dpkg-query', '-W', '-f', '${Package}\t${Depends}, ${Pre-Depends}\n').splitlines())
    found, new = set(), list(packages)
    while new:
        package = new.pop()
        if package in depends and package not in found:
            found.add(package)
            new += re.findall(r'(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]*)', depends[package])
    return found


def owner(path):
    """The package of a file; a system with merged folders knows /usr/lib/x by its old name /lib/x as well."""
    for name in (path, os.path.realpath(path)):
        for form in (name, name.removeprefix('/usr'), '/usr' + name):
            found = subprocess.run(['dpkg', '-S', form], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            if found:
                return re.split('[:,]', found)[0]
    return fail(f'{path} is of no package')


def libraries_of(program):
    """The libraries that a program loads, as paths where it has found them."""
    places = [place or name for name, place in re.findall(r'^\s*(\S+)(?: => (\S+))?', output('ldd', program), re.MULTILINE)]
    if 'not' in places:
        fail(f'{program} does not find a library')
    return places


def check_libtorch(steps, programs):
    """Runs the commands of the step that finds LibTorch's libraries, with the places of this machine."""
    loaded = {file for program in programs for file in libraries_of(program)}
    folder = next((os.path.dirname(file) for file in sorted(loaded) if os.path.basename(file).startswith('libtorch')), None)
    if not folder:
        fail(f'none of {", ".join(programs)} loads LibTorch')
    needed = {file for file in loaded if file.startswith(folder + '/')}
    home = next(argument.split('=')[1] for step, argument in steps if step == 'ENV' and argument.startswith('PLUMBLINE_HOME='))
    listing = next(argument for step, argument in steps if step == 'RUN' and 'ldd ' in argument)
    listing = listing.split('&& ')[-1].rpartition('| xargs')[0]
    for place, here in ((home, folder), *(('/opt/plumbline/bin/' + Path(program).name, program) for program in programs)):
        listing = re.sub(rf'{re.escape(place)}(?![\w-])', here, listing)
    missing = needed - set(output('bash', '-o', 'pipefail', '-c', listing).split())
    if missing:
        fail(f'the image lacks {", ".join(sorted(missing))}, which a program loads; the step lists with: {listing}')
    print(f'{len(needed)} libraries of LibTorch are listed')


def check_packages(last, programs):
    packages = re.search(r'--no-install-recommends ([^&]+)', ' '.join(argument for step, argument in last if step == 'RUN')).group(1).split()
    here = installed_with(packages + ['libc6', 'libstdc++6'])  # apt itself needs these two
    files = {file for program in programs for file in libraries_of(program) if PACKAGED.match(file)}
    if shutil.which('mpirun'):
        files.add(shutil.which('mpirun'))
    for file in sorted(files):
        if owner(file) not in here:
            fail(f'no package of the last stage brings {file}, which is of {owner(file)}')
    print(f'{len(files)} files are of {len(packages)} packages and what they depend on')


def main():
    build, last = stages()
    for instruction, argument in build + last:
        if instruction == 'RUN' and argument.startswith('scripts/'):
            check_script(argument)
        if instruction == 'COPY':
            check_copy(argument, build)
    check_libtorch(build, sys.argv[1:])
    if not shutil.which('dpkg-query'):
        print('skipped: no dpkg here')
        sys.exit(77)
    if any('libmpich' in file for program in sys.argv[1:] for file in libraries_of(program)):
        print('skipped: the programs are linked with MPICH, the image has Open MPI')
        sys.exit(77)
    check_packages(last, sys.argv[1:])


main()
