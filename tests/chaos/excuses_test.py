"""What a run tells its checker of the faults that struck, with a cluster that does nothing."""
import dataclasses
import random
import tempfile
import time
import unittest
from unittest import mock

import load
from chaos import Run
from checker import Checker, takeover_time
from faults import FAULTS, OF_PATRONI
from history import read
from job_history import History


SHORTEST = {"heartbeat_timeout": 2, "seconds": 2}  # of the rung (smoke_test.py)


class ManualClock:
    """Time that passes in sleep() only."""

    def __init__(self):
        self.now = 1000.0

    def time(self):
        return self.now

    monotonic = time

    def sleep(self, seconds):
        self.now += seconds


class NoCluster:
    nodes = ()
    heartbeat_timeout = 3

    def __init__(self, folder, events, is_synchronous, **_):
        self.is_synchronous = is_synchronous

    def wait_until_well(self):
        pass

    def places(self):
        return []

    def stop(self):
        pass


class EveryFault(unittest.TestCase):
    def test_that_causes_duplicates_tells_what_it_struck(self):
        node = mock.Mock(terminate=lambda: 0)
        node.name = "a"
        cluster = mock.MagicMock(nodes=[node], SHARDS=32, heartbeat_timeout=3, places=lambda: [0] * 32)
        cluster.primaries.return_value = [mock.MagicMock(), mock.MagicMock()]
        with mock.patch("faults.time", ManualClock()), mock.patch("faults.eventually"), \
             mock.patch("faults.subprocess.Popen"):
            for fault in [*FAULTS.values(), *OF_PATRONI]:
                struck = fault.strike(cluster, random.Random(1), 4)
                if fault.repeats or fault.loses_claims or fault.hastens:
                    self.assertTrue(struck.keys() & {"nodes", "databases"}, fault.name)


    def test_that_stops_a_node_stops_it_for_longer_than_a_lease(self):
        clock = ManualClock()
        cluster = mock.MagicMock(nodes=[mock.Mock()], heartbeat_timeout=SHORTEST["heartbeat_timeout"])
        times = []
        cluster.nodes[0].signal = lambda _: times.append(clock.time())
        with mock.patch("faults.time", clock):
            FAULTS["freeze"].strike(cluster, random.Random(1), SHORTEST["seconds"])
        stopped, continued = times
        self.assertGreater(continued - stopped, max(spec.get("ttr_ms", 0) for spec in load.TYPES.values()) / 1000)


class ARun(unittest.TestCase):
    FAILOVERS = [FAULTS["promote"], FAULTS["demote"], *OF_PATRONI]

    def excuses(self, is_synchronous):
        """Of each failover, whether the history says that it may lose claims."""
        with tempfile.TemporaryDirectory() as folder:
            with Run(folder, 1, is_synchronous=is_synchronous, say=lambda _: None, kind=NoCluster) as run:
                run.started = time.time()
                for fault in self.FAILOVERS:
                    run.strike([dataclasses.replace(fault, strike=lambda *_: None)], 0)
            return [event["loses_claims"] for event in read(folder) if event["e"] == "fault"]

    def test_excuses_lost_claims_where_the_standby_lags_alone(self):
        self.assertEqual(self.excuses(is_synchronous=True), [False] * len(self.FAILOVERS))
        self.assertEqual(self.excuses(is_synchronous=False), [True] * len(self.FAILOVERS))

    def test_judges_every_death_of_a_node(self):
        clock = ManualClock()
        node = mock.Mock()
        node.name = "a"
        with tempfile.TemporaryDirectory() as folder, \
             mock.patch("chaos.time", clock), mock.patch("faults.time", clock), \
             mock.patch.object(NoCluster, "nodes", (node,)):
            with Run(folder, 1, say=lambda _: None, kind=NoCluster) as run:
                run.started = clock.time()
                for name in ("clock", "kill", "kill"):
                    run.strike([FAULTS[name]], 4)
                    clock.sleep(1)
            history = History(read(folder))
        most = takeover_time(NoCluster.heartbeat_timeout)
        deaths = Checker(history, ()).deaths(most)
        self.assertEqual(len(deaths), 2)
        for begin, end in deaths:
            self.assertGreater(end, begin + 1)


if __name__ == "__main__":
    unittest.main()
