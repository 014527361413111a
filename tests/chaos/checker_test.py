"""Plants every kind of violation in a small history; the checker must find it, and nothing in an honest one."""
import ast
import inspect
import sys
import unittest
from unittest import mock

import checker
import cluster_rules
import limits_test
import told_rules
import told_rules_test
from checker import Checker, ids_to_ask
from histories import DIED, TYPES, cancel, create, fault, lease, move, places, retry, row, seen, settle, start
from job_history import History


class OneJob(unittest.TestCase):
    def judge(self, events, rows, counts=None, witnessed=None, stands_for=None):
        self.checker = Checker(History(TYPES + events), rows, counts, witnessed, stands_for=stands_for)
        return [(violation.invariant, violation.what) for violation in self.checker.check()]

    def assertHonest(self, events, rows, counts=None):
        self.assertEqual(self.judge(events, rows, counts), [])

    def test_jobs_of_transactions(self):
        asked = [create("sql-1", "1", "noop", answer="unknown")]
        there = [row("1", "sql-1", "noop")]
        self.assertEqual(self.judge(asked, there, witnessed={"sql-1": {"1"}}), [])
        self.assertEqual(self.judge(asked, [], witnessed={}), [])
        self.assertEqual(self.judge(asked, [], witnessed={"sql-1": {"1"}}), [("I1", "committed job lost")])
        self.assertEqual(self.judge(asked, there, witnessed={}), [("I10", "a job without its transaction")])
        self.assertEqual(self.judge(asked, there, witnessed={"sql-1": {"2"}}),
                         [("I1", "committed job lost"), ("I10", "a job without its transaction")])
        self.assertEqual(self.judge(asked, there, witnessed={"sql-1": {"2"}}, stands_for={"2": "1"}), [])
        self.assertEqual(self.judge(asked, there, witnessed={"sql-1": {"1", "2"}}, stands_for={"2": None}),
                         [("I1", "committed job lost")])

    def assertFinds(self, invariant, what, events, rows, counts=None):
        self.assertIn((invariant, what), self.judge(events, rows, counts))


class AnHonestHistory(OneJob):
    def test_of_a_job_that_is_done(self):
        self.assertHonest([create("k", "1"), start("1", 10.1)], [row("1")], {("hook", "done"): 1})

    def test_of_an_unknown_create_either_way(self):
        unknown = create("k", None, answer="unknown")
        self.assertHonest([unknown], [])
        self.assertHonest([unknown, start("1", 10.1)], [row("1")])
        self.assertHonest([unknown, create("k", "1", b=2.0), start("1", 10.1)], [row("1")])

    def test_of_a_transaction_that_was_rolled_back(self):
        self.assertHonest([create("sql-1", None, "noop", answer="refused")], [])

    def test_of_an_unknown_cancel_either_way(self):
        unknown = cancel("1", 5.0, answer="unknown")
        self.assertHonest([create("k", "1"), unknown, start("1", 10.1)], [row("1")])
        self.assertHonest([create("k", "1"), unknown], [row("1", status="cancelled", attempts=0, started=None)])

    def test_of_a_failure_and_its_retry_which_is_no_duplicate(self):
        self.assertHonest([create("k", "1"), start("1", 10.1, 1, "fail"), start("1", 11.2, 2)], [row("1", attempts=2)])
        self.assertFalse(self.checker.duplicates)

    def test_of_a_dead_job_that_a_caller_retried(self):
        for answer in ("ok", "unknown"):
            retried = [*DIED, retry("1", 20, answer)]
            self.assertHonest([*retried, start("1", 20.1), seen("1", 21, "done")], [row("1", started=20.1)])
            self.assertHonest([*retried, cancel("1", 20.2)], [row("1", status="cancelled", attempts=0, started=None)])
        self.assertHonest(retried, [row("1", status="dead", attempts=3)])

    def test_of_a_deadline_that_was_moved(self):
        self.assertHonest([create("k", "1"), move("1", 2.0, 5.0), start("1", 5.1)], [row("1", at=5.0, started=5.05)])
        self.assertHonest([create("k", "1"), move("1", 2.0, 5.0, "unknown"), start("1", 5.1)], [row("1", started=5.05)])

    def test_of_a_lease_that_its_consumer_let_end(self):
        self.assertHonest([create("k", "1", "pull"), lease("1", "a", 10.1), lease("1", "b", 15.2, 2),
                           settle("1", "b", 16), settle("1", "a", 17, result="stale")],
                          [row("1", type="pull", attempts=2)])
        self.assertEqual(self.checker.late_while_running, 0)

    def test_of_a_late_result_while_the_next_attempt_runs(self):
        self.assertHonest([create("k", "1", "pull"), lease("1", "a", 10.1), lease("1", "b", 15.2, 2),
                           settle("1", "a", 15.5, result="stale"), settle("1", "b", 17)],
                          [row("1", type="pull", attempts=2)])
        self.assertEqual(self.checker.late_while_running, 1)

    def test_of_a_lease_that_was_extended(self):
        self.assertHonest([create("k", "1", "pull"), lease("1", "a", 10.1), settle("1", "a", 14, "extend", until=19.01),
                           settle("1", "a", 18)], [row("1", type="pull")])

    def test_of_an_extension_that_was_not_answered(self):
        for b in (14.0, 16.0):  # the lease ends at 15.1: the second one had no effect
            self.assertHonest([create("k", "1", "pull"), lease("1", "a", 10.1),
                               settle("1", "a", b, "extend", "unknown", until=b + 5.01), lease("1", "b", 15.2, 2),
                               settle("1", "b", 16.5)], [row("1", type="pull", attempts=2)])

    def test_of_a_request_that_was_refused_as_a_whole(self):
        self.assertHonest([create("k", "1", "pull"), lease("1", "a", 10.1), lease("1", "b", 15.2, 2),
                           settle("1", "b", 16, "nack", "refused"), settle("1", "b", 16.5)],
                          [row("1", type="pull", attempts=2)])
        self.assertFinds("I1", "done, but no handler did it",
                         [create("k", "1", "pull"), lease("1", "a", 10.1), settle("1", "a", 11, result="refused")],
                         [row("1", type="pull")])

    def test_of_a_duplicate_that_a_fault_explains(self):
        self.assertHonest([create("k", "1"), start("1", 10.1), start("1", 15.2, 2), fault(10.15, 12)],
                          [row("1", attempts=2)])
        self.assertEqual(self.checker.duplicates, {"kill": 1})

    def test_of_a_lease_that_ended_while_its_node_was_stopped(self):
        self.assertHonest([create("k", "1"), start("1", 10.1, node="a"), start("1", 15.2, 2, node="b"),
                           fault(10.2, 16, "freeze", nodes=["a"])], [row("1", attempts=2)])
        self.assertEqual(self.checker.duplicates, {"freeze": 1})

    def test_of_an_attempt_whose_claim_the_database_lost(self):
        self.assertHonest([create("k", "1"), start("1", 10.1), start("1", 12, 1),
                           fault(10.15, 11, "promote", loses_claims=True)], [row("1")])

    def test_of_a_request_that_was_handled_when_its_sender_had_given_up(self):
        late = {**start("1", 10.1, 1), "sent": 10, "takes": 4.4}  # its receiver had no processor
        self.assertHonest([create("k", "1"), late, start("1", 12.6, 2)], [row("1", attempts=2)])
        self.assertEqual(self.checker.duplicates, {"answered too late": 1})
        self.assertHonest([create("k", "1"), late, cancel("1", 11.0, "running")], [row("1")])

    def test_a_fault_explains_duplicates_where_it_struck_alone(self):
        lives = [create("k", "1"), start("1", 10.1, node="a"), start("1", 15.2, 2, node="b"), places(1, 0, 1)]
        twice = [row("1", attempts=2)]
        for there in ({}, {"nodes": ["a"]}, {"databases": [1]}, {"databases": [1], "shards": [1, 9]}):
            self.assertHonest([*lives, fault(10.15, 12, **there)], twice)
        for elsewhere in ({"nodes": ["b"]}, {"databases": [0]}, {"databases": [1], "shards": [0, 8]},
                          {"nodes": ["a"], "databases": [0]}):
            self.assertFinds("I4", "started again without a reason", [*lives, fault(10.15, 12, **elsewhere)], twice)
        struck = fault(10.15, 12, "crash", databases=[0])
        self.assertHonest([*lives, places(10.2, 1, 0), struck], twice)  # it moved there meanwhile
        self.assertHonest([*lives, places(17, 1, 0), struck], twice)  # or at any time since the last look
        self.assertFinds("I4", "started again without a reason",
                         [*lives, places(17, 0, 1), places(18, 1, 0), struck], twice)

    def test_a_database_whose_clock_is_ahead_starts_early_by_no_more(self):
        ahead = fault(5, 12, "clock_second", hastens=5)
        self.assertHonest([create("k", "1", at=10.0), start("1", 5.5), ahead], [row("1")])
        self.assertFinds("I2", "early", [create("k", "1", at=11.0), start("1", 5.5), ahead], [row("1", at=11.0)])
        self.assertFinds("I2", "early", [create("k", "1", at=10.0), start("1", 4.5), ahead], [row("1")])
        elsewhere = [places(1, 0, 1), fault(5, 12, "clock_second", hastens=5, databases=[0])]
        self.assertFinds("I2", "early", [create("k", "1", at=10.0), start("1", 5.5), *elsewhere], [row("1")])

    def test_a_job_that_died_before_its_deadline_is_due_when_it_is_retried(self):
        died = [create("k", "1"), fault(4, 7, "clock_second", hastens=5), start("1", 5.5, 1, "dead")]
        again = [*died, retry("1", 8), start("1", 8.2, 1, "dead")]
        self.assertHonest(again, [row("1", status="dead", started=8.2)])
        self.assertFinds("I2", "early", again, [row("1", status="dead", started=7.9)])

    def test_an_answer_that_was_sent_late_may_have_been_none(self):
        slow = {**start("1", 10.2, 1), "takes": 1.0, "sent_in": 2.1}
        self.assertHonest([create("k", "1"), slow, start("1", 13.2, 2)], [row("1", attempts=2)])
        # It may as well have been heard when the receiver began to send it.
        self.assertHonest([create("k", "1"), slow], [row("1", finished_at=11.3)])

    def test_an_answer_after_the_senders_time_out_is_none(self):
        late = {**start("1", 10.2, 1), "takes": 2.0}
        self.assertHonest([create("k", "1"), late, start("1", 13.2, 2)], [row("1", attempts=2)])
        self.assertFinds("I4", "overlap within a lease", [create("k", "1"), late, start("1", 12.1, 2)],
                         [row("1", attempts=2)])
        quick = {**start("1", 10.2, 1), "takes": 1.0}
        self.assertFinds("I4", "overlap within a lease", [create("k", "1"), quick, start("1", 13.2, 2)],
                         [row("1", attempts=2)])


class TheCheckerFinds(OneJob):
    def test_a_lost_job(self):
        self.assertFinds("I1", "acknowledged job lost", [create("k", "1")], [])

    def test_a_lost_job_that_was_unknown_first(self):
        self.assertFinds("I1", "acknowledged job lost",
                         [create("k", None, answer="unknown"), create("k", "1", b=2.0)], [])

    def test_a_job_that_never_ends(self):
        for status in ("pending", "running"):
            self.assertFinds("I1", "has not ended", [create("k", "1")], [row("1", status=status)])

    def test_a_job_done_by_nobody(self):
        self.assertFinds("I1", "done, but no handler did it", [create("k", "1")], [row("1")])
        self.assertFinds("I1", "done, but no handler did it",
                         [create("k", "1"), start("1", 10.1, answer="fail")], [row("1")])
        self.assertFinds("I10", "done without an attempt", [create("k", "1", "noop")],
                         [row("1", type="noop", attempts=0, started=None)])

    def test_a_lease_that_was_never_acknowledged_and_is_done(self):
        self.assertFinds("I1", "done, but no handler did it", [create("k", "1", "pull"), lease("1", "a", 10.1)],
                         [row("1", type="pull")])

    def test_a_lost_job_whose_id_came_again(self):
        events = [create("k", "1"), start("1", 10.1), create("l", "1", at=20.0, b=12.0), start("1", 20.1)]
        found = self.judge(events, [row("1", "l", at=20.0, started=20.1)])
        self.assertIn(("I1", "acknowledged job lost"), found)
        self.assertNotIn(("I2", "early"), found)

    def test_an_early_handler(self):
        self.assertFinds("I2", "early", [create("k", "1"), start("1", 9.99)], [row("1")])

    def test_an_early_row(self):
        self.assertFinds("I2", "early", [create("k", "1", "noop")], [row("1", type="noop", started=9.98)])

    def test_a_start_at_the_deadline_that_was_moved_away(self):
        self.assertFinds("I2", "early", [create("k", "1"), move("1", 2.0, 20.0), start("1", 10.1)], [row("1")])

    def test_an_early_retry(self):
        self.assertFinds("I2", "retried early",
                         [create("k", "1"), start("1", 10.1, 1, "fail"), start("1", 10.4, 2)], [row("1", attempts=2)])

    def test_a_retry_before_the_deadline_that_it_was_moved_to(self):
        failed, twice = [create("k", "1"), start("1", 10.1, 1, "fail")], [row("1", attempts=2, at=30.0)]
        away = move("1", 10.3, 30.0)
        soon = start("1", 11.2, 2)
        early = ("I2", "retried early")
        self.assertEqual(self.judge([*failed, away, soon], twice), [early])
        self.assertHonest([*failed, away, start("1", 30.1, 2)], twice)
        for other in (move("1", 10.3, 30.0, "unknown"), move("1", 10.3, 30.0, "refused"),
                      move("1", 11.0, 30.0, took=0.5),  # not known before the retry that it moved
                      move("1", 10.0, 30.0, took=1.0)):  # it may have come before the first attempt, or not
            self.assertHonest([*failed, other, soon], twice)
        # A later one brings it back; it is due when that says.
        back = [*failed, away, move("1", 10.5, 10.8)]
        brought_back = [row("1", attempts=2, at=10.8)]
        self.assertHonest([*back, start("1", 10.9, 2)], brought_back)
        self.assertEqual(self.judge([*back, start("1", 10.7, 2)], brought_back), [early])
        # So is one whose lease has ended, and that was pending meanwhile.
        self.assertIn(early, self.judge([create("k", "1"), start("1", 10.1), move("1", 15.3, 30.0), start("1", 16, 2),
                                         fault(10.15, 12)], twice))

    def test_a_later_attempt_after_its_death_without_a_retry(self):
        died, again = [create("k", "1"), start("1", 10.1, 1, "dead")], start("1", 20.2, 2, "dead")
        dead = [row("1", status="dead", attempts=2)]
        # The retry's first attempt is one that no handler saw.
        self.assertHonest([*died, retry("1", 14), fault(13, 19), again], dead)
        self.assertFinds("I4", "started again without a reason", [*died, fault(13, 19), again], dead)

    def test_a_dead_job_that_lives_again_without_a_retry(self):
        again, done, dead = [start("1", 20.1), seen("1", 21, "done")], [row("1", started=20.1)], row("1", status="dead")
        for other in ([], [retry("1", 20, "refused")], [retry("1", 20.2)], [retry("1", 12.0)]):
            self.assertFinds("I4", "an attempt started twice", [*DIED, *other, *again], done)
        for other in ([], [retry("1", 20, "refused")], [retry("1", 30)], [retry("1", 12.0)]):
            self.assertFinds("I10", "changed after its end", [*DIED, *other, *again], done)
        self.assertFinds("I10", "changed after its end",
                         [create("k", "1"), seen("1", 13, "done"), retry("1", 20)], [dead])
        self.assertFinds("I1", "retried, and never started", [*DIED, retry("1", 20)], [dead])

    def test_a_start_after_the_cancel(self):
        cancelled = row("1", status="cancelled", attempts=0, started=None)
        self.assertFinds("I3", "started after its cancel",
                         [create("k", "1"), cancel("1", 5.0), start("1", 10.1)], [cancelled])
        self.assertFinds("I3", "started after its cancel",
                         [create("k", "1", "pull"), cancel("1", 9.0), lease("1", "a", 10.1)],
                         [row("1", type="pull", status="cancelled", attempts=0, started=None)])

    def test_a_request_that_was_sent_long_after_it_was_stamped(self):
        self.assertFinds("I3", "started after its cancel",
                         [create("k", "1"), cancel("1", 12), {**start("1", 16), "sent": 10}],
                         [row("1", status="cancelled", attempts=0, started=None)])
        self.assertFinds("I4", "an attempt started twice",
                         [create("k", "1"), {**start("1", 16.2), "sent": 10}, start("1", 13.2, 2)],
                         [row("1", attempts=2)])

    def test_a_cancel_that_was_undone(self):
        self.assertFinds("I3", "cancelled, and ended otherwise", [create("k", "1", "noop"), cancel("1", 5.0)],
                         [row("1", type="noop")])

    def test_a_cancel_that_two_were_told_of(self):
        events, twice = [create("k", "1"), cancel("1", 5.0), cancel("1", 5.05)], "two were told that they cancelled it"
        cancelled = [row("1", status="cancelled", attempts=0, started=None)]
        self.assertFinds("I3", twice, events, cancelled)
        self.assertFinds("I3", twice, [*events, fault(4, 6, "promote")], cancelled)
        self.assertHonest([*events, fault(4, 6, "promote", loses_claims=True)], cancelled)
        for other in (cancel("1", 5.05, "finished"), cancel("1", 5.05, None, "unknown")):
            self.assertHonest([*events[:2], other],
                              [row("1", status="cancelled", attempts=0, started=None, finished_at=5.05)])

    def test_an_attempt_that_started_twice(self):
        self.assertFinds("I4", "an attempt started twice",
                         [create("k", "1"), start("1", 10.1), start("1", 16), fault(10, 11)], [row("1")])

    def test_a_duplicate_that_nothing_explains(self):
        self.assertFinds("I4", "started again without a reason",
                         [create("k", "1"), start("1", 10.1), start("1", 16, 2)], [row("1", attempts=2)])

    def test_a_duplicate_that_the_faults_beside_it_cannot_cause(self):
        soon = [create("k", "1"), start("1", 10.1), start("1", 10.4, 2)]
        self.assertFinds("I4", "overlap within a lease", [*soon, fault(5, 10, "locks"), fault(10.5, 20, "delay")],
                         [row("1", attempts=2)])
        for name in ("locks", "delay", "kill", "crash", "terminate", "clock", "restart"):
            self.assertFinds("I4", "overlap within a lease", [*soon, fault(10.05, 12, name)], [row("1", attempts=2)])
        late = [create("k", "1"), start("1", 10.1), start("1", 16, 2)]
        self.assertFinds("I4", "started again without a reason", [*late, fault(15.3, 20)], [row("1", attempts=2)])
        self.assertFinds("I4", "started again without a reason", [*late, fault(10, 12, "restart")],
                         [row("1", attempts=2)])
        self.assertFinds("I4", "started again without a reason", [*late, fault(5, 9.4)], [row("1", attempts=2)])

    def test_a_fault_that_begins_when_the_outcome_must_have_been_written(self):
        twice, what = [row("1", attempts=2)], "started again without a reason"
        late = [create("k", "1"), start("1", 10.1), start("1", 15.2, 2)]
        self.assertFinds("I4", what, [*late, fault(15.05, 20)], twice)
        self.assertFinds("I4", what, [*late, fault(11.2, 20)], twice)
        self.assertHonest([*late, fault(11.0, 20)], twice)
        slow = [create("k", "1"), {**start("1", 10.1), "takes": 1.0}, start("1", 15.2, 2)]
        self.assertHonest([*slow, fault(12.0, 20)], twice)
        self.assertFinds("I4", what, [*slow, fault(12.2, 20)], twice)
        # Or that has ended when it is answered: a fault ends when all is well.
        self.assertFinds("I4", what, [*slow, fault(5, 11.0)], twice)
        self.assertHonest([*slow, fault(5, 11.2)], twice)

    def test_packets_that_are_late_explain_no_duplicate(self):
        self.assertFinds("I4", "started again without a reason",
                         [create("k", "1"), start("1", 10.1), start("1", 15.2, 2), fault(5, 20, "delay")],
                         [row("1", attempts=2)])

    def test_an_overlap_beside_a_node_that_is_stopped(self):
        frozen = fault(10.2, 16, "freeze", nodes=["a"])
        self.assertFinds("I4", "overlap within a lease",
                         [create("k", "1", "pull"), {**lease("1", "a", 10.1), "node": "a"},
                          {**lease("1", "b", 12, 2), "node": "b"}, settle("1", "b", 13), frozen],
                         [row("1", type="pull", attempts=2)])
        soon = [create("k", "1"), start("1", 10.1, node="a"), start("1", 12, 2, node="b"), frozen]
        self.assertFinds("I4", "overlap within a lease", soon, [row("1", attempts=2)])

    def test_a_connection_that_was_half_open_delays_no_outcome_of_a_later_claim(self):
        late = [create("k", "1"), start("1", 10.1), start("1", 16, 2)]
        self.assertHonest([*late, fault(5, 10.2, "half_open")], [row("1", attempts=2)])
        self.assertFinds("I4", "started again without a reason", [*late, fault(5, 10.0, "half_open")],
                         [row("1", attempts=2)])

    def test_a_job_that_its_handler_has_done_and_that_is_dead(self):
        runs = [create("k", "1"), start("1", 10.1), start("1", 16, 2), start("1", 22, 3)]
        dead = [row("1", status="dead", attempts=3)]
        while_it_ran = [fault(9, 23, "half_open")]
        self.assertHonest([*runs, *while_it_ran], dead)
        self.assertEqual(self.checker.done_and_dead, {"half_open": 1})
        self.assertFinds("I4", "done by its handler, and dead", [*runs, fault(9, 17, "half_open")], dead)
        self.assertHonest([*runs[:3], start("1", 22, 3, "fail"), fault(9, 17, "half_open")], dead)

    def test_overlaps_under_the_step_of_a_nodes_clock(self):
        self.assertFinds("I4", "overlap within a lease",
                         [create("k", "1"), start("1", 10.1), start("1", 10.3, 2), start("1", 10.5, 3),
                          fault(9, 12, "clock")], [row("1", attempts=3)])

    def test_an_attempt_of_a_claim_that_a_crash_cannot_lose(self):
        self.assertFinds("I4", "an attempt started twice",
                         [create("k", "1"), start("1", 10.1), start("1", 12, 1), fault(10.15, 11, "crash")],
                         [row("1")])

    def test_two_handlers_at_once(self):
        self.assertFinds("I4", "overlap within a lease", [create("k", "1"), start("1", 10.1), start("1", 11, 2)],
                         [row("1", attempts=2)])
        self.assertFinds("I4", "overlap within a lease",
                         [create("k", "1", "pull"), lease("1", "a", 10.1), lease("1", "b", 12, 2),
                          settle("1", "b", 13)],
                         [row("1", type="pull", attempts=2)])
        self.assertFinds("I4", "overlap within a lease",
                         [create("k", "1", "pull"), lease("1", "a", 10.1),
                          settle("1", "a", 11, "extend", "unknown", until=16.01), lease("1", "b", 12, 2),
                          settle("1", "b", 13)],
                         [row("1", type="pull", attempts=2)])

    def test_results_of_those_who_lost_the_job(self):
        job, two = create("k", "1", "pull"), [lease("1", "a", 10.1), lease("1", "b", 15.2, 2)]
        done = [row("1", type="pull", attempts=2)]
        self.assertFinds("I5", "two results accepted", [job, *two, settle("1", "a", 14), settle("1", "b", 16)], done)
        for kind in ("ack", "nack", "extend"):
            self.assertFinds("I5", "taken after the lease", [job, *two, settle("1", "a", 16, kind, until=19)], done)
        again = [settle("1", "a", 14, "extend", "unknown", until=17), settle("1", "a", 16, "extend", until=19)]
        self.assertHonest([job, two[0], *again, settle("1", "a", 18.9)], [row("1", type="pull")])
        self.assertFinds("I5", "leased after its ack", [job, *two, settle("1", "a", 14)], done)
        self.assertFinds("I5", "acknowledged, and not done", [job, two[0], settle("1", "a", 14)],
                         [row("1", type="pull", status="dead")])

    def test_a_result_of_an_attempt_whose_node_was_frozen(self):
        runs = [create("k", "1"), start("1", 10.1, node="a", takes=0.3), start("1", 15.2, 2, node="b", takes=1.2),
                fault(10.2, 18, "freeze", nodes=["a"], stopped=10.2, continued=16)]
        self.assertHonest(runs, [row("1", attempts=2, finished_at=16.41)])
        self.assertEqual(self.checker.frozen_while_running, 1)
        for status in ("done", "dead"):
            self.assertFinds("I5", "ended by a result of another attempt", runs,
                             [row("1", status=status, attempts=2, finished_at=16.01)])
        self.judge([*runs[:3], fault(10.2, 18, "freeze", nodes=["a"], stopped=10.2, continued=17)],
                   [row("1", attempts=2)])
        self.assertEqual(self.checker.frozen_while_running, 0)

    def test_attempts_beyond_the_limit(self):
        self.assertFinds("I6", "attempts beyond the limit",
                         [create("k", "1"), start("1", 10.1)], [row("1", attempts=4)])
        self.assertFinds("I6", "attempts beyond the limit", [create("k", "1"), start("1", 10.1, 4)], [row("1")])

    def test_a_job_that_died_too_soon(self):
        self.assertFinds("I6", "dead before its last attempt", [create("k", "1"), start("1", 10.1, answer="fail")],
                         [row("1", status="dead")])

    def test_steps_that_the_state_machine_has_not(self):
        job = create("k", "1", "noop")
        self.assertFinds("I10", "changed after its end", [job, seen("1", 12, "done"), seen("1", 13, "pending")],
                         [row("1", type="noop")])
        self.assertFinds("I10", "changed after its end", [job, seen("1", 12, "dead")], [row("1", type="noop")])
        self.assertFinds("I10", "cancelled by nobody", [job], [row("1", type="noop", status="cancelled")])
        self.assertFinds("I10", "cancelled by nobody", [job, cancel("1", 5, "running")],
                         [row("1", type="noop", status="cancelled")])
        self.assertFinds("I10", "not found, and there", [job, cancel("1", 5, "not_found")], [row("1", type="noop")])
        self.assertFinds("I10", "not found, and there", [job, seen("1", 5, "not found")], [row("1", type="noop")])

    def test_jobs_from_nowhere_and_twins(self):
        done = row("1", type="noop")
        self.assertFinds("I10", "a job that nobody asked for", [], [done])
        self.assertFinds("I10", "a refused job is there", [create("k", None, "noop", answer="refused")], [done])
        self.assertFinds("I10", "one key, two jobs", [create("k", "1", "noop")], [done, row("2", type="noop")])
        self.assertFinds("I10", "an id that was answered is no job",
                         [create("k", "1", "noop"), create("k", "2", "noop", b=3.0)], [done])
        self.assertFinds("I10", "two rows of one job", [create("k", "1", "noop")], [done, done])
        self.assertFinds("I10", "a job started that nobody asked for", [start("7", 10.1)], [])

    def test_ids_of_one_key(self):
        asked = [create("k", "1", "noop"), create("k", "2", "noop", b=3.0)]
        there, other = row("1", type="noop"), row("2", "l", "noop")
        no_job = ("I10", "an id that was answered is no job")
        self.assertEqual(self.judge(asked, [there], stands_for={"1": "1", "2": "1"}), [])
        self.assertEqual(self.checker.aliases(), 1)
        for found in ({"1": "1", "2": None}, {"1": None, "2": "1"}, {"1": "1", "2": "3"}):
            self.assertEqual(self.judge(asked, [there], stands_for=found), [no_job])
        self.assertEqual(self.judge([*asked, create("l", "2", "noop")], [there, other],
                                    stands_for={"1": "1", "2": "2"}), [no_job])
        self.assertEqual(self.judge(asked, [], stands_for={"1": None, "2": None}), [("I1", "acknowledged job lost")])

    def test_ids_to_ask_are_those_that_the_rows_do_not_explain(self):
        history = History(TYPES + [create("k", "1"), create("l", "2"), create("l", "3"), create("m", "4")])
        self.assertEqual(ids_to_ask(history, [row("1"), row("2", "l")], {"k": {"1", "5"}}), {"2", "3", "4", "5"})

    def test_wrong_counts(self):
        self.assertFinds("I11", "counts", [create("k", "1"), start("1", 10.1)], [row("1")], {("hook", "done"): 2})

    def test_counts_that_were_wrong_for_a_moment(self):
        done = [create("k", "1"), start("1", 10.1)]
        snapshot = {"e": "counts", "t": 10.2, "port": 5432, "wrong": []}
        self.assertHonest([*done, snapshot], [row("1")])
        self.assertFinds("I11", "counts at a snapshot", [*done, {**snapshot, "wrong": [["hook", "done", "2", "1"]]}],
                         [row("1")])


class EveryRule(unittest.TestCase):
    """A rule that no history breaks may be one that cannot be broken."""

    def test_is_broken_by_some_history(self):
        reached = set()
        broken = Checker.broken

        def note(self, *words):
            caller = sys._getframe(1)
            reached.add((caller.f_globals["__name__"], caller.f_lineno))
            broken(self, *words)

        with mock.patch.object(Checker, "broken", note):
            for tests in (limits_test.BooksAndLimits, told_rules_test.WhatWasTold, TheCheckerFinds):
                unittest.defaultTestLoader.loadTestsFromTestCase(tests).run(unittest.TestResult())
        rules = [(module, node) for module in (checker, cluster_rules, told_rules)
                 for node in ast.walk(ast.parse(inspect.getsource(module)))
                 if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "broken"]
        self.assertGreater(len(rules), 30)
        unbroken = [f"{module.__name__} {rule.lineno}: {ast.unparse(rule.args[1])}" for module, rule in rules
                    if not any((module.__name__, line) in reached for line in range(rule.lineno, rule.end_lineno + 1))]
        self.assertEqual(unbroken, [])


if __name__ == "__main__":
    unittest.main()
