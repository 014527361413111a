#!/usr/bin/env python3
"""Runs one rung of the tests with progress and a time limit; shows what failed, and nothing of what passed.

run_rung.py [--check] NAME LIMIT_SECONDS LOG RESULTS PROGRAM [ARGUMENTS...]

PROGRAM is a GoogleTest program, or with --check any command, which counts as one test. All its output goes to LOG; a
line `PASSED FAILED` is added to RESULTS. A crash, a time-out, a skipped test and a program without tests count as
failures. TOCSIN_TEST_BESIDE says that other rungs write to the same terminal: progress is then shown in lines.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time

RUN = re.compile(r"^\[ RUN      \] (\S+)")
END = re.compile(r"^\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+).* \(\d+ ms\)$")
TOTAL = re.compile(r"^\[==========\] Running (\d+) tests?")
SECONDS_BETWEEN_LINES = 10  # where the output is no terminal
SECONDS_TO_TIDY_UP = 15  # between asking a program to end and killing it
OUTPUT_LINES = 40  # shown of a failed test


class Progress:
    """Follows the output of a rung and shows it. Thread: any, `tick` beside the others."""

    def __init__(self, name, is_check):
        self.name, self.total, self.passed, self.failed = name, 0, 0, 0
        self.running, self.output = None, []
        self.is_check = is_check
        self.is_terminal = sys.stdout.isatty() and not os.environ.get("TOCSIN_TEST_BESIDE")
        self.lock = threading.Lock()
        if is_check:
            self.total, self.running = 1, name

    def read(self, line):
        with self.lock:
            if self.is_check:
                self.output.append(line)
            elif match := TOTAL.match(line):
                self.total = int(match[1])
            elif match := RUN.match(line):
                self.running, self.output = match[1], []
            elif (match := END.match(line)) and match[2] == self.running:
                self.end(None if "OK" in match[1] else match[1].strip().lower())
            else:
                self.output.append(line)

    def end(self, failure):
        if failure is None:
            self.passed += 1
        else:
            self.failed += 1
            self.clear()
            print(f"  {self.running}: {failure}")
            print(*(f"    {line.rstrip()}" for line in self.output[-OUTPUT_LINES:]), sep="\n", flush=True)
        self.running, self.output = None, []

    def finish(self, status, stopped_why):
        """Judges the end of the program: status is its exit code, negative for a signal."""
        failure = stopped_why or (f"ended by signal {-status}" if status < 0 else f"exit code {status}")
        is_ok = status == 0 and stopped_why is None
        if self.running:
            self.end(None if self.is_check and is_ok else failure)
        elif self.total == 0 or self.passed + self.failed < self.total or (not is_ok and self.failed == 0):
            self.running = f"{self.name}, the program itself"
            self.end(failure if not is_ok else "not all of its tests ran")

    def tick(self, is_over):
        """Shows where the rung stands, until the event."""
        while not is_over.wait(0.2 if self.is_terminal else SECONDS_BETWEEN_LINES):
            with self.lock:
                text = f"  {self.name}: {self.passed + self.failed} of {self.total}, {self.running or ''}"
                end = "" if self.is_terminal else "\n"
                print(f"\r{text[:100]:<100}" if self.is_terminal else text, end=end, flush=True)

    def clear(self):
        if self.is_terminal:
            print(f"\r{'':<100}\r", end="")


class Program:
    """A command in a session of its own, so that whatever it starts can be ended with it."""

    def __init__(self, command):
        self.stopped_why = None
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        self.waiter = threading.Thread(target=self.wait_and_clear)
        self.waiter.start()

    def wait_and_clear(self):
        self.process.wait()
        self.signal_all(signal.SIGKILL)  # its children would keep our pipe open

    def stop(self, why):
        if self.stopped_why is None:
            self.stopped_why = why
            self.signal_all(signal.SIGTERM)
            start_timer(SECONDS_TO_TIDY_UP, self.signal_all, signal.SIGKILL)

    def signal_all(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


def start_timer(seconds, function, argument):
    timer = threading.Timer(seconds, function, [argument])
    timer.daemon = True
    timer.start()


def main():
    arguments = sys.argv[1:]
    is_check = arguments[0] == "--check"
    name, limit, log_path, results_path, *command = arguments[is_check:]
    started = time.monotonic()
    progress = Progress(name, is_check)
    program = Program(command)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: program.stop("interrupted"))
    start_timer(float(limit), program.stop, f"still running after {limit} s")

    is_over = threading.Event()
    ticker = threading.Thread(target=progress.tick, args=[is_over])
    ticker.start()
    with open(log_path, "w", encoding="utf-8") as log:
        for line in program.process.stdout:
            log.write(line)
            log.flush()
            progress.read(line)
    program.waiter.join()
    is_over.set()
    ticker.join()

    progress.finish(program.process.returncode, program.stopped_why)
    progress.clear()
    print(f"{name}: {progress.passed} passed, {progress.failed} failed, {time.monotonic() - started:.1f} s", flush=True)
    with open(results_path, "a", encoding="utf-8") as results:
        results.write(f"{progress.passed} {progress.failed}\n")


main()
