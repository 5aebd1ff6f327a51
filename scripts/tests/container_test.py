#!/usr/bin/env python3
"""Checks scripts/Containerfile without a container engine; exit 77: not a Debian, whose packages the file names.

usage: container_test.py PROGRAM

Every script that a step runs exists and knows the step's options; every file that a step copies is in the sources or
made by an earlier step; and the packages of the last stage bring every library that PROGRAM loads, and mpirun.
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


def check_packages(last, program):
    packages = re.search(r'--no-install-recommends ([^&]+)', ' '.join(argument for step, argument in last if step == 'RUN')).group(1).split()
    here = installed_with(packages + ['libc6', 'libstdc++6'])  # apt itself needs these two
    files = [shutil.which('mpirun')]
    for name, place in re.findall(r'^\s*(\S+)(?: => (\S+))?', output('ldd', program), re.MULTILINE):
        if place == 'not':
            fail(f'{program} does not find {name}')
        if PACKAGED.match(place or name):
            files.append(place or name)
    for file in filter(None, files):
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
    if not shutil.which('dpkg-query'):
        print('skipped: no dpkg here')
        sys.exit(77)
    check_packages(last, sys.argv[1])


main()
