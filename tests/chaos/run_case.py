"""What tests of whole runs have in common."""
import os
import shutil
import tempfile
import unittest

from cluster import ROOT
from report import print_violations

SEED = int(os.environ.get("TOCSIN_CHAOS_SEED", "1"))


def folder():
    return tempfile.mkdtemp(prefix="chaos-", dir=os.environ.get("TOCSIN_TEST_DIR"))


def keep(run):
    """What a run saw outlives it, for whoever wants to know why it failed."""
    kept = ROOT / "build" / "test-logs" / "chaos"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(run.folder, kept)
    print(f"history and logs are in {kept}")


class RunCase(unittest.TestCase):
    def assert_honest(self, run, checker):
        print_violations(checker.violations)
        if checker.violations:
            keep(run)
        self.assertFalse(checker.violations)
