"""A backend that does in each case what a table says: python3 hostile_backend.py TABLE describe|plan|run ...

TABLE is a JSON file, {"CASE SCHEDULE": FAULT}; a case without an entry is done as it should be. Every rank is a process with
its share of the stages, and the ranks send each other messages, so that a fault hits what it would hit in an engine. Process
ids of what a fault leaves behind go to the file TABLE.pids.
"""

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from plumbline_case import Results  # noqa: E402
from plumbline_case.examples.toy import Engine, Toy  # noqa: E402

FOREVER = 100000


def die(number=signal.SIGKILL):
    os.kill(os.getpid(), number)


class Wire:
    """Messages to the neighbours: {name: array} under a tag."""

    def __init__(self, rank, fault, ends):
        self.rank, self.fault, self.ends, self.held = rank, fault, ends, None

    def send(self, to, tag, arrays):
        # Of one message: to the next rank, micro-batch 1.
        fault = self.fault if to > self.rank and tag[1] == 1 else None
        if fault == "dropped":
            return
        if fault == "wrong-tag":
            tag = ("forward", 7)
        if fault == "wrong-dtype":
            arrays = {name: x.astype("<f8") for name, x in arrays.items()}
        if fault == "wrong-size":
            arrays = {name: x[:-1] for name, x in arrays.items()}
        if fault == "wrong-values":
            arrays = {name: -x for name, x in arrays.items()}
        if self.fault == "reordered" and to > self.rank and tag == ("forward", 0):
            self.held = (to, tag, arrays)
            return
        self._put(to, tag, arrays, cut=fault == "cut")
        if fault == "doubled":
            self._put(to, tag, arrays)
        if self.held:
            held, self.held = self.held, None
            self._put(*held)

    def _put(self, to, tag, arrays, cut=False):
        form = {name: [x.dtype.str, list(x.shape)] for name, x in arrays.items()}
        data = json.dumps([tag, form]).encode() + b"\n" + b"".join(x.tobytes() for x in arrays.values())
        try:
            self.ends[to].write(data[: len(data) - 8] if cut else data)
            self.ends[to].flush()
        except ConnectionError:
            raise EOFError(f"rank {to} has left; {tag[0]} of micro-batch {tag[1]} was for it") from None
        if cut:
            die()

    def receive(self, source, tag):
        end = self.ends[source]
        try:
            header = end.readline()
        except ConnectionResetError:  # it left with messages unread
            header = b""
        if not header:
            raise EOFError(f"rank {source} has left; it owes {tag[0]} of micro-batch {tag[1]}")
        found, form = json.loads(header)
        if found != list(tag):
            raise ValueError(f"{found[0]} of micro-batch {found[1]} came in place of {tag[0]} of micro-batch {tag[1]}")
        arrays = {}
        for name, (dtype, shape) in form.items():
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize
            data = end.read(count)
            if len(data) < count:
                raise EOFError(f"rank {source} sent {len(data)} of {count} bytes of {name}")
            if dtype != "<f4":
                raise TypeError(f"rank {source} sent {name} as {dtype}; expected <f4")
            arrays[name] = np.frombuffer(data, dtype).reshape(shape)
        return arrays


class RankEngine(Engine):
    """The stages of one rank, all forwards first."""

    def __init__(self, case, divisor, rank, wire, fault):
        super().__init__(case, divisor)
        self.rank, self.wire, self.fault = rank, wire, fault
        self.own = [s for s in range(case.stages) if s * case.ranks // case.stages == rank]
        self.parameters = {name: x for s in self.own for name, x in case.parameters(s).items()}
        self.buffers = {}

    def batch(self, step, train):
        tapes, crossings, sums = [], [], {}
        last = self.case.ranks - 1
        for m in range(self.case.microbatches):
            crossing = self.wire.receive(self.rank - 1, ("forward", m)) if self.rank > 0 else {}
            self.misbehave("forward", m)
            tapes.append({s: self.forward(step, m, s, crossing) for s in self.own})
            crossings.append(crossing)
            if self.rank < last:
                self.wire.send(self.rank + 1, ("forward", m), crossing)
        for m in range(self.case.microbatches):
            if self.rank == last:
                sent = self.losses(step, m, [tapes[m][s][0] if s in tapes[m] else {} for s in range(self.case.stages)])
            else:
                sent = dict(self.wire.receive(self.rank + 1, ("backward", m)))
            self.misbehave("backward", m)
            for s in reversed(self.own):
                self.backward(step, m, s, *tapes[m][s], sent, sums)
            if self.rank > 0:
                self.wire.send(self.rank - 1, ("backward", m), {n: np.asarray(x, "<f4") for n, x in sent.items()})
        for name, g in sums.items():
            self.gradients[name] = self.gradients.get(name, 0) + g / g.dtype.type(self.divisor)
        self.put_gradients(step)

    def misbehave(self, where, m):
        """The faults of the last rank in the middle of its step."""
        if self.rank != self.case.ranks - 1 or m != 1:
            return
        if self.fault == f"raises-in-{where}":
            raise ValueError(f"no {where} today")
        if where == "backward" and self.fault == "raises-in-hook":
            hook = lambda gradient: {}["a hook's own key"]
            hook(None)
        if where == "backward" and self.fault == "killed-mid-step":
            die()
        if where == "forward" and self.fault == "stopped":
            die(signal.SIGSTOP)
        if where == "forward" and self.fault == "slow":
            time.sleep(0.5)
        if where == "forward" and self.fault == "out-of-memory":
            room = 1 << 28
            resource.setrlimit(resource.RLIMIT_AS, (room, room))
            np.zeros(1 << 30).sum()


class Ranks:
    """Runs a case in a process for each rank."""

    def __init__(self, case, fault):
        self.case, self.fault, self.children = case, fault, {}

    def run(self):
        links = [socket.socketpair() for _ in range(self.case.ranks - 1)]
        for rank in range(self.case.ranks):
            into, out = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(into)
                self.rank(rank, links, os.fdopen(out, "wb"))
            os.close(out)
            self.children[rank] = (pid, os.fdopen(into, "rb"))
        for pair in links:
            for end in pair:
                end.close()
        try:
            if self.fault == "killed-receiving":
                self.kill_when_asleep(self.children[self.case.ranks - 1][0])
            return self.collected()
        finally:
            for pid, _ in self.children.values():
                self.ended(pid)

    @staticmethod
    def ended(pid):
        """Ends a process that has not ended, and returns the signal that did."""
        os.kill(pid, signal.SIGKILL)  # a zombie takes it as well
        return os.WTERMSIG(os.waitpid(pid, 0)[1])

    @staticmethod
    def kill_when_asleep(pid):
        """The last rank, which waits for its first message: the other one does not send any."""
        seen = 0
        while seen < 20:  # it has slept for so many looks
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                seen = seen + 1 if file.read().rpartition(") ")[2][0] == "S" else 0
            time.sleep(0.005)
        os.kill(pid, signal.SIGKILL)

    def rank(self, rank, links, out):
        """The process of a rank."""
        why = ""
        try:
            ends = {}
            for left, (near, far) in enumerate(links):
                if left == rank:
                    ends[rank + 1] = near.makefile("rwb")
                if left + 1 == rank:
                    ends[rank - 1] = far.makefile("rwb")
                near.close(), far.close()
            last = rank == self.case.ranks - 1
            if last and self.fault == "killed-at-start":
                die()
            if rank == 0 and self.fault == "killed-receiving":
                ends[1].readline()  # until the other one has gone
                raise EOFError("rank 1 has left")
            engine = RankEngine(self.case, self.case.json["gradients"]["divide_by"], rank, Wire(rank, self.fault, ends), self.fault)
            results = engine.run()
            if last and self.fault == "killed-at-the-end":
                die()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        form = None if why else {key: [x.dtype.str, list(x.shape)] for key, x in results.items()}
        out.write(json.dumps([why, form]).encode() + b"\n")
        for x in () if why else results.values():
            out.write(x.tobytes())
        out.flush()
        os._exit(0)

    def collected(self):
        """The results of each rank. A silent rank is waited for. Of several that fail, those that lost another come last."""
        found, failed, waiting = {}, {}, {end: rank for rank, (_, end) in self.children.items()}
        while waiting:
            for end in select.select(list(waiting), [], [])[0]:
                rank = waiting.pop(end)
                line = end.readline()
                why, form = json.loads(line) if line else (f"killed by signal {self.ended(self.children.pop(rank)[0])}", {})
                if why:
                    failed[rank] = f"rank {rank}: {why}"
                    continue
                found[rank] = Results()
                for key, (dtype, shape) in form.items():
                    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
                    found[rank][key] = np.frombuffer(end.read(count), dtype).reshape(shape)
        if failed:
            raise RuntimeError(min(failed.values(), key=lambda why: "has left" in why))
        return [found[rank] for rank in range(self.case.ranks)]


class Hostile(Toy):
    name = "hostile"

    def __init__(self, table):
        self.table_file = table
        with open(table, encoding="utf-8") as file:
            self.table = json.load(file)

    def leave(self, pid):
        with open(self.table_file + ".pids", "a", encoding="utf-8") as file:
            file.write(f"{pid}\n")

    def fault_of(self, case):
        return self.table.get(f"{case.json['id']} {case.json['schedule']['name']}")

    def run(self, case, prepared):
        fault = self.current = self.fault_of(case)
        if before := getattr(self, (fault or "none").replace("-", "_"), None):
            before()
        return Ranks(case, fault).run()

    def barrier(self, files):
        """The results are there, and not announced yet."""
        super().barrier(files)
        folder = os.path.dirname(files[0])
        if self.current == "half-a-file":
            os.truncate(files[0], os.path.getsize(files[0]) // 2)
        if self.current == "outside-its-folder":
            os.rename(folder, os.path.join(os.path.dirname(self.table_file), "elsewhere"))
        if self.current == "no-file":
            shutil.rmtree(folder)
        if self.current == "killed-before-done":
            die()

    # --- faults of the whole program, by their names ---------------------------------------------------------------
    def crashes(self):
        ctypes.string_at(0)

    def exits(self):
        os._exit(0)

    def hangs(self):
        time.sleep(FOREVER)

    def hangs_and_ignores_sigterm(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.leave(os.getpid())
        time.sleep(FOREVER)

    def stops_itself(self):
        self.leave(os.getpid())
        die(signal.SIGSTOP)

    def floods_with_lines(self):
        while True:
            os.write(1, b"words\n" * 10000)

    def floods_without_newline(self):
        while True:
            os.write(1, b"x" * 65536)

    def floods_standard_error(self):
        while True:
            os.write(2, b"why\n" * 10000)

    def says_nonsense(self):
        os.write(1, b"@plumbline case one is fine\n")
        time.sleep(FOREVER)

    def has_the_disk_full(self):
        with open("/dev/full", "wb") as file:
            file.write(b"x")

    def makes_its_disk_read_only(self):
        subprocess.run(["mount", "-o", "remount,ro", "tmpfs", os.path.join(os.path.dirname(self.table_file), "disk")], check=True)

    def leaves_children(self):
        for way in (os.setsid, lambda: None):
            child = os.fork()
            if child == 0:
                way()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.execve("/bin/sleep", ["sleep", str(FOREVER)], {})  # holds standard output and standard error open
            self.leave(child)

    def leaves_children_and_crashes(self):
        self.leaves_children()
        self.crashes()


class ClaimsEverything(Hostile):
    """All cases, features and kinds of results; every case is done at once, and there is nothing."""

    name = "boaster"
    delivers = ("forward", "output", "loss", "backward", "partial", "input-grad", "hook-calls", "accumulated", "grad",
                "grad-norm", "buffer", "param", "optimizer-state")  # fmt: skip
    features = ("throughput", "everything")
    replicas = offloads = shards_parameters = True

    def declines(self, case):
        return None

    def run_job(self, job, folder, out, tell):
        for number, _ in enumerate(job["cases"]):
            tell(number, "begins")
            tell(number, "done")


if __name__ == "__main__":
    table = sys.argv.pop(1)
    (ClaimsEverything if os.path.basename(table).startswith("boast") else Hostile)(os.path.abspath(table)).main()
