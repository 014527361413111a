#!/usr/bin/env python3
"""Runs a cluster of real processes under faults, and checks what callers and handlers saw against what is stored.

  chaos.py --minutes 5 --seed 7                  every fault, in an order drawn from the seed
  chaos.py --minutes 1 --faults kill,promote     some of them
  chaos.py --list                                which there are
"""
import argparse
import collections
import functools
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time

import caller
import checker as judge
import faults
import history
import load
from cluster import Cluster, free_port
from cluster_rules import CLAIM_TO_START, takeover_time
from count_watch import CountWatch
from job_history import History
from postgres import FAKETIME
from receiver import Receiver
from report import Report, print_violations

ROWS = """COPY (SELECT job_id, biz_id, biz_type, status, attempts, max_attempts, extract(epoch FROM action_time),
  extract(epoch FROM started_at), extract(epoch FROM finished_at) FROM tocsin.job
  WHERE biz_id LIKE '{0}%' OR biz_id LIKE 'sql-{0}%') TO STDOUT"""
ROWS_IN_ALL = "SELECT count(*) FROM tocsin.job"
CLOSE_BOOKS = "TRUNCATE public.witness, public.booked"
COUNTS = "SELECT biz_type, status, n FROM tocsin.job_stats WHERE n > 0"
WITNESSED = "SELECT biz_id, job_id FROM public.witness"
BOOKED = "SELECT job_id, count(*) FROM public.booked GROUP BY job_id"
FLOAT_MISSING = "\\N"
# s: between two faults, longer than a lease and what the checker adds to it. So there are starts that no fault excuses.
PAUSE = max(spec["ttr_ms"] for spec in caller.TYPES.values() if "ttr_ms" in spec) / 1000 + CLAIM_TO_START + 1


def row_of(line):
    job_id, biz_id, type, status, attempts, most, *times = line.split("\t")
    return judge.Row(job_id, biz_id, type, status, int(attempts), int(most),
                     *(None if text == FLOAT_MISSING else float(text) for text in times))


class Run:
    """One run: a cluster, its load, its faults, its judgement. `folder` keeps the history and the logs.

    A run has one part or more. Each has callers and a history of its own and is judged by itself, so that a long run
    needs no more memory than a short one; the cluster and its rows live on from part to part.
    """

    def __init__(self, folder, seed, rate=800, batch=200, spread_s=4.0, is_synchronous=True, names=tuple(faults.FAULTS),
                 heartbeat_timeout=3, say=functools.partial(print, flush=True), kind=Cluster):
        self.folder, self.seed, self.say = pathlib.Path(folder), seed, say
        self.names, self.rng = names, random.Random(seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)  # PostgreSQL runs as another user
        self.events = history.Writer(self.folder / "start.jsonl")
        self.port = free_port()  # of the receiver
        self.receiver = self.load = self.count_watch = None
        self.settings = {"seed": seed, "rate": rate, "batch": batch, "spread_s": spread_s}
        self.part, self.types = 0, {}
        self.judged = collections.Counter()  # rows of earlier parts, by (type, status)
        self.mended = 0.0  # when the last fault was
        self.cluster = kind(self.folder, self.events, is_synchronous=is_synchronous, has_small_disk="disk" in names,
                            has_clocks=bool(faults.CLOCKS & set(names)),
                            heartbeat_timeout=heartbeat_timeout)

    def start(self):
        self.cluster.start()
        for server in self.cluster.primaries():
            server.psql(caller.BOOKS)
        for name, spec in caller.TYPES.items():
            if spec["handler"]["kind"] == "webhook":
                spec = {**spec, "handler": {**spec["handler"], "url": f"http://127.0.0.1:{self.port}/"}}
            status, reply = self.cluster.nodes[0].get(f"/v1/types/{name}", "PUT", spec)
            if status not in (200, 201):
                raise RuntimeError(f"type {name}: {status} {reply}")
            self.types[name] = caller.describe(name, spec)
        self.begin_part()

    def begin_part(self):
        self.part += 1
        self.prefix, self.home = f"p{self.part}.", self.folder / f"part-{self.part}"
        self.home.mkdir()
        self.events.reopen(self.home / "faults.jsonl")
        for described in self.types.values():
            self.events.write("type", **described)
        self.receiver = Receiver(self.port, self.home / "receiver.jsonl")
        self.load = load.LoadProcess(nodes={node.port: node.name for node in self.cluster.nodes},
                                     path=self.home / "load.jsonl", prefix=self.prefix,
                                     databases=self.cluster.business_databases(), **self.settings)
        self.count_watch = CountWatch(self.cluster, self.events)
        self.count_watch.start()
        self.note_places()
        self.started = time.time()

    def strike(self, struck, seconds):
        """Lets faults strike together, and waits until all is well again."""
        if [fault.name for fault in struck] in (["kill"], ["freeze"]):  # only so late can it alone be why jobs wait
            calm = self.mended + takeover_time(self.cluster.heartbeat_timeout) + 0.1
            time.sleep(max(0.0, calm - time.time()))
        self.say(f"  {time.time() - self.started:6.1f} s  " + " + ".join(fault.name for fault in struck))
        on, failures, all_struck = time.time(), [], {}

        def strike_one(fault, rng):
            try:
                all_struck[fault.name] = fault.strike(self.cluster, rng, seconds) or {}
            except Exception as error:  # of a thread: told where the run is judged
                failures.append(f"{fault.name}: {error!r}")

        threads = [threading.Thread(target=strike_one, args=(fault, random.Random(self.rng.random())))
                   for fault in struck]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise RuntimeError("; ".join(failures))
        self.cluster.wait_until_well()
        self.note_memory()
        self.note_places()
        self.mended = time.time()
        for fault in struck:
            self.events.write("fault", name=fault.name, on=on, off=self.mended, repeats=fault.repeats,
                              loses_claims=fault.loses_claims and not self.cluster.is_synchronous,
                              hastens=fault.hastens, ends_permits=fault.ends_permits, **all_struck[fault.name])

    def note_places(self):
        self.events.write("places", t=time.time(), places=self.cluster.places())

    def note_memory(self):
        for node in self.cluster.nodes:
            node.note_memory()

    def strike_all(self, seconds):
        """Each fault once."""
        for name in self.rng.sample(sorted(self.names), len(self.names)):
            self.strike([faults.FAULTS[name]], seconds)
            time.sleep(PAUSE)

    def strike_for(self, minutes, seconds, names):
        until = time.monotonic() + minutes * 60
        if not names:
            time.sleep(minutes * 60)
            return
        for struck in faults.plan(self.rng, names):
            if time.monotonic() >= until:
                return
            self.strike(struck, seconds)
            time.sleep(PAUSE + self.rng.uniform(0, seconds))

    def finish(self):
        """Lets all of this part come to its end, and judges. The checker, with its violations."""
        self.load.stop_creating()
        took = time.time() - self.started
        left = self.cluster.wait_until_at_rest()
        self.load.stop()
        self.receiver.stop()
        self.count_watch.stop()
        self.note_memory()
        self.events.flush()
        if left:
            self.say(f"{left} jobs have not ended")
        table = "".join(server.psql(ROWS.format(self.prefix), patience=600) for server in self.cluster.primaries())
        (self.home / "rows.tsv").write_text(table)
        rows = list(map(row_of, table.splitlines()))
        counts, witnessed, booked = collections.Counter(), collections.defaultdict(set), collections.Counter()
        for server in self.cluster.primaries():
            for type, status, n in (line.split("\t") for line in server.psql(COUNTS).splitlines()):
                counts[type, status] += int(n)
            for key, job_id in (line.split("\t") for line in server.psql(WITNESSED).splitlines()):
                witnessed[key].add(job_id)
            for job_id, n in (line.split("\t") for line in server.psql(BOOKED).splitlines()):
                booked[job_id] += int(n)
            server.psql(CLOSE_BOOKS)
        counts.subtract(self.judged)
        seen = History(history.read(self.home))
        stands_for = {job_id: self.cluster.find(job_id) for job_id in judge.ids_to_ask(seen, rows, witnessed)}
        checker = judge.Checker(seen, rows, counts, witnessed, booked, self.cluster.heartbeat_timeout, stands_for)
        checker.check()
        self.judged.update((row.type, row.status) for row in checker.rows.values())
        in_all = sum(int(server.psql(ROWS_IN_ALL, patience=600)) for server in self.cluster.primaries())
        if in_all != self.judged.total():
            judged = self.judged.total()
            checker.broken("I10", "rows that no part knows", None, f"{in_all} rows, {judged} judged")
        self.report = Report(checker.history, checker, took)
        return checker

    def stop(self):
        if self.count_watch:
            self.count_watch.stop()
        if self.load:
            self.load.kill()
        if self.receiver:
            self.receiver.stop()
        self.cluster.stop()
        self.events.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def arguments():
    parser = argparse.ArgumentParser(prog="dev chaos", description="A cluster of real processes under faults.")
    parser.add_argument("--minutes", type=float, default=3, help="how long faults strike (3), in each part")
    parser.add_argument("--parts", type=int, default=1, help="each judged by itself, on one cluster (1)")
    parser.add_argument("--seed", type=int, default=None, help="draws the faults (the time)")
    parser.add_argument("--faults", default=",".join(faults.FAULTS),
                        help="names, separated by commas (all); none: no faults")
    parser.add_argument("--rate", type=float, default=1000, help="jobs per second created in batches (1000)")
    parser.add_argument("--batch", type=int, default=200, help="jobs per batch (200)")
    parser.add_argument("--seconds", type=float, default=4, help="how long one fault lasts, about (4)")
    parser.add_argument("--heartbeat-timeout", type=int, default=5, help="of the nodes, in seconds (5)")
    parser.add_argument("--asynchronous", action="store_true", help="the standby lags: promotions lose jobs")
    parser.add_argument("--folder", type=pathlib.Path, help="for the history and the logs (a new one in /tmp)")
    parser.add_argument("--list", action="store_true", help="tells the faults there are")
    options = parser.parse_args()
    options.faults = [name for name in options.faults.split(",") if name not in ("", "none")]
    for name in options.faults:
        if name not in faults.FAULTS:
            parser.error(f"--faults: there is no {name}; --list tells which there are")
    if options.list:
        for fault in faults.FAULTS.values():
            print(f"{fault.name:<14}{fault.about}")
        sys.exit(0)
    if faults.CLOCKS & set(options.faults) and not FAKETIME.exists():
        parser.error(f"--faults: clocks need {FAKETIME}; scripts/install brings it")
    return options


def main():
    options = arguments()
    seed = options.seed if options.seed is not None else int(time.time())
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="tocsin-chaos-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"Seed {seed}; history and logs in {folder}")
    with Run(folder, seed, options.rate, options.batch, is_synchronous=not options.asynchronous, names=options.faults,
             heartbeat_timeout=options.heartbeat_timeout) as run:
        run.start()
        violations = []
        for part in range(1, options.parts + 1):
            if part > 1:
                run.begin_part()
            run.strike_for(options.minutes, options.seconds, options.faults)
            print("Waiting until all is at rest")
            violations += run.finish().violations
            print(f"\nPart {part} of {options.parts}")
            run.report.print()
            memory = ", ".join(f"{node.memory_mb()} MB" for node in run.cluster.nodes)
            most = max(event["mb"] for event in run.report.history.memory)
            print(f"memory of the nodes: {memory}; {most} MB at most", flush=True)
    print(f"\n{run.judged.total():,} rows in all")
    print_violations(violations)
    broken = collections.Counter(violation.invariant for violation in violations)
    print(f"{sum(broken.values())} promises broken: {dict(broken)}" if broken else "Every promise was kept.")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
