"""What a run tells its checker of the faults that struck, with a cluster that does nothing."""
import dataclasses
import random
import tempfile
import time
import unittest
from unittest import mock

import caller
from chaos import PAUSE, Run
from checker import Checker, Row
from cluster_rules import CLAIM_TO_START, takeover_time
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
        self.assertGreater(continued - stopped, max(spec.get("ttr_ms", 0) for spec in caller.TYPES.values()) / 1000)


class TwoFaults(unittest.TestCase):
    """Between which no other one strikes: something could be wrong in between, and no fault would excuse it."""

    TYPES = [{"e": "type", **caller.describe(name, spec)} for name, spec in caller.TYPES.items()]
    OFF, ON = 100.0, 100.0 + PAUSE

    def judge(self, first, second, *events, rows):
        def struck(fault, on, off):
            return {"e": "fault", "name": fault.name, "on": on, "off": off, "repeats": fault.repeats,
                    "hastens": fault.hastens, "ends_permits": fault.ends_permits}
        around = [struck(first, self.OFF - 10, self.OFF), struck(second, self.ON, self.ON + 10)]
        history = History([*self.TYPES, *events, *around])
        return {violation.what for violation in Checker(history, rows).check()}

    def test_leave_time_for_starts_that_neither_excuses(self):
        at, ttr = self.OFF + 0.1, caller.TYPES["hook"]["ttr_ms"] / 1000
        create = {"e": "create", "b": 1.0, "t": 1.1, "answer": "ok", "type": "hook", "keys": ["k"], "at": [at],
                  "ids": ["1"]}
        start = {"e": "start", "t": at, "id": "1", "attempt": 1, "answer": "done"}
        rows = [Row("1", "k", "hook", "done", 2, 3, at, at + 0.1, at + 1)]
        last_overlap = at + ttr - CLAIM_TO_START - 0.1
        for first in FAULTS.values():
            for second in FAULTS.values():
                for what, again in (("started again without a reason", at + ttr),
                                    ("overlap within a lease", last_overlap)):
                    self.assertIn(what, self.judge(first, second, create, start,
                                                   {**start, "t": again, "attempt": 2}, rows=rows))
                self.assertIn("early", self.judge(first, second, create, {**start, "t": at - 0.05}, rows=rows))


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
