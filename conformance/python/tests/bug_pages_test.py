"""docs/hall_of_bugs.md and the pages of engines against the waivers and the scripts that reproduce the bugs.

    python3 -m unittest discover -s conformance/python/tests -p bug_pages_test.py
"""

import fnmatch
import modulefinder
import os
import re
import tomllib
import unittest

from hall_of_bugs import ENGINES, tables, text


def holds(condition, version):
    """Whether "2.15.0" satisfies ">=2.15", as in the `when` of a waiver."""
    comparison, number = re.fullmatch(r"(>=|<)([\d.]+)", condition).groups()
    length = number.count(".") + 1
    numbers = [[int(part) for part in word.split(".")][:length] for word in (version, number)]
    return numbers[0] >= numbers[1] if comparison == ">=" else numbers[0] < numbers[1]


def listed(value):
    return value if isinstance(value, list) else [value]


def waivers_of(engine):
    """{script: its waivers}"""
    waivers = {}
    for path in engine.waivers:
        with open(path, "rb") as file:
            for waiver in tomllib.load(file)["waiver"]:
                named = re.search(r"\((\w+\.py)\)$", waiver["reason"])
                waivers.setdefault(named[1] if named else f"no script in: {waiver['reason']}", []).append(waiver)
    return waivers


class HallOfBugs(unittest.TestCase):
    def each(self):
        """(engine, its rows, its waivers)"""
        for engine in ENGINES:
            with self.subTest(engine.name):
                yield engine, engine.bugs(), waivers_of(engine)

    def test_every_waiver_and_every_script_has_a_row(self):
        for engine, rows, waivers in self.each():
            self.assertEqual(engine.scripts(), rows.keys())
            self.assertEqual(waivers.keys() - rows.keys(), set())

    def test_each_version_is_as_loud_as_its_waivers_expect(self):
        for engine, rows, waivers in self.each():
            versions = engine.versions()
            self.assertGreater(len(versions), 0)
            for script, row in rows.items():
                words = {version: row[version] for version in versions}
                self.assertLessEqual(set(words.values()), {"silent", "loud", "-"}, script)
                self.assertNotEqual(set(words.values()), {"-"}, script)
                for waiver in waivers.get(script, []):
                    conditions = waiver.get("when", {}).get("version")
                    for version, word in words.items():
                        if conditions is None or holds(conditions, version):
                            expected = ["silent"] if waiver["expect"] == "fail" else ["silent", "loud"]
                            self.assertIn(word, expected, f"{script} in {version}: {waiver}")

    def test_an_error_is_waived_by_its_words(self):
        """Any exception is an error, also one of the adapter, and a wait that ends in time."""
        for _, _, waivers in self.each():
            for script, of_script in waivers.items():
                for waiver in of_script:
                    if waiver["expect"] == "error":
                        self.assertTrue(all(glob.strip("*") for glob in listed(waiver.get("says", "*"))), f"{script}: {waiver}")

    def test_silent_ones_come_first(self):
        for _, rows, _ in self.each():
            silent = ["silent" in row.values() for row in rows.values()]
            self.assertEqual(silent, sorted(silent, reverse=True))

    def test_the_case_is_waived_for_this_bug(self):
        for _, rows, waivers in self.each():
            for script, row in rows.items():
                globs = [glob for waiver in waivers.get(script, []) for glob in listed(waiver["case"])]
                case = re.fullmatch(r"`([^`]+)`", row["case"])
                self.assertEqual(case is None, not globs, f"{script}: {row['case']}, and its waivers are about {globs}")
                if case:
                    self.assertTrue(any(fnmatch.fnmatchcase(case[1], glob) for glob in globs), f"{script}: {case[1]}, {globs}")

    def test_upstream_is_the_link_of_the_waivers(self):
        for engine, rows, waivers in self.each():
            for script, row in rows.items():
                links = re.findall(r"\]\((https://[^)]+)\)", row["upstream"])
                self.assertEqual(row["upstream"] == "none found", not links, row["upstream"])
                for waiver in waivers.get(script, []):
                    self.assertIn(waiver["link"], [*links, f"conformance/python/{engine.name}/deviations/{script}"])


class Scripts(unittest.TestCase):
    def test_they_import_nothing_of_plumbline(self):
        for engine in ENGINES:
            folders = [os.path.join(engine.folder, "deviations"), engine.folder, os.path.dirname(engine.folder)]
            finder = modulefinder.ModuleFinder(folders)
            for script in engine.scripts():
                finder.run_script(os.path.join(folders[0], script))
            with self.subTest(engine.name):
                self.assertIn("deviation_ranks", finder.modules)
                self.assertEqual([name for name in finder.modules if name.startswith("plumbline")], [])


class Coverage(unittest.TestCase):
    def test_the_shares_follow_from_the_counts(self):
        for engine in ENGINES:
            rows = [row for table in tables(text("docs", f"{engine.name}.md")) for row in table if "possible" in row]
            self.assertGreater(len(rows), 0, engine.name)
            for row in rows:
                count = {title: int(row[title] or 0) for title in ("pass", "waived", "unsupported", "skipped")}
                possible = count["pass"] + count["waived"]
                self.assertEqual(int(row["runs"]), sum(count.values()), row)
                self.assertEqual(row["possible"], f"{round(100 * possible / sum(count.values()))} %", row)
                self.assertEqual(row["right"], f"{round(100 * count['pass'] / possible)} %", row)

    def test_the_number_of_bugs_is_that_of_the_hall(self):
        for engine in ENGINES:
            rows = engine.bugs().values()
            silent = sum("silent" in row.values() for row in rows)
            found = re.search(r"(\d+) bugs?, (\d+) of them silent", text("docs", f"{engine.name}.md"))
            self.assertEqual([int(number) for number in found.groups()], [len(rows), silent], engine.name)


if __name__ == "__main__":
    unittest.main()
