"""Compares the counts of each database with its rows while the load runs. The checker judges what it has written."""
import subprocess
import threading
import time

# One statement, so one snapshot. While a shard moves, its jobs are in the counts of a database without living there.
COMPARE = """SELECT 'moving', '', 0, 0 WHERE EXISTS (SELECT FROM tocsin.move)
UNION ALL
SELECT biz_type, status, coalesce(s.n, 0), coalesce(r.n, 0)
FROM tocsin.job_stats s FULL JOIN
  (SELECT biz_type, status, count(*) AS n FROM tocsin.job GROUP BY 1, 2) r USING (biz_type, status)
WHERE coalesce(s.n, 0) <> coalesce(r.n, 0)"""
EVERY_S = 1.0
SHARE = 0.1  # of the time that it may count: a long run has many rows


class CountWatch(threading.Thread):
    """Thread: its own; `stop` and the counters any."""

    def __init__(self, cluster, events):
        super().__init__(name="counts", daemon=True)
        self.cluster, self.events, self.is_over = cluster, events, threading.Event()
        self.snapshots = self.wrong = 0

    def run(self):
        pause = EVERY_S
        while not self.is_over.wait(pause):
            began = time.monotonic()
            for server in self.cluster.primaries():
                self.compare(server)
            pause = max(EVERY_S, (time.monotonic() - began) * (1 / SHARE - 1))

    def compare(self, server):
        try:
            lines = server.psql(COMPARE).splitlines()
        except (RuntimeError, subprocess.TimeoutExpired):
            return  # it is down
        wrong = [line.split("\t") for line in lines]
        if any(line[0] == "moving" for line in wrong):
            return
        self.events.write("counts", t=time.time(), port=server.port, wrong=wrong)
        self.snapshots += 1
        self.wrong += bool(wrong)

    def stop(self):
        self.is_over.set()
        self.join()
