#!/usr/bin/env python3
"""Runs the tests of this folder and tells of them as a GoogleTest program does, for whoever reads that."""
import pathlib
import sys
import time
import unittest


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.began, self.end = time.monotonic(), "       OK "
        print(f"[ RUN      ] {name_of(test)}", flush=True)

    def stopTest(self, test):
        took = (time.monotonic() - self.began) * 1000
        print(f"[{self.end}] {name_of(test)} ({took:.0f} ms)", flush=True)
        super().stopTest(test)

    def tell(self, test, error):
        self.end = "  FAILED  "
        print(self._exc_info_to_string(error, test), flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.tell(test, error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.end = "  SKIPPED "
        print(reason, flush=True)


def name_of(test):
    kind, name = test.id().split(".")[-2:]
    return f"{kind}.{name.removeprefix('test_')}"


def run(tests):
    """The exit code: a test that fails or is skipped is a failure, and so is a run of none."""
    print(f"[==========] Running {tests.countTestCases()} tests")
    result = Result()
    tests.run(result)
    return 0 if result.wasSuccessful() and result.testsRun and not result.skipped else 1


def main():
    return run(unittest.TestLoader().discover(str(pathlib.Path(__file__).parent), "*_test.py"))


if __name__ == "__main__":
    sys.exit(main())
