#!/usr/bin/env python3
"""Runs mutants that a seed draws, and counts which ones the tests notice.

run.py TREE --seed S --count N --log FILE takes the tree that plant.py wrote. A mutant lives until the first test fails,
crashes or takes far longer than it should. Tests that reach it come first, those of few mutants and then quick ones before slow
ones; then what ./dev test runs besides. The log has one line of JSON per mutant; a run goes on where an earlier one of the same seed ended.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

FEW = 2.0     # seconds of tests that are tried first, of those that reach the fewest mutants
QUICK = 20.0  # seconds of tests that are tried then
PATIENCE = 4.0  # a test may take so many times as long as it did, and
GRACE = 60.0    # so many seconds more


def note(text):
    print(text, file=sys.stderr, flush=True)


class Suite:
    """The tests of the tree: which mutants each reaches, and how long it takes."""

    def __init__(self, tree, jobs):
        self.tree, self.jobs = tree, jobs
        self.bin = tree / 'build/bin'
        # What tests compile is remembered: most mutants leave most kernels as they were.
        os.environ['PATH'] = f'{tree}/build/remembering:{os.environ["PATH"]}'
        trace = tree / 'trace.jsonl'
        if not (tree / 'traced').exists():
            self.record(trace)
        self.rest = self.record_rest()
        self.tests = [json.loads(line) for line in trace.read_text().splitlines()]
        for test in self.tests:
            test['reaches'] = set(test['reaches'])
        self.believed = set()  # how tests fail that pass without the mutant

    def record(self, trace):
        """Runs all tests with the code as it was; they have to pass. Tests of the sources themselves would judge the planted
        text, and so are left out."""
        trace.unlink(missing_ok=True)
        note('the tests run once with the code as it was, to see which mutants each reaches (several minutes)')
        started = time.time()
        # Each process has a file of its own: two that append to one would break each other's long lines.
        parts = {'~': trace.with_suffix('.most'), '': trace.with_suffix('.ops')}
        for part in parts.values():
            part.unlink(missing_ok=True)
        processes = [subprocess.Popen([self.bin / 'fuse_tests', f'~[.]~[house]{part}ops:*'], cwd=self.tree,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env=dict(os.environ, FUSE_MUTANT_TRACE=str(own))) for part, own in parts.items()]
        for process in processes:
            out, _ = process.communicate()
            if process.returncode != 0:
                sys.exit(out[-3000:] + '\nthe tests fail without a mutant')
        trace.write_text(''.join(part.read_text() for part in parts.values()))
        (self.tree / 'traced').write_text(f'{time.time() - started:.0f} s\n')

    def record_rest(self):
        """What is run behind the tests, with what fails of it though there is no mutant. Generated programs are not: of 1,067
        mutants in the campaigns on file they killed none that the tests had left."""
        known = self.tree / 'rest.json'
        command = [str(self.bin / 'command_tests'), '--seconds', '120', '--without', 'bundle']  # which runs stubs
        if not known.exists():
            note('the command tests run once with the code as it was')
            known.write_text(json.dumps({'tools': sorted(failures(command, 0, 1800, self.tree)[0])}))
        failing = set(json.loads(known.read_text())['tools'])
        for line in sorted(failing):
            note(f'fails without a mutant, and so judges none: {line}')
        return {'tools': (command, failing)}

    def of(self, mutant):
        """The tests that reach it, as lists that are run one behind the other. Tests that reach few mutants know this one
        best: they come first."""
        tests = sorted((t for t in self.tests if mutant in t['reaches']), key=lambda t: t['seconds'])
        first, spent = [], 0.0
        for test in sorted(tests, key=lambda t: len(t['reaches'])):
            if spent + test['seconds'] <= FEW:
                first.append(test)
                spent += test['seconds']
        tests = [test for test in tests if not any(test is other for other in first)]
        lists, now, spent = [first] if first else [], [], 0.0
        for test in tests:
            now.append(test)
            spent += test['seconds']
            if spent > QUICK * (1 + 3 * (len(lists) - bool(first))):
                lists.append(now)
                now, spent = [], 0.0
        return lists + ([now] if now else [])


def test_spec(name):
    """A test's name as Catch2 reads it from a file; unescaped, what stands behind a comma would be another name."""
    return re.sub(r'([\\,"\[])', r'\\\1', name)


def output_of(command, mutant, seconds, cwd):
    """What a program writes, and what ended it otherwise than by exit status 0: 'time', a signal, a status; or None."""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors='replace', start_new_session=True,
                               env=dict(os.environ, FUSE_MUTANT=str(mutant), CI='true'))
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # command_tests ends what it started
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return '', 'time'
    if process.returncode < 0:
        return out, signal.Signals(-process.returncode).name
    return out, f'status {process.returncode}' if process.returncode else None


def run(command, mutant, seconds, cwd, tests):
    """None where so many tests pass, else what happened."""
    out, end = output_of(command, mutant, seconds, cwd)
    if end is None and not re.search(rf' in {tests} test cases?\)', out):
        raise RuntimeError(f'not all of {tests} tests ran: {out[-300:]}')
    if end is None or not end.startswith('status'):
        return end
    lines = [line.strip() for line in out.splitlines()]
    failed = [line for line in lines if 'FAILED' in line]
    return (failed or lines or ['?'])[0][:160]


def failures(command, mutant, seconds, cwd):
    """The lines that tell of a failure, without what differs from run to run; and what ended it otherwise, or None."""
    out, end = output_of(command, mutant, seconds, cwd)
    failed = {re.sub(r'/tmp/[^ ]*', 'TMP', line.strip()) for line in out.splitlines() if line.startswith('FAILED')}
    return failed, None if failed and end and end.startswith('status') else end


def judge(suite, mutant):
    started = time.time()
    number = mutant['number']
    with tempfile.NamedTemporaryFile('w', suffix='.tests') as names:
        for tests in suite.of(number):
            names.seek(0)
            names.truncate()
            names.write(''.join(test_spec(test['test']) + '\n' for test in tests))
            names.flush()
            expected = sum(test['seconds'] for test in tests)
            command = [suite.bin / 'fuse_tests', '-a', '-f', names.name]
            limit = PATIENCE * expected + GRACE
            how = run(command, number, limit, suite.tree, tests=len(tests))
            if how and how not in suite.believed:
                if run(command, 0, limit, suite.tree, tests=len(tests)):
                    note(f'fails without a mutant, and so judges none: {how}')
                    continue
                suite.believed.add(how)
            if how:
                return dict(mutant, killed='tests', by=how.replace(f'{suite.tree}/', ''),
                            seconds=round(time.time() - started, 1))
    for name, (command, always) in suite.rest.items():
        failed, end = failures(command, number, 900, suite.tree)
        how = min(failed - always, default=end)
        if how:  # and not by chance, or since the machine is busy
            again, end_again = failures(command, number, 900, suite.tree)
            how = min((failed & again) - always, default=end if end_again else None)
        if how:
            return dict(mutant, killed=name, by=how[:160], seconds=round(time.time() - started, 1))
    return dict(mutant, killed='', by='', seconds=round(time.time() - started, 1))


def draw(mutants, seed, count):
    """As many of each area, in an order that the seed alone decides."""
    order = random.Random(seed)
    by_area = {}
    for mutant in mutants:
        by_area.setdefault(mutant['area'], []).append(mutant)
    for found in by_area.values():
        order.shuffle(found)
    areas = sorted(by_area)
    return [by_area[areas[i % len(areas)]][i // len(areas)] for i in range(count)
            if i // len(areas) < len(by_area[areas[i % len(areas)]])]


def score(results):
    lines = []
    for area in sorted({r['area'] for r in results}) + ['all']:
        of = [r for r in results if area in ('all', r['area'])]
        killed = [r for r in of if r['killed']]
        lines.append(f'{area:16} {len(killed):4} of {len(of):4} killed, {100 * len(killed) / len(of):.0f}%')
    lived = [r for r in results if not r['killed']]
    lines += [f'lived: {r["number"]} {r["file"]}:{r["line"]} {r["kind"]}: {r["text"]}' for r in lived]
    return '\n'.join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('tree', type=pathlib.Path)
    parser.add_argument('--seed', type=int, required=True)
    parser.add_argument('--count', type=int, default=150)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--log', type=pathlib.Path, required=True)
    options = parser.parse_args()
    tree = options.tree.resolve()
    drawn = draw(json.loads((tree / 'mutants.json').read_text()), options.seed, options.count)
    options.log.parent.mkdir(parents=True, exist_ok=True)
    results = [json.loads(line) for line in options.log.read_text().splitlines()] if options.log.exists() else []
    done = {r['number'] for r in results}
    suite = Suite(tree, options.jobs)
    left = [m for m in drawn if m['number'] not in done]
    started = time.time()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, options.log.open('a') as log:
        waiting = [pool.submit(judge, suite, mutant) for mutant in left]
        for count, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            result = future.result()
            results.append(result)
            print(json.dumps(result), file=log, flush=True)
            rest = (time.time() - started) / count * (len(left) - count)
            killed = sum(1 for r in results if r['killed'])
            note(f'{len(results)} of {len(drawn)} mutants, {killed} killed, about {rest / 60:.0f} min left; '
                 f'{result["number"]} {"killed in" if result["killed"] else "LIVED"} {result["seconds"]} s')
    print(score([r for r in results if r['number'] in {m['number'] for m in drawn}]))


if __name__ == '__main__':
    main()
