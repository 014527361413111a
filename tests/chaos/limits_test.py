"""Books, limits, pauses, takeovers and memory: histories that break them, and honest ones."""
import unittest

import caller
import cluster_rules
import load
from checker import Checker
from histories import TYPES, cancel, create, fault, lease, move, row, settle, start
from job_history import History


class BooksAndLimits(unittest.TestCase):
    TYPES = [{"e": "type", "name": "noop", "kind": "noop", "ttr": 5.0, "retry": 1.0, "max_attempts": 3},
             {"e": "type", "name": "ledger", "kind": "sql", "ttr": 5.0, "retry": 1.0, "max_attempts": 3},
             {"e": "type", "name": "few", "kind": "webhook", "ttr": 5.0, "retry": 1.0, "max_attempts": 3,
              "max_running": 2},
             {"e": "type", "name": "scarce", "kind": "pull", "ttr": 5.0, "retry": 1.0, "max_attempts": 3,
              "max_running": 2},
             {"e": "type", "name": "paced", "kind": "webhook", "ttr": 5.0, "retry": 1.0, "max_attempts": 3, "rate": 2}]

    def judge(self, events, rows, **more):
        checker = Checker(History(self.TYPES + events), rows, **more)
        return [(violation.invariant, violation.what) for violation in checker.check()]

    def test_what_a_function_did_is_in_the_books_once(self):
        job, done = [create("k", "1", "ledger")], [row("1", type="ledger")]
        self.assertEqual(self.judge(job, done, booked={"1": 1}), [])
        self.assertEqual(self.judge(job, done, booked={}), [("I1", "done, and not in the books")])
        self.assertEqual(self.judge(job, done, booked={"1": 2}), [("I5", "in the books twice")])
        cancelled = [row("1", type="ledger", status="cancelled", attempts=0, started=None)]
        told = [*job, cancel("1", 5)]
        self.assertEqual(self.judge(told, cancelled, booked={}), [])
        self.assertEqual(self.judge(told, cancelled, booked={"1": 1}), [("I5", "in the books, and not done")])

    def several(self, type, times, takes):
        events, rows = [], []
        for number, t in enumerate(times, 1):
            events += [create(f"k{number}", str(number), type), {**start(str(number), t), "takes": takes}]
            rows.append(row(str(number), f"k{number}", type, at=10.0, started=t))
        return events, rows

    def test_no_more_run_at_once_than_may(self):
        self.assertEqual(self.judge(*self.several("few", [10.1, 10.2, 10.4, 10.5], 0.3)), [])
        self.assertEqual(self.judge(*self.several("few", [10.1, 10.2, 10.3], 0.3)), [("I12", "more than max_running")])

    def test_no_more_are_leased_at_once_than_may(self):
        more = ("I12", "more than max_running")
        def judge(times, *events):
            jobs, rows = [], []
            for number, t in enumerate(times, 1):
                jobs += [create(f"k{number}", str(number), "scarce"),
                         lease(str(number), f"t{number}", t, type="scarce")]
                rows.append(row(str(number), f"k{number}", "scarce", started=t))
            return more in self.judge([*jobs, *events], rows)
        self.assertFalse(judge([10.1, 10.2]))
        self.assertTrue(judge([10.1, 10.2, 10.3]))
        self.assertFalse(judge([10.1, 10.2, 10.3], settle("1", "t1", 10.25)))
        self.assertTrue(judge([10.1, 10.2, 10.3], settle("1", "t1", 10.35)))
        self.assertFalse(judge([10.1, 10.2, 15.15]))  # the lease of the first has ended
        self.assertFalse(judge([10.1, 10.2, 11.0], fault(10.5, 11, "clock_second", hastens=5)))
        self.assertFalse(judge([10.1, 10.2, 11.0], fault(10.5, 11, "clock_control", ends_permits=True)))

    def test_nothing_starts_faster_than_its_rate(self):
        self.assertEqual(self.judge(*self.several("paced", [10.1 + i / 2 for i in range(16)], 0)), [])
        for times in ([10.1 + i / 10 for i in range(18)],  # in one second, and in five
                      [10.1 + i / 10 for i in range(9)],
                      [10.1 + i / 4 for i in range(18)],
                      [10.1 + i / 2.6 for i in range(40)]):  # a little, and for long
            self.assertEqual(self.judge(*self.several("paced", times, 0)), [("I12", "faster than its rate")])

    def test_the_load_has_enough_jobs_to_break_the_limits(self):
        for name, spec in caller.TYPES.items():
            if rate := spec.get("rate_per_s"):
                for span in cluster_rules.RATE_SPANS:
                    self.assertGreater(load.Crowd.WAVES[name][0], cluster_rules.most_starts(rate, span))
            if most := spec.get("max_running"):
                self.assertGreater(load.Crowd.WAVES[name][0], most)

    def test_limits_hold_unless_the_control_databases_clock_ended_permits(self):
        for type, times, takes, what in (("few", [10.1, 10.2, 10.3], 0.3, "more than max_running"),
                                         ("paced", [10.1 + i / 10 for i in range(18)], 0, "faster than its rate")):
            events, rows = self.several(type, times, takes)
            self.assertEqual(self.judge([*events, fault(6, 9, "clock_control", ends_permits=True)], rows), [])
            for other in (fault(1, 2, "clock_control", ends_permits=True), fault(6, 9, "clock_second")):
                self.assertEqual(self.judge([*events, other], rows), [("I12", what)])

    def test_nothing_of_a_paused_type_starts(self):
        job, started = create("k", "1"), ("I12", "started while its type was paused")
        types = [*TYPES, {**TYPES[1], "name": "other"}]
        def judge(t, *events, paused="hook"):
            pause = {"e": "paused", "b": 9.9, "t": 10.0, "type": paused, "until": 20.0}
            events = [*types, job, start("1", t), pause, *events]
            return started in [(violation.invariant, violation.what)
                               for violation in Checker(History(events), [row("1", started=t)]).check()]
        self.assertFalse(judge(13.5))  # its node had not heard of it
        self.assertTrue(judge(13.7))
        self.assertTrue(judge(19.9))
        self.assertFalse(judge(20.1))
        self.assertFalse(judge(13.7, paused="other"))
        for name, is_cut_off in (("crash", True), ("kill", True), ("restart", False), ("delay", False)):
            self.assertEqual(judge(13.7, fault(12, 13, name)), not is_cut_off)
        self.assertTrue(judge(13.7, fault(8, 9.9, "crash"), fault(13.8, 20, "crash")))

    def test_what_a_dead_node_left_is_taken_over(self):
        job, nobody = [create("k", "1", "noop")], ("I8", "nobody took over in time")
        late = [row("1", type="noop", started=17)]
        def judge(*faults, rows=late):
            return self.judge([*job, *faults], rows, heartbeat_timeout=2)
        killed = fault(9, 20, dead_until=18)
        self.assertEqual(judge(killed), [nobody])
        self.assertEqual(judge(killed, rows=[row("1", type="noop", started=15)]), [])
        self.assertIn(nobody, judge(killed, rows=[row("1", type="noop", status="pending", started=None)]))
        # Not judged: what else can be why it waits.
        for other in (fault(1, 4, "crash"), fault(12, 13, "crash")):
            self.assertEqual(judge(other, killed), [])
        self.assertEqual(judge(fault(1, 2, "crash"), killed, fault(19, 21, "crash")), [nobody])
        # Not judged: it started again so soon that nobody need have missed it.
        self.assertEqual(judge(fault(9, 20, dead_until=15.5)), [])

    def test_what_ran_on_a_node_that_stops_is_due_again_when_its_lease_ends(self):
        late = ("I8", "a lease of a dead node ended, and nobody ran its job")
        def judge(again, *faults, ran="a", type="hook", more=(), heartbeat_timeout=2):
            types = [*TYPES, {**TYPES[1], "name": "few", "max_running": 2}]
            events = [create("k", "1", type), start("1", 10.1, node=ran), start("1", again, 2, node="b"), *more]
            checker = Checker(History(types + events + list(faults)), [row("1", type=type, attempts=2)],
                              heartbeat_timeout=heartbeat_timeout)
            return late in [(violation.invariant, violation.what) for violation in checker.check()]
        for name in ("kill", "freeze"):
            stopped = fault(10.2, 20, name, nodes=["a"], stopped=10.3)
            self.assertFalse(judge(19.0, stopped))  # the lease ends at 15.1 at the latest
            self.assertTrue(judge(19.2, stopped))
            self.assertTrue(judge(19.2, fault(1, 4, "crash"), stopped, fault(19.3, 20, "crash")))
            # Not judged: what else can be why it waits.
            for other in (fault(1, 5, "crash"), fault(19, 20, "crash")):
                self.assertFalse(judge(19.2, stopped, other))
            self.assertFalse(judge(19.2, stopped, ran="b"))
            self.assertFalse(judge(19.2, stopped, type="few"))
            for type, is_late in (("hook", False), ("noop", True)):
                pause = {"e": "paused", "b": 11.0, "t": 11.1, "type": type, "until": 19.0}
                self.assertEqual(judge(19.2, stopped, more=[pause]), is_late)
            self.assertFalse(judge(19.2, stopped, more=[move("1", 10.2, 19.0, "unknown")]))
            self.assertFalse(judge(19.2, stopped, heartbeat_timeout=5))
        self.assertFalse(judge(19.2, fault(14, 20, nodes=["a"], stopped=15.2)))  # it had ended before

    def test_a_lease_that_ended_waits_for_consumers_who_asked_a_frozen_node(self):
        late = ("I8", "a lease of a dead node ended, and nobody ran its job")
        def judge(again, *polls):
            first, other = [{**lease("1", token, at, n), "node": node}
                            for token, at, n, node in (("x", 10.1, 1, "a"), ("y", again, 2, "b"))]
            polls = [{"e": "poll", "type": "pull", "node": node, "b": sent, "t": heard} for node, sent, heard in polls]
            events = [*TYPES, create("k", "1", "pull"), first, other, settle("1", "y", again + 0.1), *polls,
                      fault(10.2, 30, "freeze", nodes=["a"], stopped=10.3)]
            checker = Checker(History(events), [row("1", type="pull", attempts=2)], heartbeat_timeout=2)
            return late in [(violation.invariant, violation.what) for violation in checker.check()]
        # The lease ends at 15.1, and the others have four seconds for it.
        self.assertFalse(judge(19.0, ("b", 18.0, 19.0)))
        self.assertFalse(judge(21.0, ("b", 14.0, 15.0), ("a", 15.0, 20.5), ("b", 20.5, 21.0)))
        self.assertFalse(judge(21.0, ("b", 14.0, 15.0), ("a", 16.0, 20.0), ("b", 20.1, 20.9), ("b", 20.9, 21.0)))
        self.assertTrue(judge(21.6, ("a", 15.0, 20.5), ("b", 20.5, 21.5), ("b", 21.5, 21.6)))
        self.assertTrue(judge(21.0, ("a", 15.0, 20.5), ("b", 18.0, 19.2), ("b", 20.5, 21.0)))  # another asked
        self.assertTrue(judge(21.0, ("b", 15.0, 20.0), ("b", 20.2, 21.0)))  # a living node did not answer

    def test_memory_is_bounded(self):
        def memory(mb):
            return [{"e": "memory", "node": "a", "mb": mb, "t": 1.0}]
        self.assertEqual(self.judge(memory(100), []), [])
        self.assertEqual(self.judge(memory(1000), []), [("I7", "memory")])


if __name__ == "__main__":
    unittest.main()
