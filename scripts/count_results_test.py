"""Tests scripts/count_results with synthetic results and with results of the installed Meson.

The made-up files have the shape that Meson 1.12 and gtest 1.12 write; RealMesonTest would notice if that changed.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = Path(__file__).resolve().parent / 'count_results'


def load():
    loader = importlib.machinery.SourceFileLoader('count_results', str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('count_results', loader))
    loader.exec_module(module)
    return module


count_results = load()


def run(*arguments):
    """(exit code, last line, whole output) of count_results"""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = count_results.main([str(a) for a in arguments])
    lines = output.getvalue().splitlines()
    return code, lines[-1] if lines else '', output.getvalue()


def case(name, inside='', **attributes):
    text = ''.join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<testcase name="{name}" classname="C"{text}>{inside}</testcase>'


FAILURE = '<failure message="x">text</failure>'
ERROR = '<error/>'
SKIPPED = '<skipped message="why"/>'


class MadeUp(unittest.TestCase):
    """Each test describes Meson's tests one by one and the expected counts."""

    def setUp(self):
        self.build = Path(tempfile.mkdtemp(prefix='count_results.'))
        self.addCleanup(shutil.rmtree, self.build)
        self.known, self.log, self.suites, self.single = [], [], [], []

    def name(self, name, suite):
        return f'{suite} - p:{name}' if suite else f'p:{name}'

    def meson(self, name, end, protocol='exitcode', suite='', ran=True, duration=1.0):
        """Adds a test known to Meson, and its result."""
        self.known.append({'name': name, 'suite': [f'p:{suite}' if suite else 'p'], 'protocol': protocol, 'workdir': None})
        if ran:
            self.log.append({'name': self.name(name, suite), 'result': end, 'duration': duration})

    def exit_code_case(self, name, suite='', inside=''):
        self.single.append(f'<testcase name="{self.name(name, suite)}" classname="p">{inside}</testcase>')

    def gtest_suite(self, name, cases, suite='', gtest_suite='C'):
        self.suites.append(f'<testsuite name="p.{self.name(name, suite)}.{gtest_suite}">{"".join(cases)}</testsuite>')

    def own_report(self, name, text, file='junit.xml'):
        folder = self.build / 'test-reports' / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)

    def own_cases(self, name, cases, file='junit.xml'):
        self.own_report(name, f'<testsuites><testsuite name="s">{"".join(cases)}</testsuite></testsuites>', file)

    def write(self):
        (self.build / 'meson-info').mkdir(exist_ok=True)
        (self.build / 'meson-logs').mkdir(exist_ok=True)
        (self.build / 'meson-info/intro-tests.json').write_text(json.dumps(self.known))
        (self.build / 'meson-logs/testlog.json').write_text(''.join(json.dumps(entry) + '\n' for entry in self.log))
        single = f'<testsuite name="p">{"".join(self.single)}</testsuite>' if self.single else ''
        (self.build / 'meson-logs/testlog.junit.xml').write_text(f'<testsuites>{"".join(self.suites)}{single}</testsuites>')

    def expect(self, passed, failed, skipped, *arguments, text=''):
        self.write()
        code, last, output = run(*arguments, self.build)
        self.assertEqual(last, f'{passed} passed, {failed} failed, {skipped} skipped', output)
        self.assertEqual(code, 0 if passed and not failed else 1, output)
        self.assertIn(text, output)

    def good(self):
        self.meson('good', 'OK', 'gtest')
        self.gtest_suite('good', [case('a'), case('b')])

    # --- durations
    def test_seconds_of_each_suite(self):
        self.meson('a', 'OK', suite='unit', duration=2.4)
        self.meson('b', 'OK', suite='unit', duration=3.0)
        self.meson('c', 'OK', duration=7.0)
        for name, suite in (('a', 'unit'), ('b', 'unit'), ('c', '')):
            self.exit_code_case(name, suite)
        self.expect(3, 0, 0, text='seconds: other 7, unit 5\n')

    def test_the_slowest_cases(self):
        self.meson('g', 'OK', 'gtest', suite='unit')
        self.gtest_suite('g', [case(f'c{n}', time=f'{n}.5') for n in range(12)], suite='unit')
        self.expect(12, 0, 0, '--durations', text='   11.5 s  p.unit - p:g.C.c11\n   10.5 s  p.unit - p:g.C.c10\n')
        self.assertNotIn('.C.c1\n', run('--durations', self.build)[2])  # the eleventh
        self.assertNotIn('.C.c11\n', run(self.build)[2])

    # --- results that Meson reports itself
    def test_gtest_cases_are_counted_one_by_one(self):
        self.meson('g', 'FAIL', 'gtest', suite='unit')
        self.gtest_suite('g', [case('a'), case('b', FAILURE), case('c', SKIPPED), case('d', status='notrun')], suite='unit')
        self.gtest_suite('g', [case('a'), case('e', ERROR)], suite='unit', gtest_suite='I/P')
        self.expect(2, 2, 2, text='FAILED unit - p:g: C.b\n')

    def test_exit_code_tests_are_one_case_each(self):
        for name, end, inside in (('a', 'OK', ''), ('b', 'FAIL', '<failure/>'), ('c', 'SKIP', '<skipped/>'), ('d', 'TIMEOUT', '<error/>')):
            self.meson(name, end)
            self.exit_code_case(name, inside=inside)
        self.expect(1, 2, 1)

    def test_crash_after_some_cases_is_one_failure(self):
        self.meson('g', 'FAIL', 'gtest')  # no gtest report: Meson writes one case
        self.exit_code_case('g', inside='<failure/>')
        self.good()
        self.expect(2, 1, 0)

    def test_crash_after_the_report_is_a_failure(self):
        self.meson('g', 'FAIL', 'gtest')
        self.gtest_suite('g', [case('a'), case('b')])
        self.expect(2, 1, 0, text='FAILED p:g: ended with FAIL')

    def test_exit_0_without_a_report_is_a_failure(self):
        self.meson('g', 'OK', 'gtest')
        self.exit_code_case('g')  # as Meson writes it: a passed case
        self.good()
        self.expect(2, 1, 0, text='exit 0 without a report')

    def test_gtest_that_ran_no_case_is_a_failure(self):
        self.meson('g', 'OK', 'gtest')  # an empty report leaves no case in Meson's
        self.good()
        self.expect(2, 1, 0)

    def test_a_failed_case_counts_even_if_the_exit_code_was_lost(self):
        self.meson('g', 'OK', 'gtest')
        self.gtest_suite('g', [case('a'), case('b', FAILURE)])
        self.expect(1, 1, 0)

    def test_a_name_that_begins_with_another_name(self):
        self.meson('g', 'OK', 'gtest')
        self.meson('g.more', 'FAIL', 'gtest')
        self.gtest_suite('g', [case('a')])
        self.gtest_suite('g.more', [case('a', FAILURE)])
        self.expect(1, 1, 0, text='FAILED p:g.more: C.a')

    def test_a_test_that_the_junit_leaves_out_is_a_failure(self):
        self.good()
        self.meson('a', 'OK')
        self.expect(2, 1, 0, text='FAILED p:a: is not in')

    def test_repeated_runs_all_count(self):
        self.meson('g', 'FAIL', 'gtest')
        self.log.append({'name': 'p:g', 'result': 'OK', 'duration': 1.0})
        self.gtest_suite('g', [case('a', FAILURE)])
        self.gtest_suite('g', [case('a')])
        self.expect(1, 1, 0)

    def test_cases_of_one_name_stay_apart(self):
        self.meson('g', 'OK', 'gtest')
        self.gtest_suite('g', [case('a'), case('a'), case('a', SKIPPED)])
        self.expect(2, 0, 1)

    # --- tests that write their own reports
    def test_own_cases_replace_the_one_of_meson(self):
        self.meson('conf', 'OK', suite='conformance')
        self.exit_code_case('conf', 'conformance')
        self.own_cases('conf', [case('a'), case('b'), case('c', SKIPPED)])
        self.expect(2, 0, 1)

    def test_own_failure_is_not_counted_twice(self):
        self.meson('conf', 'FAIL', suite='conformance')
        self.exit_code_case('conf', 'conformance', '<failure/>')
        self.own_cases('conf', [case('a'), case('b', FAILURE)])
        self.expect(1, 1, 0)

    def test_bad_end_with_a_clean_own_report_is_a_failure(self):
        for end in ('FAIL', 'TIMEOUT', 'ERROR', 'INTERRUPT', 'UNEXPECTEDPASS'):
            with self.subTest(end):
                self.setUp()
                self.meson('conf', end, suite='conformance')
                self.exit_code_case('conf', 'conformance', '<failure/>')
                self.own_cases('conf', [case('a')])
                self.expect(1, 1, 0, text=f'ended with {end}')

    def test_conformance_without_a_report_is_a_failure(self):
        self.meson('conf', 'OK', suite='conformance')
        self.exit_code_case('conf', 'conformance')
        self.good()
        self.expect(2, 1, 0, text='left no report')

    def test_conformance_may_be_skipped(self):
        self.meson('conf', 'SKIP', suite='conformance')
        self.exit_code_case('conf', 'conformance', '<skipped/>')
        self.good()
        self.expect(2, 0, 1)

    def test_broken_or_empty_own_report_is_a_failure(self):
        for text in ('', '<testsuites><testsuite', '<testsuites/>', '<testsuites><testsuite name="s" tests="4"/></testsuites>'):
            with self.subTest(text):
                self.setUp()
                self.good()
                self.meson('conf', 'OK', suite='conformance')
                self.exit_code_case('conf', 'conformance')
                self.own_report('conf', text)
                self.expect(2, 1, 0)

    def test_own_root_may_be_one_suite(self):
        self.meson('conf', 'OK', suite='conformance')
        self.own_report('conf', f'<testsuite name="s">{case("a")}</testsuite>')
        self.expect(1, 0, 0)

    def test_every_rank_counts_and_a_case_counts_once(self):
        self.meson('mpi', 'OK', 'gtest')
        self.gtest_suite('mpi', [case('a'), case('b'), case('c')])
        self.own_cases('mpi', [case('a'), case('b', SKIPPED), case('c')], 'rank0.xml')
        self.own_cases('mpi', [case('a'), case('b', SKIPPED), case('c', FAILURE)], 'rank1.xml')
        self.own_cases('mpi', [case('a'), case('b', SKIPPED), case('c')], 'rank2.xml')
        self.expect(1, 1, 1)

    def test_a_report_of_a_test_that_did_not_run_is_not_counted(self):
        self.good()
        self.meson('conf', '', suite='conformance', ran=False)
        self.own_cases('conf', [case('a')])
        self.expect(2, 0, 0)

    # --- the run as a whole
    def test_tests_that_were_to_run_and_did_not(self):
        self.good()
        self.meson('late', '', suite='unit', ran=False)
        self.meson('unasked', '', suite='unit', ran=False)
        expected = self.build / 'expected.txt'
        for listed in ('unit - p:late', 'unit / p:late'):
            expected.write_text(f'ninja: no work to do.\np:good\n{listed}\n')
            self.expect(2, 1, 0, '--expected', expected, text='FAILED unit - p:late: did not run')

    def test_exit_code_of_meson_counts_only_if_nothing_else_failed(self):
        self.good()
        self.expect(2, 1, 0, '--meson-exit', 1, text='meson test ended with 1')
        self.meson('b', 'FAIL')
        self.exit_code_case('b', inside='<failure/>')
        self.expect(2, 1, 0, '--meson-exit', 1)

    def test_lint_is_one_case(self):
        self.good()
        self.expect(3, 0, 0, '--lint-exit', 0)
        self.expect(2, 1, 0, '--lint-exit', 1, text='scripts/lint has findings')

    def test_lint_alone_is_not_enough_to_pass(self):
        self.meson('a', 'SKIP')
        self.exit_code_case('a', inside='<skipped/>')
        self.write()
        code, last, _ = run('--lint-exit', 0, self.build)
        self.assertEqual((code, last), (1, '1 passed, 0 failed, 1 skipped'))

    def test_all_skipped_is_not_a_success(self):
        self.meson('a', 'SKIP')
        self.exit_code_case('a', inside='<skipped/>')
        self.expect(0, 0, 1)

    def test_missing_files_are_a_failure(self):
        for missing in ('meson-info/intro-tests.json', 'meson-logs/testlog.json', 'meson-logs/testlog.junit.xml'):
            with self.subTest(missing):
                self.setUp()
                self.good()
                self.write()
                (self.build / missing).unlink()
                code, last, output = run(self.build)
                self.assertEqual(code, 1, output)
                self.assertNotIn(', 0 failed', last)

    def test_empty_or_broken_files_are_a_failure(self):
        for broken in ('meson-info/intro-tests.json', 'meson-logs/testlog.json', 'meson-logs/testlog.junit.xml'):
            for text in ('', '<testsuites>', '{"name"'):
                with self.subTest(broken, text=text):
                    self.setUp()
                    self.good()
                    self.write()
                    (self.build / broken).write_text(text)
                    code, last, output = run(self.build)
                    self.assertEqual(code, 1, output)
                    self.assertNotIn(', 0 failed', last)

    def test_no_build_folder(self):
        self.assertEqual(run(self.build / 'absent')[:2], (1, '0 passed, 1 failed, 0 skipped'))
        self.assertEqual(run('--clean', self.build / 'absent')[0], 2)

    def test_clean_removes_results_and_nothing_else(self):
        self.good()
        self.own_cases('conf', [case('a')])
        self.write()
        for stale in ('good.xml', 'other.xml', 'meson-logs/meson-log.txt'):
            (self.build / stale).write_text('x')
        self.assertEqual(run('--clean', self.build)[0], 0)
        left = sorted(str(f.relative_to(self.build)) for f in self.build.rglob('*') if f.is_file())
        self.assertEqual(left, ['meson-info/intro-tests.json', 'meson-logs/meson-log.txt', 'other.xml'])


REAL_PROJECT = '''
    project('scratch', version: '1')
    foreach how : ['cases', 'crash', 'late', 'leaves', 'nothing', 'hang']
      test(how, find_program('runner.py'), args: [how], protocol: 'gtest', suite: 'unit', timeout: how == 'hang' ? 1 : 60)
    endforeach
    test('ok', find_program('runner.py'), args: ['exit', '0'], suite: ['unit', 'x'])
    test('bad', find_program('runner.py'), args: ['exit', '3'])
    test('skip', find_program('runner.py'), args: ['exit', '77'])
    test('conf', find_program('runner.py'), args: ['report', 'conf'], suite: 'conformance')
    test('absent', find_program('runner.py'), args: ['exit', '0'], suite: 'conformance')
'''

# Replaces a gtest binary: Meson appends --gtest_output=xml:FILE and reads that file afterwards.
RUNNER = '''
    #!/usr/bin/env python3
    import os, sys, time
    how = sys.argv[1]
    target = sys.argv[-1].split('xml:')[-1]
    def report(file, *cases):
        with open(file, 'w') as out:
            out.write('<testsuites name="AllTests">')
            if cases:
                out.write('<testsuite name="S">')
                out.write(''.join(f'<testcase name="{i}" status="run" result="completed" classname="S">{c}</testcase>' for i, c in enumerate(cases)))
                out.write('</testsuite>')
            out.write('</testsuites>')
    if how == 'cases':
        report(target, '', '<failure message="m">t</failure>', '<skipped message="s"/>', '')
        sys.exit(1)
    if how == 'crash':
        os.abort()
    if how == 'late':
        report(target, '', '')
        sys.exit(3)
    if how == 'leaves':
        sys.exit(0)
    if how == 'nothing':
        report(target)
    if how == 'hang':
        time.sleep(1000)
    if how == 'exit':
        sys.exit(int(sys.argv[2]))
    if how == 'report':
        os.makedirs('test-reports/' + sys.argv[2])
        report(f'test-reports/{sys.argv[2]}/junit.xml', '', '', '', '<skipped/>')
'''


@unittest.skipUnless(shutil.which('meson') and shutil.which('ninja'), 'no Meson in PATH')
class RealMesonTest(unittest.TestCase):

    def setUp(self):
        self.source = Path(tempfile.mkdtemp(prefix='count_results.'))
        self.addCleanup(shutil.rmtree, self.source)
        (self.source / 'meson.build').write_text(textwrap.dedent(REAL_PROJECT))
        runner = self.source / 'runner.py'
        runner.write_text(textwrap.dedent(RUNNER).lstrip())
        runner.chmod(0o755)
        self.build = self.source / 'b'
        # This test may itself run under Meson, whose variables must not affect the inner Meson.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(('MESON', 'NINJA'))}
        self.meson('setup', self.build, self.source, check=True)

    def meson(self, *arguments, check=False):
        return subprocess.run(['meson', *map(str, arguments)], cwd=self.source, env=self.environment, check=check,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def count(self, *selection):
        self.assertEqual(run('--clean', self.build)[0], 0)
        expected = self.source / 'expected.txt'
        expected.write_text(self.meson('test', '-C', self.build, '--list', *selection).stdout)
        outcome = self.meson('test', '-C', self.build, *selection).returncode
        return run('--expected', expected, '--meson-exit', outcome, self.build)

    def test_all_ends(self):
        code, last, output = self.count()
        # passed: 2 of `cases`, 2 of `late`, `ok`, 3 of `conf`
        # failed: 1 of `cases`, `crash`, `late`, `leaves`, `nothing`, `hang`, `bad`, no report from `absent`
        self.assertEqual((code, last), (1, '8 passed, 8 failed, 3 skipped'), output)

    def test_a_selection_that_passes(self):
        self.assertEqual(self.count('ok', 'conf', 'skip')[:2], (0, '4 passed, 0 failed, 2 skipped'))

    def test_a_stale_report_does_not_hide_a_crash(self):
        (self.build / 'crash.xml').write_text('<testsuites><testsuite name="S"><testcase name="a" classname="S"/></testsuite></testsuites>')
        self.assertEqual(self.count('crash')[:2], (1, '0 passed, 1 failed, 0 skipped'))

    def test_a_test_that_cannot_be_started(self):
        (self.source / 'runner.py').write_text('#!/nonexistent/interpreter\n')
        code, last, output = self.count()
        self.assertEqual(code, 1, output)
        self.assertTrue(last.startswith('0 passed, '), output)
        for name in ('cases', 'crash', 'late', 'leaves', 'nothing', 'hang', 'ok', 'bad', 'skip', 'conf', 'absent'):
            self.assertRegex(output, f'(?m)^FAILED .*scratch:{name}')


if __name__ == '__main__':
    unittest.main()
