"""What callers and consumers were told and what counts as an attempt: histories that break it, and honest ones."""
import unittest

from checker import Checker
from histories import DIED, TYPES, cancel, create, fault, lease, move, retry, row, settle, start
from job_history import History


class WhatWasTold(unittest.TestCase):
    def judge(self, events, *rows):
        return [(violation.invariant, violation.what) for violation in Checker(History(TYPES + events), rows).check()]

    def assertHonest(self, events, *rows):
        self.assertEqual(self.judge(events, *rows), [])

    def test_a_job_that_had_finished_starts_no_more(self):
        told = [create("k", "1"), start("1", 10.1), cancel("1", 11, "finished")]
        self.assertHonest(told, row("1", finished_at=11.1))
        again, twice = [*told, start("1", 15.2, 2), fault(10.2, 20)], row("1", attempts=2, finished_at=11.1)
        started = ("I10", "started after it had finished")
        self.assertIn(started, self.judge(again, twice))
        self.assertHonest([*again, fault(11.0, 14, "promote", loses_claims=True)],
                          row("1", attempts=2, finished_at=15.3))
        self.assertIn(started, self.judge([*again, fault(1, 10, "promote", loses_claims=True)], twice))
        # What was told meanwhile says nothing: it was still running, or nobody knows.
        for other in (cancel("1", 11, "running"), cancel("1", 11, None, "unknown")):
            self.assertHonest([*told[:2], other, start("1", 15.2, 2), fault(10.2, 20)],
                              row("1", attempts=2, finished_at=15.3))

    def test_a_job_that_had_finished_ended_before(self):
        told = [create("k", "1"), start("1", 10.1), cancel("1", 11, "finished")]
        late = ("I10", "finished after it had finished")
        self.assertEqual(self.judge(told, row("1", finished_at=11.2)), [late])
        ahead = fault(9, 12, "clock_second", hastens=5)
        self.assertHonest([*told, ahead], row("1", finished_at=16.0))
        self.assertEqual(self.judge([*told, ahead], row("1", finished_at=16.2)), [late])
        self.assertEqual(self.judge([*told, fault(11.2, 20, "clock_second", hastens=5)], row("1", finished_at=16.0)),
                         [late])

    def test_a_dead_job_that_had_finished_may_be_retried(self):
        again = [*DIED, cancel("1", 13, "finished"), start("1", 20.1)]
        done = row("1", finished_at=20.2, started=20.1)
        for answer in ("ok", "unknown"):
            self.assertHonest([*again, retry("1", 20, answer)], done)
        for other in ([], [retry("1", 12)], [retry("1", 20, "refused")]):
            self.assertIn(("I10", "finished after it had finished"), self.judge([*again, *other], done))

    def test_who_has_a_lease_is_believed(self):
        leased, ack = [create("k", "1", "pull"), lease("1", "a", 10.1)], settle("1", "a", 14.5)
        stale = ("I5", "stale within its lease")
        done = row("1", type="pull")
        for kind in ("ack", "nack", "extend"):
            refused = settle("1", "a", 14, kind, "stale", until=19)
            self.assertEqual(self.judge([*leased, refused, ack], done), [stale])
        # It may have ended, or not yet begun.
        self.assertHonest([*leased, settle("1", "a", 15.085, result="stale"), settle("1", "a", 15.1)], done)
        self.assertHonest([*leased, settle("1", "a", 10.105, result="stale"), ack], done)
        extended = [*leased, settle("1", "a", 14, "extend", until=19.01)]
        ack = settle("1", "a", 18.95)
        self.assertEqual(self.judge([*extended, settle("1", "a", 18.9, result="stale"), ack], done), [stale])
        unknown = [*leased, settle("1", "a", 14, "extend", "unknown", until=19.01)]
        self.assertHonest([*unknown, settle("1", "a", 15.2, result="stale"), ack], done)
        self.assertEqual(self.judge([*unknown, settle("1", "a", 15.0, result="stale"), ack], done), [stale])

    def test_a_lease_may_have_ended_before_its_time(self):
        leased, late = [create("k", "1", "pull"), lease("1", "a", 10.1)], settle("1", "a", 14, result="stale")
        done, stale = row("1", type="pull"), ("I5", "stale within its lease")
        for before in (settle("1", "a", 12), settle("1", "a", 12, result="unknown")):
            self.assertHonest([*leased, before, late, settle("1", "a", 14.5)], done)
        ack = settle("1", "a", 14.5)
        for other in (settle("1", "a", 12, "extend", until=17.01), settle("1", "b", 12),
                      settle("1", "a", 12, result="refused")):
            self.assertEqual(self.judge([*leased, other, late, ack], done), [stale])
        ahead = {"hastens": 5}
        for other in (fault(11, 13, "clock_second", **ahead), fault(11, 13, "promote", loses_claims=True)):
            self.assertHonest([*leased, other, late, ack], done)
        for other in (fault(1, 9, "clock_second", **ahead), fault(11, 13, "crash"), fault(11, 13, "kill")):
            self.assertEqual(self.judge([*leased, other, late, ack], done), [stale])

    def test_the_deadline_is_the_one_of_the_last_move(self):
        asked, gone = [create("k", "1"), move("1", 2.0, 5.0)], ("I10", "not the deadline that it was moved to")
        ran = start("1", 10.1)
        self.assertHonest([*asked, ran], row("1", at=5.0))
        self.assertEqual(self.judge([*asked, ran], row("1", at=10.0)), [gone])
        # Run now leaves the deadline, and so does a move that was refused.
        for other in (move("1", 3.0, 3.0), move("1", 1.95, 1.95, "unknown"), move("1", 3.0, 7.0, "refused")):
            self.assertHonest([*asked, other, ran], row("1", at=5.0))
            self.assertEqual(self.judge([*asked, other, ran], row("1", at=7.0)), [gone])
        for other in (move("1", 2.05, 7.0), move("1", 1.0, 7.0, "unknown")):
            for at in (5.0, 7.0):
                self.assertNotIn(gone, self.judge([*asked, other, ran], row("1", at=at)))
        later = [*asked, move("1", 3.0, 7.0), ran]
        self.assertHonest(later, row("1", at=7.0))
        self.assertEqual(self.judge(later, row("1", at=5.0)), [gone])

    def test_a_move_that_was_lost_or_whose_job_has_several_ids(self):
        asked, gone = [create("k", "1"), move("1", 2.0, 5.0), start("1", 10.1)], "not the deadline that it was moved to"
        def judge(*events):
            return gone in [what for _, what in self.judge([*asked, *events], row("1", at=10.0))]
        self.assertTrue(judge(fault(3, 4, "promote")))
        self.assertFalse(judge(fault(3, 4, "promote", loses_claims=True)))
        self.assertFalse(judge(create("k", "2", b=1.5)))

    def test_an_attempt_counts_because_it_started(self):
        asked, unseen = [create("k", "1"), start("1", 15.2, 2)], ("I6", "an attempt counted that no handler saw")
        twice = row("1", attempts=2, started=10.1, finished_at=15.3)
        self.assertEqual(self.judge(asked, twice), [unseen])
        self.assertHonest([*asked, fault(10.05, 12)], twice)
        self.assertHonest([*asked, fault(10.05, 12, "promote", loses_claims=True)], twice)
        for other in (fault(1, 9), fault(15.4, 20), fault(10.05, 12, "delay")):
            self.assertEqual(self.judge([*asked, other], twice), [unseen])
        # The life of the job begins when it was due first, whatever its deadline was then.
        self.assertHonest([*asked, move("1", 2.0, 4.0), fault(4.5, 5)],
                          row("1", attempts=2, at=4.0, started=4.1, finished_at=15.3))
        # Who retried a dead job has its attempts counted anew.
        self.assertHonest([*DIED, retry("1", 20), start("1", 21, 2)],
                          row("1", attempts=2, started=20.1, finished_at=22))


if __name__ == "__main__":
    unittest.main()
