"""All databases show a wrong year for a while: nothing that is stored is lost, and nothing starts before its time.

Nothing else is asked of the cluster meanwhile. What a database stores while its clock is ahead, an end of a lease or
the time of a retry, is a moment of that year, and waits for it.
"""
import functools
import re
import time

from chaos import Run
from caller import time_text
from postgres import eventually
from run_case import SEED, RunCase, folder

YEAR = 365 * 86400
HOUR = 3600
EACH = 64  # jobs of one kind: two for each shard, so that some live in either database
DAYS = """FROM pg_class WHERE relnamespace = 'tocsin'::regnamespace AND relkind = 'r'
  AND relname ~ '^job_history_(done|cancelled|dead)_[0-9]{8}$'"""
USED_DAYS = f"SELECT count(*) {DAYS} AND pg_relation_size(oid) > 0"
# Those may go by the clock alone, one at a time. Then a node has none to drop but those that it must keep.
DROP_EMPTY_DAYS = f"""DO $$ DECLARE leaf regclass; BEGIN
  FOR leaf IN SELECT oid {DAYS} AND pg_relation_size(oid) = 0 AND to_date(right(relname, 8), 'YYYYMMDD') + 40 < now()
  LOOP EXECUTE format('DROP TABLE %s', leaf); END LOOP; END $$"""
EARLY = "SELECT biz_id FROM tocsin.job WHERE biz_id ~ '^(ahead|hour|soon)-' AND started_at < action_time"
STATUSES = "SELECT status FROM tocsin.job WHERE biz_id LIKE '{}-%'"


class WrongYear(RunCase):
    def test_costs_no_job_and_starts_none_early(self):
        with Run(folder(), SEED, rate=200, batch=50, spread_s=2, names=("clock_control", "clock_second"),
                 heartbeat_timeout=2) as run:
            run.start()
            self.cluster, self.judged = run.cluster, run.judged
            run.strike_for(minutes=0.05, seconds=0, names=())
            before = run.finish()
            self.create("far", time.time() + 2 * YEAR)
            self.create("hour", time.time() + HOUR)
            used = sum(int(server.psql(USED_DAYS)) for server in self.cluster.primaries())

            self.set_clocks(YEAR)
            self.wait_until_history_is_withheld(used)
            self.create("ahead", time.time() + YEAR + 2)
            self.wait_until("ahead", "done")
            self.wait_until("hour", "done")  # by the clock of the databases it is late
            self.assertEqual(self.statuses("far"), ["pending"] * EACH)

            self.set_clocks(0)
            self.create("soon", time.time() + 2)
            self.create("later", time.time() + HOUR)
            self.wait_until("soon", "done")
            for name in ("far", "later"):
                self.cancel(name)
            self.assertEqual([server.psql(EARLY) for server in self.cluster.primaries()], ["", ""])

            run.begin_part()
            run.strike_for(minutes=0.05, seconds=0, names=())
            after = run.finish()  # also looks whether the rows of all that went before are there
        for checker in (before, after):
            self.assert_honest(run, checker)
            self.assertGreater(len(checker.rows), 500)

    def set_clocks(self, ahead):
        for server in self.cluster.primaries():
            server.clock.set(f"+{ahead}")
        for server in self.cluster.primaries():
            eventually(functools.partial(self.is_ahead, server, ahead), "the clock is set")

    def is_ahead(self, server, by):
        return abs(float(server.psql("SELECT extract(epoch FROM clock_timestamp())")) - time.time() - by) < 5

    def wait_until_history_is_withheld(self, used):
        """A node looks for old history soon after its start, and finds that of the jobs which have ended."""
        self.assertGreaterEqual(used, 2)
        for server in self.cluster.primaries():
            server.psql(DROP_EMPTY_DAYS)
        node = self.cluster.nodes[0]
        self.assertEqual(node.terminate(), 0)
        node.start()
        node.wait_until_ready()
        eventually(lambda: self.withheld_of(node) == used, f"{used} tables of history are withheld")

    def withheld_of(self, node):
        _, text = node.get("/metrics")
        found = re.search(r"^tocsin_history_withheld_tables (\d+)", text or "", re.MULTILINE)
        return int(found[1]) if found else 0

    def create(self, name, at):
        jobs = [{"biz_type": "noop", "biz_id": f"{name}-{i}", "action_time": time_text(at)} for i in range(EACH)]
        status, reply = self.cluster.nodes[0].get("/v1/jobs/batch", "POST", {"jobs": jobs})
        self.assertIn(status, (200, 201), reply)

    def statuses(self, name):
        return [status for server in self.cluster.primaries() for status in server.psql(STATUSES.format(name)).split()]

    def wait_until(self, name, status):
        eventually(lambda: self.statuses(name) == [status] * EACH, f"jobs {name} are {status}")
        self.judged["noop", status] += EACH

    def cancel(self, name):
        self.assertEqual(self.statuses(name), ["pending"] * EACH)
        for i in range(EACH):
            status, reply = self.cluster.nodes[0].get("/v1/jobs/cancel", "POST", {"biz_id": f"{name}-{i}"})
            self.assertEqual(status, 200, reply)
        self.wait_until(name, "cancelled")
