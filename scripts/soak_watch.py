"""What a program uses while it runs, and what it leaves: for scripts/soak."""

import os
import statistics
import threading
import time
from pathlib import Path

FEWEST_FOR_MEMORY = 100  # runs: a short round fills caches all the time
FACTOR, ROOM = 1.25, 64 << 20  # how much more memory is growth: so many times as much, and so many bytes


def has_grown(before, after):
    return after > FACTOR * before + ROOM


class Usage:
    """Memory, open files and descendants of a process while it runs."""

    def __init__(self, pid):
        self.samples, self._pid, self._over = [], pid, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self):
        self._over.set()
        self._thread.join()

    def _watch(self):
        while not self._over.wait(0.1):
            try:
                with open(f'/proc/{self._pid}/statm', encoding='ascii') as file:
                    memory = int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE')
                self.samples.append((memory, len(os.listdir(f'/proc/{self._pid}/fd')), len(children(self._pid))))
            except OSError:
                return

    def most_memory(self):
        return max((memory for memory, _, _ in self.samples), default=0)

    def grown(self, runs):
        """What grew, in one sentence; empty if nothing did."""
        quarter = len(self.samples) // 4
        if quarter < 2:
            return ''
        before, after = self.samples[quarter : 2 * quarter], self.samples[-quarter:]
        memory = [statistics.median(sample[0] for sample in part) for part in (before, after)]
        if runs >= FEWEST_FOR_MEMORY and has_grown(*memory):
            return f'memory grew from {memory[0] / 2**20:.0f} to {memory[1] / 2**20:.0f} MiB'
        for what, index in (('open files', 1), ('child processes', 2)):
            most = max(sample[index] for sample in before)
            usual = statistics.median_high(sample[index] for sample in after)  # while a process starts, there are more
            if usual > most + 4:
                return f'{what} grew from {most} to {usual}'
        return ''


class Peaks:
    """The most memory of rounds whose work is alike: a later one needs no more than the first three did."""

    FIRST = 3

    def __init__(self):
        self._of_kind = {}

    def grown(self, kind, peak):
        """What grew, in one sentence; empty if nothing did."""
        peaks = self._of_kind.setdefault(kind, [])
        before = max(peaks, default=0)
        if len(peaks) < self.FIRST:
            peaks.append(peak)
        elif has_grown(before, peak):
            return f'memory of {kind} rounds grew from {before / 2**20:.0f} to {peak / 2**20:.0f} MiB'
        return ''


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
        return file.read().split()


def marked(mark):
    """The living processes with this word in their environment; those that were killed may take a moment."""
    for _ in range(100):
        found = []
        for process in Path('/proc').glob('[0-9]*'):
            try:
                if mark.encode() in (process / 'environ').read_bytes():
                    found.append(process.name)
            except OSError:
                pass
        if not found:
            return []
        time.sleep(0.1)
    return found
