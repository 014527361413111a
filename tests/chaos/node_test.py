"""What the harness knows of a node's memory, with a process that gives back what it took."""
import subprocess
import sys
import tempfile
import unittest

from cluster import Node

TAKES_MB = 200
PROGRAM = f"""import sys
taken = bytearray({TAKES_MB} << 20)
taken[::4096] = b'x' * len(taken[::4096])
del taken
print('well', flush=True)
sys.stdin.read()"""


class Events(list):
    def write(self, event, **fields):
        self.append((event, fields))


class MemoryOfANode(unittest.TestCase):
    def setUp(self):
        self.events = Events()
        self.node = Node("a", tempfile.gettempdir(), (), self.events)
        self.node.process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE)
        self.node.process.stdout.readline()

    def tearDown(self):
        self.node.process.kill()
        self.node.process.communicate()

    def assert_most_was_noted(self):
        self.assertEqual({event for event, _ in self.events}, {"memory"})
        self.assertGreater(max(fields["mb"] for _, fields in self.events), TAKES_MB)

    def test_what_it_gave_back_counts(self):
        self.assertLess(self.node.memory_mb(), TAKES_MB)
        self.node.note_memory()
        self.assert_most_was_noted()

    def test_what_it_had_when_it_was_killed_counts(self):
        self.node.kill()
        self.assert_most_was_noted()
        self.assertIsNone(self.node.memory_mb())

    def test_what_it_had_when_it_was_told_to_end_counts(self):
        self.node.terminate()
        self.assert_most_was_noted()


if __name__ == "__main__":
    unittest.main()
