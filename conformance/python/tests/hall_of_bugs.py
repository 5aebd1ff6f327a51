"""The engines under test, and the tables of docs/hall_of_bugs.md and of their pages."""

import dataclasses
import glob
import os
import re

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


@dataclasses.dataclass(frozen=True)
class Engine:
    title: str  # the title of its section in docs/hall_of_bugs.md
    peer: str  # its name for scripts/peer
    name: str  # conformance/python/NAME (backends NAME-VERSION.toml, deviations/), conformance/waivers/, docs/NAME.md

    @property
    def folder(self):
        return os.path.join(ROOT, "conformance", "python", self.name)

    @property
    def waivers(self):
        """The files: NAME.toml, and NAME-alone.toml for an adapter that can run without its help."""
        name = os.path.join(ROOT, "conformance", "waivers", self.name.replace("_", "-"))
        return [path for path in (f"{name}.toml", f"{name}-alone.toml") if os.path.exists(path)]

    def versions(self):
        return sorted({re.search(r"([\d.]+)\.toml$", path)[1] for path in glob.glob(os.path.join(self.folder, "*.toml"))})

    def scripts(self):
        found = glob.glob(os.path.join(self.folder, "deviations", "*.py"))
        return {os.path.basename(path) for path in found} - {"ranks.py"}

    def bugs(self):
        """{script: its row in docs/hall_of_bugs.md}"""
        section = text("docs", "hall_of_bugs.md").split(f"\n## {self.title}\n")[1].split("\n## ")[0]
        rows = [row for table in tables(section) for row in table if "script" in row]
        by_script = {row["script"].strip("`"): row for row in rows}
        assert len(by_script) == len(rows), "two rows for one script"
        return by_script


ENGINES = (
    Engine("torch.distributed.pipelining", "torch", "torch_pipelining"),
    Engine("DualPipe", "dualpipe", "dualpipe_deepseek"),
    Engine("DeepSpeed PipelineEngine", "deepspeed", "deepspeed_pipeline"),
    Engine("Megatron-core", "megatron-core", "megatron_core"),
)


def text(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def tables(page):
    """Every table of a page: a list of its rows, {title of the column: cell}."""
    for block in re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE):
        titles, _, *rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
        yield [dict(zip(titles, row, strict=True)) for row in rows]
