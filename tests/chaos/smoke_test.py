"""Whole clusters under faults, small enough for every run of the tests; and the control that shows a loss is found."""
import collections

from chaos import Run
from faults import FAULTS, OF_PATRONI
from patroni import PatroniCluster
from postgres import FAKETIME, eventually
from run_case import SEED, RunCase, folder


class Chaos(RunCase):
    def test_every_promise_is_kept_under_every_fault(self):
        self.assertTrue(FAKETIME.exists(), "libfaketime is missing; scripts/install brings it")
        with Run(folder(), SEED, rate=500, batch=50, spread_s=3, heartbeat_timeout=2) as run:
            run.start()
            run.strike_all(seconds=2)
            checker = run.finish()
            run.report.print()
            run.begin_part()  # nothing strikes any more
            run.strike_for(minutes=0.1, seconds=0, names=())
            calm = run.finish()
        self.assert_honest(run, checker)
        self.assert_honest(run, calm)
        self.assertGreater(len(calm.rows), 1000)
        self.assertEqual({fault["name"] for fault in checker.history.faults}, set(FAULTS))
        self.assertGreater(len(checker.rows), 1000)
        self.assertGreater(checker.aliases(), 0)
        self.assertEqual(len(checker.takeovers), 1)
        self.assertGreater(checker.left_behind, 0)
        self.assertGreater(checker.late_while_running, 0)
        self.assertTrue(checker.history.retries)
        self.assertTrue(checker.history.paused)
        self.assertEqual(checker.most_at_once.keys(), {"few", "scarce"})
        self.assertGreater(min(checker.most_at_once.values()), 1)
        told = [{cancel["result"] for cancel in cancels} for cancels in checker.history.cancels.values()]
        self.assertIn({"cancelled", "finished"}, told)
        self.assertGreater(len(checker.history.snapshots), 20)

    def test_an_asynchronous_standby_that_lags_loses_jobs_and_the_checker_finds_them(self):
        with Run(folder(), SEED, rate=500, batch=50, spread_s=3, is_synchronous=False, heartbeat_timeout=2) as run:
            run.start()
            run.strike([FAULTS["promote"]], seconds=2)
            self.count_one_too_many_for_a_moment(run)
            checker = run.finish()
        found = collections.Counter(violation.what for violation in checker.violations)
        print(dict(found))
        self.assertGreater(found["acknowledged job lost"], 0)
        self.assertGreater(found["counts at a snapshot"], 0)
        self.assertEqual(found["counts"], 0)
        # A job whose acknowledged move to a later time was lost starts early: that is loss, too.
        self.assertFalse(found.keys() & {"has not ended", "attempts beyond the limit"})

    def count_one_too_many_for_a_moment(self, run):
        add = """INSERT INTO tocsin.job_count_delta (type_id, status, n)
            SELECT type_id, 0, {} FROM tocsin.biz_type LIMIT 1"""
        run.cluster.primary.psql(add.format(1))
        eventually(lambda: run.count_watch.wrong, "the counts are compared with the rows")
        run.cluster.primary.psql(add.format(-1))

    def test_patroni_fails_over_and_switches_over_and_nothing_is_lost(self):
        with Run(folder(), SEED, rate=300, batch=50, spread_s=3, names=(), heartbeat_timeout=2,
                 kind=PatroniCluster) as run:
            run.start()
            before = run.cluster.primary
            for fault in OF_PATRONI:
                run.strike([fault], seconds=3)
                self.assertIsNot(run.cluster.primary, before, fault.about)
                before = run.cluster.primary
            checker = run.finish()
            run.report.print()
        self.assert_honest(run, checker)
