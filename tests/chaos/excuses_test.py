"""What a run tells its checker of the faults that struck, with a cluster that does nothing."""
import dataclasses
import tempfile
import time
import unittest

from chaos import Run
from faults import FAULTS, OF_PATRONI
from history import read


class NoCluster:
    nodes = ()
    heartbeat_timeout = 3

    def __init__(self, folder, events, is_synchronous, **_):
        self.is_synchronous = is_synchronous

    def wait_until_well(self):
        pass

    def stop(self):
        pass


class ARun(unittest.TestCase):
    FAILOVERS = [FAULTS["promote"], FAULTS["demote"], *OF_PATRONI]

    def excuses(self, is_synchronous):
        """Of each failover, whether the history says that it may lose claims."""
        with tempfile.TemporaryDirectory() as folder:
            with Run(folder, 1, is_synchronous=is_synchronous, say=lambda _: None, kind=NoCluster) as run:
                run.started = time.time()
                for fault in self.FAILOVERS:
                    run.strike([dataclasses.replace(fault, strike=lambda *_: None)], 0)
            return [event["loses_claims"] for event in read(folder)]

    def test_excuses_lost_claims_where_the_standby_lags_alone(self):
        self.assertEqual(self.excuses(is_synchronous=True), [False] * len(self.FAILOVERS))
        self.assertEqual(self.excuses(is_synchronous=False), [True] * len(self.FAILOVERS))


if __name__ == "__main__":
    unittest.main()
