"""hostile_backend.py with a fault in every other run: each costs its run alone, is named, and leaves nothing, under plumbline and
under plumbline-case. Without PLUMBLINE_IN_FULL (scripts/nightly) only faults that end by themselves, some of them.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p faults_test.py
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from wheel_support import HERE, IN_FULL, PROGRAM, PYTHON, TOOL

SCHEDULES = ("gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "looped-bfs", "zb-h1", "zb-h2", "zb-auto", "interleaved-zero-bubble",
             "zb-v", "zb-v-greedy", "v-half", "v-min", "hanayo")  # fmt: skip
GOOD, BAD = "exact-mlp-sum", "exact-mlp-mean"  # the cases without and with faults
LONGEST = 600  # seconds until a run has hung
KILLED, NO_END = r"RuntimeError: rank 1: killed by signal 9", r"(no end of the case|the case did not end) within 10 s|no event in time"
NO_FILE = r"said to be done, but there is no file \S+/exact-mlp-mean/rank0.safetensors nor of another rank"
# (fault, status, what is said of it)
SHORT = (
    ("killed-at-start", "error", KILLED),
    ("killed-receiving", "error", KILLED),
    ("killed-before-done", "error", r"killed by signal 9 \(Killed\)"),
    ("slow", "pass", "64 tensors"),
    ("out-of-memory", "error", r"rank 1: MemoryError: "),
    ("raises-in-hook", "error", r"""rank 1: KeyError: "a hook's own key\""""),
    ("dropped", "error", r"forward of micro-batch 2 came in place of forward of micro-batch 1"),
    ("wrong-dtype", "error", r"rank 0 sent \S+ as <f8; expected <f4"),
    ("wrong-values", "fail", r"step 0, stage 2, micro-batch 1: forward"),
    ("half-a-file", "error", r"rank0?.*data_offsets \[\d+, ?\d+\] (lie outside the|do not fit)"),
    ("outside-its-folder", "error", NO_FILE),
    ("leaves-children-and-crashes", "error", r"killed by signal 11 \(Segmentation fault\)"),
    ("says-nonsense", "error", r"unknown event 'case one is fine'|does not follow: @plumbline case one is fine"),
    ("has-the-disk-full", "error", r"No space left on device"),
)
FULL = (
    ("killed-mid-step", "error", KILLED),
    ("killed-at-the-end", "error", KILLED),
    ("raises-in-forward", "error", r"rank 1: ValueError: no forward today"),
    ("raises-in-backward", "error", r"rank 1: ValueError: no backward today"),
    ("wrong-tag", "error", r"forward of micro-batch 7 came in place of forward of micro-batch 1"),
    ("wrong-size", "error", r"rank 1: ValueError: "),
    ("doubled", "error", r"forward of micro-batch 1 came in place of forward of micro-batch 2"),
    ("reordered", "error", r"forward of micro-batch 1 came in place of forward of micro-batch 0"),
    ("cut", "error", r"rank 0: killed by signal 9"),
    ("no-file", "error", NO_FILE),
    ("crashes", "error", r"killed by signal 11 \(Segmentation fault\)"),
    ("exits", "error", r"exit code 0"),
    ("leaves-children", "pass", "tensors"),
)
HANG = (
    ("stopped", "timeout", NO_END),
    ("hangs", "timeout", NO_END),
    ("hangs-and-ignores-sigterm", "timeout", NO_END),
    ("stops-itself", "timeout", NO_END),
    ("floods-with-lines", "timeout", NO_END),
    ("floods-without-newline", "timeout", NO_END),
    ("floods-standard-error", "timeout", NO_END),
)


def ended(pid):
    """Waits for the end of a process that was killed, longer than any kernel needs. A zombie has ended."""
    for _ in range(600):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                if file.read().rpartition(") ")[2][0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def marked(mark):
    """The processes with this word in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def heeds_signals():
    """As a program that a shell starts; under nohup, or in a script's background, a child ignores some."""
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)


class InAFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder, self.mark = holder.name, uuid.uuid4().hex
        self.temporary = os.path.join(self.folder, "temporary")
        os.mkdir(self.temporary)
        self.report = os.path.join(self.folder, "report")

    def backend(self, faults, name="table.json"):
        """The words that start the backend with these faults, by "CASE SCHEDULE"."""
        self.table = os.path.join(self.folder, name)
        with open(self.table, "w", encoding="utf-8") as file:
            json.dump(faults, file)
        return [sys.executable, os.path.join(HERE, "hostile_backend.py"), self.table]

    def backend_file(self, words, case_seconds):
        file = os.path.join(self.folder, "backend.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'schema = "plumbline-backend/1"\nargv = {json.dumps(words)}\n[timeouts]\nstart = 120\ncase = {case_seconds}\n')
        return file

    def start(self, words, before=()):
        environment = os.environ | {"PYTHONPATH": PYTHON}
        environment |= {"TMPDIR": self.temporary, "HOSTILE_MARK": self.mark}
        return subprocess.run([*before, *words], capture_output=True, text=True, timeout=LONGEST, env=environment)

    def expect_nothing_left(self):
        self.assertEqual(marked(self.mark), [])
        if os.path.exists(self.table + ".pids"):
            with open(self.table + ".pids", encoding="utf-8") as file:
                for pid in file.read().split():
                    self.assertTrue(ended(pid), f"process {pid} is left")
        self.assertEqual(os.listdir(self.temporary), [])

    def export(self, schedules):
        corpus = os.path.join(self.folder, "corpus")
        shutil.rmtree(corpus, ignore_errors=True)  # of other schedules
        words = ["export", "--case", f"{GOOD},{BAD}", "--schedule", ",".join(schedules), "--ranks", "2", "--expected", "-o", corpus]
        done = self.start([PROGRAM, *words])
        self.assertEqual(done.returncode, 0, done.stderr)
        return corpus

    def plumbline(self, backend, schedules, case_seconds=10, more=(), before=()):
        file = self.backend_file(backend, case_seconds)
        words = ["run", "--backend", file, "--case", f"{GOOD},{BAD}", "--schedule", ",".join(schedules), "--ranks", "2"]
        return self.start([PROGRAM, *words, "--report", self.report, *more], before)

    def plumbline_case(self, backend, schedules, case_seconds=10):
        words = ["run", "--backend", shlex.join(backend), "--corpus", self.export(schedules), "--timeout", str(case_seconds)]
        return self.start([*TOOL, *words, "-v", "--report", self.report])


class Faults(InAFolder):
    def hold(self, expected, runner, found_in):
        """One run with all these faults, and a run without one beside each."""
        schedules = SCHEDULES[: len(expected)]
        faults = {f"{BAD} {schedule}": fault for schedule, (fault, _, _) in zip(schedules, expected)}
        done = runner(self.backend(faults), schedules)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found = found_in(done)
        self.assertEqual(len(found), 2 * len(schedules), done.stdout + done.stderr)
        for schedule, (fault, status, said) in zip(schedules, expected):
            with self.subTest(fault):
                self.assertEqual(found[BAD, schedule][0], status, found[BAD, schedule])
                self.assertRegex(found[BAD, schedule][1], said)
                self.assertEqual(found[GOOD, schedule][0], "pass", "the run before or after the fault")
        self.expect_nothing_left()
        size = sum(os.path.getsize(os.path.join(top, file)) for top, _, files in os.walk(self.report) for file in files)
        self.assertLess(size, 32 << 20, "bytes of a flood are kept")
        checked = self.start([PROGRAM, "check", self.report])
        self.assertIn(f"the folder is consistent: {2 * len(schedules)} runs, 0 problems", checked.stdout)
        self.assertEqual(checked.returncode, 1, checked.stdout)

    def of_plumbline(self, _):
        with open(os.path.join(self.report, "report.json"), encoding="utf-8") as file:
            return {(v["case"], v["schedule"]): (v["status"], v["sentence"]) for v in json.load(file)["verdicts"]}

    @staticmethod
    def of_plumbline_case(done):
        lines = re.findall(r"(?m)^([A-Z ]+) (\S+) x (\S+) \(.*?\): (.*)$", done.stdout)
        return {(case, schedule): (status.lower(), said) for status, case, schedule, said in lines}

    def test_under_plumbline(self):
        self.hold(SHORT, self.plumbline, self.of_plumbline)

    def test_under_plumbline_case(self):
        self.hold(SHORT, self.plumbline_case, self.of_plumbline_case)

    @unittest.skipUnless(IN_FULL, "in scripts/nightly")
    def test_the_others(self):
        for expected in FULL, HANG:
            for runner, found_in in (self.plumbline, self.of_plumbline), (self.plumbline_case, self.of_plumbline_case):
                self.hold(expected, runner, found_in)
                shutil.rmtree(self.report)
                os.remove(self.table + ".pids") if os.path.exists(self.table + ".pids") else None

    def test_a_backend_that_claims_everything_is_not_believed(self):
        schedules = ("gpipe", "zb-h1")
        for runner, found_in in (self.plumbline, self.of_plumbline), (self.plumbline_case, self.of_plumbline_case):
            done = runner(self.backend({}, "boast.json"), schedules)
            found = found_in(done)
            self.assertEqual((done.returncode, len(found)), (1, 4), done.stdout + done.stderr)
            for status, said in found.values():
                self.assertEqual(status, "error")
                self.assertRegex(said, "said to be done, but there is no file")
            shutil.rmtree(self.report)
        self.expect_nothing_left()

    def test_a_killed_plumbline_case_leaves_no_backend(self):
        backend = self.backend({f"{GOOD} gpipe": "hangs-and-ignores-sigterm"})
        words = ["run", "--backend", shlex.join(backend), "--corpus", self.export(["gpipe"]), "--report", self.report]
        environment = os.environ | {"PYTHONPATH": PYTHON, "HOSTILE_MARK": self.mark, "TMPDIR": self.temporary}
        process = subprocess.Popen([*TOOL, *words], env=environment, stdout=subprocess.DEVNULL)
        for _ in range(6000):
            if os.path.exists(self.table + ".pids"):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with open(self.table + ".pids", encoding="utf-8") as file:
            self.assertTrue(all(ended(pid) for pid in file.read().split()))
        self.assertTrue(all(ended(pid) for pid in marked(self.mark)))

    def signalled(self, *signals, report=()):
        """How plumbline-case ends after these signals in the middle of a case: (exit code, standard error)."""
        backend = self.backend({f"{GOOD} gpipe": "hangs-and-ignores-sigterm"})
        words = ["run", "--backend", shlex.join(backend), "--corpus", self.export(["gpipe"]), *report]
        environment = os.environ | {"PYTHONPATH": PYTHON, "HOSTILE_MARK": self.mark, "TMPDIR": self.temporary}
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([*TOOL, *words], env=environment, preexec_fn=heeds_signals, **pipes)
        for _ in range(6000):
            if os.path.exists(self.table + ".pids"):
                break
            time.sleep(0.01)
        for number in signals:
            process.send_signal(number)
        errors = process.communicate(timeout=60)[1]
        return process.returncode, errors

    def test_a_signal_ends_plumbline_case_in_a_line_and_leaves_nothing(self):
        """As a second one does while it is at that."""
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            said = f"plumbline-case: ended by signal {int(number)} ({signal.strsignal(number)})\n"
            for signals in [number], [number, number]:
                with self.subTest(signals):
                    self.assertEqual(self.signalled(*signals), (-number, said))
                    self.expect_nothing_left()
                    os.remove(self.table + ".pids")

    def test_nor_does_a_kill_leave_its_temporary_folder(self):
        self.assertEqual(self.signalled(signal.SIGKILL), (-signal.SIGKILL, ""))
        for _ in range(1200):
            if not os.listdir(self.temporary):
                break
            time.sleep(0.05)
        self.expect_nothing_left()

    def test_a_signal_keeps_the_report(self):
        self.signalled(signal.SIGTERM, report=["--report", self.report])
        self.assertTrue(os.path.isdir(os.path.join(self.report, "results")))
        self.expect_nothing_left()


class Disks(InAFolder):
    """Folders of reports on a disk of their own, in a mount namespace."""

    SCHEDULES = ("gpipe", "1f1b")

    def setUp(self):
        super().setUp()
        mounts = ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
        if os.getuid() != 0 or subprocess.run(mounts, capture_output=True).returncode:
            self.skipTest("this user may not mount (unshare --mount)")
        self.disk = os.path.join(self.folder, "disk")
        os.mkdir(self.disk)
        self.report = os.path.join(self.disk, "report")

    def on_disk(self, script, kib):
        """The words before a command that run it, and then the script, with an empty disk."""
        mount = f'mount -t tmpfs -o size={kib}k tmpfs {self.disk} || exit 99; "$@"; code=$?; {script}; exit $code'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh"]

    def test_full(self):
        """It ends and says why, at whatever file the disk is full; with more room it goes on from there."""
        resume = f"mount -o remount,size=64m {self.disk}; {PROGRAM} run --resume --report {self.report} $AGAIN > {self.folder}/again"
        sizes = (8, 24, 40, 48, 64, 72, 96, 128, 160) if IN_FULL else (24, 96)
        for kib in sizes:
            with self.subTest(kib=kib):
                backend = self.backend({})
                file = self.backend_file(backend, 60)
                again = f"--backend {file} --case {GOOD},{BAD} --schedule {','.join(self.SCHEDULES)} --ranks 2"
                script = f"AGAIN='{again}'; {resume}; cp {self.report}/report.json {self.folder}/again.json"
                done = self.plumbline(backend, self.SCHEDULES, 60, before=self.on_disk(script, kib))
                self.assertIn(done.returncode, (1, 2), done.stdout + done.stderr)
                self.assertIn("No space left on device", done.stdout + done.stderr)
                with open(os.path.join(self.folder, "again.json"), encoding="utf-8") as json_file:
                    verdicts = json.load(json_file)["verdicts"]
                self.assertEqual(len(verdicts), 4)
                for verdict in verdicts:
                    self.assertIn(verdict["status"], ("pass", "error", "fail"), verdict)
                    if verdict["status"] != "pass":  # what a full disk cost stays as it was judged
                        self.assertIn("No space left on device", verdict["reason"])
                self.expect_nothing_left()

    def test_read_only(self):
        script = f"mount -o remount,ro {self.disk}"
        before = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                  f'mount -t tmpfs tmpfs {self.disk} && {script} && "$@"', "sh"]  # fmt: skip
        done = self.plumbline(self.backend({}), self.SCHEDULES, before=before)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, r"\Aplumbline: --report: folder .* cannot be made \(Read-only file system\)\n\Z")
        self.expect_nothing_left()

    def test_read_only_from_the_second_case_on(self):
        keep = f"cp {self.report}/results.jsonl {self.folder}/kept"
        backend = self.backend({f"{BAD} gpipe": "makes-its-disk-read-only"})
        done = self.plumbline(backend, self.SCHEDULES, 60, before=self.on_disk(keep, 65536))
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, r"plumbline: cannot write .*: Read-only file system\n\Z")
        with open(os.path.join(self.folder, "kept"), encoding="utf-8") as file:
            verdicts = [json.loads(line) for line in file]
        # Those that were judged before: the backend does not wait for that.
        done_before = [(GOOD, "gpipe", "pass"), (GOOD, "1f1b", "pass")]
        self.assertEqual([(v["case"], v["schedule"], v["status"]) for v in verdicts], done_before[: len(verdicts)])
        self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
