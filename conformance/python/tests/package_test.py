"""The packages as others get them: equal bytes each time, installed in an empty environment, first PASS and first FAIL.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p package_test.py
"""

import glob
import hashlib
import json
import os
import pathlib
import shutil
import sys
import sysconfig
import tarfile
import tempfile
import time
import unittest
import zipfile

from wheel_support import PROGRAM, ROOT, InFolder
from wheel_support import start_outside as start


def package(what, out):
    done = start([os.path.join(ROOT, "scripts", "package"), what, "-o", out, "--program", PROGRAM])
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout, end="")
    return {path.name: path.read_bytes() for path in pathlib.Path(out).iterdir()}


class Packages(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.out = os.path.join(cls.folder, "one")
        cls.files = package("all", cls.out)
        cls.wheel, cls.corpus = sorted(glob.glob(cls.out + "/*"), key=lambda path: path.endswith(".tar.gz"))

    def test_equal_bytes(self):
        again = package("all", os.path.join(self.folder, "other"))
        self.assertEqual({name: hashlib.sha256(x).hexdigest() for name, x in self.files.items()},
                         {name: hashlib.sha256(x).hexdigest() for name, x in again.items()})  # fmt: skip

    def test_names_have_the_version_of_the_build(self):
        with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
            version = file.read().partition("version: '")[2].partition("'")[0]
        self.assertEqual(
            sorted(self.files), [f"plumbline-corpus-{version}.tar.gz", f"plumbline_case-{version}-py3-none-any.whl"]
        )

    def test_no_place_of_this_machine_is_in_them(self):
        with tarfile.open(self.corpus) as tar, zipfile.ZipFile(self.wheel) as wheel:
            contents = {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}
            contents |= {name: wheel.read(name) for name in wheel.namelist()}
            self.assertEqual(
                {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in tar.getmembers()}, {(0, 0, "", "", 315532800)}
            )
            names = [m.name.split("/") for m in tar.getmembers()]
            self.assertEqual(names, sorted(names))
        for name, content in contents.items():
            for place in (ROOT, tempfile.gettempdir() + "/", os.path.expanduser("~") + "/"):
                self.assertNotIn(place.encode(), content, name)

    def test_the_corpus_is_an_export(self):
        """plumbline itself verifies its files; every exact case has its expected results."""
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(self.corpus) as tar:
                tar.extractall(folder, filter="data")
            (root,) = os.listdir(folder)
            root = os.path.join(folder, root)
            checked = start([PROGRAM, "check", os.path.join(root, "cases")])
            self.assertEqual(checked.returncode, 0, checked.stderr)
            with open(os.path.join(root, "corpus.json"), encoding="utf-8") as file:
                about = json.load(file)
            self.assertEqual((about["contract"], about["protocol"], about["opset"]), (1, 1, 1))
            listed = {c["id"]: c["truth"] for c in json.loads(start([PROGRAM, "list", "--case", "*", "--json"]).stdout)}
            self.assertEqual({case["id"]: case["truth"] for case in about["cases"]}, listed)
            with open(os.path.join(root, "oracle.json"), encoding="utf-8") as file:
                recipes = {case["folder"] for case in json.load(file)["cases"]}
            for case in about["cases"]:
                exact = os.path.exists(os.path.join(root, "cases", case["folder"], "expected.safetensors"))
                self.assertEqual((exact, case["folder"] not in recipes), (case["truth"] == "exact",) * 2, case)

    def test_first_pass_and_first_fail_in_an_empty_environment(self):
        """Installs the wheel without an index: NumPy, its only requirement, is that of this Python. The environment's own
        programs are the only ones in PATH, so that there is no compiler."""
        begin = time.monotonic()
        empty = os.path.join(self.folder, "empty")
        self.assertEqual(start([sys.executable, "-m", "venv", empty]).returncode, 0)
        home, programs = os.path.join(empty, "home"), os.path.join(empty, "bin")
        python = os.path.join(programs, "python")
        alone = lambda words: start(words, path=programs, cwd=home)
        os.mkdir(home)
        (site,) = glob.glob(os.path.join(empty, "lib", "*", "site-packages"))
        here = sysconfig.get_path("purelib")
        for path in glob.glob(os.path.join(here, "numpy*")):
            shutil.copytree(path, os.path.join(site, os.path.basename(path)), symlinks=True)
        done = alone([python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", self.wheel])
        self.assertEqual(done.returncode, 0, done.stderr)
        installed = time.monotonic()
        tool = os.path.join(empty, "bin", "plumbline-case")
        self.assertEqual(alone([tool, "example", "mine.py"]).stdout, "mine.py: plumbline-case run --backend mine.py:Toy\n")
        right = alone([tool, "run", "-v", "--backend", "mine.py:Toy"])
        passed = time.monotonic()
        self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
        self.assertIn("PASS exact-mlp-sum x 1f1b (2 ranks, own): ", right.stdout)
        wrong = alone([tool, "run", "--backend", "mine.py:WrongScale", "--case", "exact-mlp-sum"])
        self.assertEqual(wrong.returncode, 1, wrong.stdout + wrong.stderr)
        self.assertIn("FAIL exact-mlp-sum x 1f1b (2 ranks, own): step 0: gradient `", wrong.stdout)
        examined = alone([tool, "doctor", "--backend", "mine.py:Toy"])
        self.assertEqual((examined.returncode, examined.stdout.count("ok         ")), (0, 10), examined.stdout)
        self.assertIn("first comparison: PASS exact-mlp-sum x gpipe (2 ranks, own)", examined.stdout)
        for compiler in "cc", "gcc", "c++", "g++", "clang", "ninja":
            self.assertIsNone(shutil.which(compiler, path=programs))
        print(right.stdout.splitlines()[-1])
        print(f"installed in {installed - begin:.1f} s; every case run in {passed - installed:.1f} s; "
              f"the first FAIL {time.monotonic() - passed:.1f} s later")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
