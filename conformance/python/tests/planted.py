"""An adapter whose engine has one planted fault, run by plumbline."""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.environ["PLUMBLINE_PROGRAM"]
ENGINES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def sentence(engine, plant, start, case, schedule):
    """plumbline's sentence about a case on two ranks: `plant` is Python that changes the engine, `start` starts its adapter."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "planted_adapter.py"), "w", encoding="utf-8") as file:
            file.write(f"import sys\nsys.path[:0] = [{os.path.join(ENGINES, engine)!r}, {ENGINES!r}]\n{plant}\n{start}\n")
        with open(os.path.join(folder, "backend.toml"), "w", encoding="utf-8") as file:
            argv = json.dumps([sys.executable, "planted_adapter.py"])
            file.write(f'schema = "plumbline-backend/1"\nargv = {argv}\n[environment]\nOMP_NUM_THREADS = "1"\n')
        report = os.path.join(folder, "report")
        words = ["--backend", os.path.join(folder, "backend.toml"), "--case", case, "--schedule", schedule, "--ranks", "2"]
        done = subprocess.run([PROGRAM, "run", *words, "--report", report], capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        with open(os.path.join(report, "results.jsonl"), encoding="utf-8") as file:
            (verdict,) = [json.loads(line) for line in file]
        assert verdict["status"] not in ("unsupported", "skipped"), verdict["sentence"]
        return verdict["sentence"]
