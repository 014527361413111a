"""What the rung tells of its tests."""
import contextlib
import io
import unittest

from run_tests import run


def case(work):
    return unittest.TestSuite([type("Case", (unittest.TestCase,), {"test_it": work})("test_it")])


class TheRung(unittest.TestCase):
    def told_of(self, work):
        """The exit code, and what ends the line of the test."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = run(case(work))
        return code, out.getvalue().splitlines()[-1][:12]

    def test_counts_a_skipped_test_as_a_failure(self):
        self.assertEqual(self.told_of(lambda test: None), (0, "[       OK ]"))
        self.assertEqual(self.told_of(lambda test: test.fail()), (1, "[  FAILED  ]"))
        self.assertEqual(self.told_of(lambda test: test.skipTest("no server")), (1, "[  SKIPPED ]"))


if __name__ == "__main__":
    unittest.main()
