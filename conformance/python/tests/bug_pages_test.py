"""docs/hall_of_bugs.md and docs/torch_pipelining.md against the waivers and the scripts that reproduce the bugs.

    python3 -m unittest discover -s conformance/python/tests -p bug_pages_test.py
"""

import fnmatch
import glob
import os
import re
import tomllib
import unittest

from hall_of_bugs import ROOT, TORCH, bugs, tables, text

WAIVERS = os.path.join(ROOT, "conformance", "waivers")


def holds(condition, version):
    """Whether "2.15.0" satisfies ">=2.15", as in the `when` of a waiver."""
    comparison, number = re.fullmatch(r"(>=|<)([\d.]+)", condition).groups()
    numbers = [[int(part) for part in word.split(".")][:2] for word in (version, number)]
    return numbers[0] >= numbers[1] if comparison == ">=" else numbers[0] < numbers[1]


def listed(value):
    return value if isinstance(value, list) else [value]


class HallOfBugs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = bugs()
        cls.waivers = {}
        for path in glob.glob(os.path.join(WAIVERS, "*.toml")):
            with open(path, "rb") as file:
                for waiver in tomllib.load(file)["waiver"]:
                    named = re.search(r"\((\w+\.py)\)$", waiver["reason"])
                    cls.waivers.setdefault(named[1] if named else f"no script in: {waiver['reason']}", []).append(waiver)
        cls.versions = sorted({re.search(r"-([\d.]+)\.toml$", path)[1] for path in glob.glob(os.path.join(TORCH, "*.toml"))})

    def test_every_waiver_and_every_script_has_a_row(self):
        scripts = {os.path.basename(path) for path in glob.glob(os.path.join(TORCH, "deviations", "*.py"))} - {"ranks.py"}
        self.assertEqual(scripts - self.rows.keys(), set())
        self.assertEqual(self.rows.keys() - scripts, set())
        self.assertEqual(self.waivers.keys() - scripts, set())

    def test_each_version_is_as_loud_as_its_waivers_expect(self):
        self.assertGreater(len(self.versions), 1)
        for script, row in self.rows.items():
            words = {version: row[version] for version in self.versions}
            self.assertLessEqual(set(words.values()), {"silent", "loud", "-"}, script)
            self.assertNotEqual(set(words.values()), {"-"}, script)
            for waiver in self.waivers.get(script, []):
                conditions = waiver.get("when", {}).get("version")
                for version, word in words.items():
                    if conditions is None or holds(conditions, version):
                        expected = ["silent"] if waiver["expect"] == "fail" else ["silent", "loud"]
                        self.assertIn(word, expected, f"{script} in {version}: {waiver}")

    def test_silent_ones_come_first(self):
        silent = ["silent" in row.values() for row in self.rows.values()]
        self.assertEqual(silent, sorted(silent, reverse=True))

    def test_the_case_is_waived_for_this_bug(self):
        for script, row in self.rows.items():
            globs = [glob for waiver in self.waivers.get(script, []) for glob in listed(waiver["case"])]
            case = re.fullmatch(r"`([^`]+)`", row["case"])
            self.assertEqual(case is None, not globs, f"{script}: {row['case']}, and its waivers are about {globs}")
            if case:
                self.assertTrue(any(fnmatch.fnmatchcase(case[1], glob) for glob in globs), f"{script}: {case[1]}, {globs}")

    def test_upstream_is_the_link_of_the_waivers(self):
        for script, row in self.rows.items():
            links = re.findall(r"\]\((https://[^)]+)\)", row["upstream"])
            self.assertEqual(row["upstream"] == "none found", not links, row["upstream"])
            for waiver in self.waivers.get(script, []):
                self.assertIn(waiver["link"], [*links, f"conformance/python/torch_pipelining/deviations/{script}"])


class Coverage(unittest.TestCase):
    def test_the_shares_follow_from_the_counts(self):
        page = text("docs", "torch_pipelining.md")
        rows = [row for table in tables(page) for row in table if "possible" in row]
        self.assertGreater(len(rows), 10)
        for row in rows:
            count = {title: int(row[title] or 0) for title in ("pass", "waived", "unsupported", "skipped")}
            possible = count["pass"] + count["waived"]
            self.assertEqual(int(row["runs"]), sum(count.values()), row)
            self.assertEqual(row["possible"], f"{round(100 * possible / sum(count.values()))} %", row)
            self.assertEqual(row["right"], f"{round(100 * count['pass'] / possible)} %", row)

    def test_the_number_of_bugs_is_that_of_the_hall(self):
        rows = bugs().values()
        silent = sum("silent" in row.values() for row in rows)
        found = re.search(r"(\d+) bugs, (\d+) of them silent", text("docs", "torch_pipelining.md"))
        self.assertEqual([int(number) for number in found.groups()], [len(rows), silent])


if __name__ == "__main__":
    unittest.main()
