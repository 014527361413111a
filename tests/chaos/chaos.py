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

import checker as judge
import faults
import history
import load
from cluster import FAKETIME, Cluster, free_port
from receiver import Receiver
from report import Report

ROWS = """COPY (SELECT job_id, biz_id, biz_type, status, attempts, max_attempts, extract(epoch FROM action_time),
  extract(epoch FROM started_at), extract(epoch FROM finished_at) FROM tocsin.job) TO STDOUT"""
COUNTS = "SELECT biz_type, status, n FROM tocsin.job_stats WHERE n > 0"
WITNESSED = "SELECT biz_id, job_id FROM public.witness"
BOOKED = "SELECT job_id, count(*) FROM public.booked GROUP BY job_id"
FLOAT_MISSING = "\\N"
# s: between two faults, longer than a lease and what the checker adds to it. So there are starts that no fault excuses.
PAUSE = max(spec["ttr_ms"] for spec in load.TYPES.values() if "ttr_ms" in spec) / 1000 + judge.CLAIM_TO_START + 1


def row_of(line):
    job_id, biz_id, type, status, attempts, most, *times = line.split("\t")
    return judge.Row(job_id, biz_id, type, status, int(attempts), int(most),
                     *(None if text == FLOAT_MISSING else float(text) for text in times))


class Run:
    """One run: a cluster, its load, its faults, its judgement. `folder` keeps the history and the logs."""

    def __init__(self, folder, seed, rate=800, batch=200, spread_s=4.0, is_synchronous=True, names=tuple(faults.FAULTS),
                 heartbeat_timeout=3, say=functools.partial(print, flush=True), kind=Cluster):
        self.folder, self.seed, self.say = pathlib.Path(folder), seed, say
        self.names, self.rng = names, random.Random(seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)  # PostgreSQL runs as another user
        self.events = history.Writer(self.folder / "faults.jsonl")
        self.receiver = Receiver(free_port(), self.folder / "receiver.jsonl")
        self.load = None
        self.settings = {"seed": seed, "rate": rate, "batch": batch, "spread_s": spread_s}
        self.cluster = kind(self.folder, self.events, is_synchronous=is_synchronous, has_small_disk="disk" in names,
                            has_clocks="clock" in names, heartbeat_timeout=heartbeat_timeout)

    def start(self):
        self.cluster.start()
        for server in self.cluster.primaries():
            server.psql(load.BOOKS)
        for name, spec in load.TYPES.items():
            if spec["handler"]["kind"] == "webhook":
                spec = {**spec, "handler": {**spec["handler"], "url": self.receiver.url}}
            status, reply = self.cluster.nodes[0].get(f"/v1/types/{name}", "PUT", spec)
            if status not in (200, 201):
                raise RuntimeError(f"type {name}: {status} {reply}")
            self.events.write("type", **load.describe(name, spec))
        self.load = load.LoadProcess(ports=[node.port for node in self.cluster.nodes], path=self.folder / "load.jsonl",
                                     databases=self.cluster.business_databases(), **self.settings)
        self.started = time.time()

    def strike(self, struck, seconds):
        """Lets faults strike together, and waits until all is well again."""
        self.say(f"  {time.time() - self.started:6.1f} s  " + " + ".join(fault.name for fault in struck))
        on, failures = time.time(), []

        def strike_one(fault, rng):
            try:
                fault.strike(self.cluster, rng, seconds)
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
        for node in self.cluster.nodes:
            self.events.write("memory", node=node.name, mb=node.resident_mb(), t=time.time())
        for fault in struck:
            self.events.write("fault", name=fault.name, on=on, off=time.time(), loses_claims=fault.loses_claims,
                              repeats=fault.repeats)

    def strike_all(self, seconds):
        """Each fault once."""
        for name in self.rng.sample(sorted(self.names), len(self.names)):
            self.strike([faults.FAULTS[name]], seconds)
            time.sleep(PAUSE)

    def strike_for(self, minutes, seconds):
        until = time.monotonic() + minutes * 60
        for struck in faults.plan(self.rng, self.names):
            if time.monotonic() >= until:
                return
            self.strike(struck, seconds)
            time.sleep(PAUSE + self.rng.uniform(0, seconds))

    def finish(self):
        """Lets all come to its end, and judges. The checker, with its violations."""
        self.load.stop_creating()
        took = time.time() - self.started
        left = self.cluster.wait_until_at_rest()
        self.load.stop()
        self.receiver.stop()
        self.events.close()
        if left:
            self.say(f"{left} jobs have not ended")
        table = "".join(server.psql(ROWS, patience=600) for server in self.cluster.primaries())
        (self.folder / "rows.tsv").write_text(table)
        rows = map(row_of, table.splitlines())
        counts, witnessed, booked = collections.Counter(), {}, collections.Counter()
        for server in self.cluster.primaries():
            for type, status, n in (line.split("\t") for line in server.psql(COUNTS).splitlines()):
                counts[type, status] += int(n)
            witnessed.update(line.split("\t") for line in server.psql(WITNESSED).splitlines())
            for job_id, n in (line.split("\t") for line in server.psql(BOOKED).splitlines()):
                booked[job_id] += int(n)
        checker = judge.Checker(judge.History(history.read(self.folder)), rows, counts, witnessed, booked,
                                self.cluster.heartbeat_timeout)
        checker.check()
        self.report = Report(checker.history, checker, took)
        return checker

    def stop(self):
        if self.load:
            self.load.kill()
        self.receiver.stop()
        self.events.close()
        self.cluster.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def arguments():
    parser = argparse.ArgumentParser(prog="dev chaos", description="A cluster of real processes under faults.")
    parser.add_argument("--minutes", type=float, default=3, help="how long faults strike (3)")
    parser.add_argument("--seed", type=int, default=None, help="draws the faults (the time)")
    parser.add_argument("--faults", default=",".join(faults.FAULTS), help="names, separated by commas (all)")
    parser.add_argument("--rate", type=float, default=1000, help="jobs per second created in batches (1000)")
    parser.add_argument("--batch", type=int, default=200, help="jobs per batch (200)")
    parser.add_argument("--seconds", type=float, default=4, help="how long one fault lasts, about (4)")
    parser.add_argument("--heartbeat-timeout", type=int, default=5, help="of the nodes, in seconds (5)")
    parser.add_argument("--asynchronous", action="store_true", help="the standby lags: promotions lose jobs")
    parser.add_argument("--folder", type=pathlib.Path, help="for the history and the logs (a new one in /tmp)")
    parser.add_argument("--list", action="store_true", help="tells the faults there are")
    options = parser.parse_args()
    options.faults = [name for name in options.faults.split(",") if name]
    for name in options.faults:
        if name not in faults.FAULTS:
            parser.error(f"--faults: there is no {name}; --list tells which there are")
    if options.list:
        for fault in faults.FAULTS.values():
            print(f"{fault.name:<12}{fault.about}")
        sys.exit(0)
    if "clock" in options.faults and not FAKETIME.exists():
        parser.error(f"--faults: clock needs {FAKETIME}; scripts/install brings it")
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
        run.strike_for(options.minutes, options.seconds)
        print("The faults are over; waiting until all is at rest")
        checker = run.finish()
        print()
        run.report.print()
        print("memory of the nodes: " + ", ".join(f"{node.resident_mb()} MB" for node in run.cluster.nodes))
    print()
    judge.print_violations(checker.violations)
    broken = collections.Counter(violation.invariant for violation in checker.violations)
    print(f"{sum(broken.values())} promises broken: {dict(broken)}" if broken else "Every promise was kept.")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
