"""The callers: create, cancel, move and consume jobs over REST or SQL, and write down what they asked and heard.

A process of its own, so that its pace does not depend on what is done to the cluster.
"""
import multiprocessing
import threading
import time

from caller import SHARES, Caller, Client, time_text
from consumers import Consumer, Holder
from history import Writer
from sql_callers import Business, KeyHolder


class Batcher(Caller):
    """Creates batches at the pace asked for."""

    number = 0

    def work(self):
        size, interval = self.load.batch, self.load.batch * len(self.load.batchers) / self.load.rate
        began = time.monotonic()
        kinds, weights = zip(*SHARES.items())
        type = self.random.choices(kinds, weights)[0]
        now = time.time()
        jobs = []
        for _ in range(size):
            self.number += 1
            jobs.append((f"{self.name}-{self.number}", round(now + self.random.uniform(0, self.load.spread_s), 3)))
        if self.number // size % 2:
            made = self.create_each(type, jobs)
        else:
            made = [(job_id, key) for job_id, (key, _) in zip(self.create(type, jobs) or (), jobs)]
        self.load.remember(made[::20])
        self.is_over.wait(max(0.0, began + interval - time.monotonic()))


class Creator(Caller):
    """Creates single jobs, one after the other."""

    number = 0

    def work(self):
        self.number += 1
        at = round(time.time() + self.random.choice([0, 0.2, 1, 3, 6]) + self.random.random(), 3)
        job = (f"{self.name}-{self.number}", at)
        if ids := self.create(self.random.choice(["hook", "hook", "pull", "noop", "ledger", "few", "paced"]), [job]):
            self.load.remember([(ids[0], job[0])])
        self.is_over.wait(self.load.pause_s)


class Crowd(Caller):
    """Creates more jobs at once than the limits of their types let run, in waves."""

    # By type, how many jobs, and every how many turns: more than the checker allows, and on average fewer than may run.
    WAVES = {"few": (40, 1), "scarce": (20, 1), "paced": (350, 7)}
    number = 0

    def work(self):
        for type, (n, turns) in self.WAVES.items():
            if self.number % turns:
                continue
            now = round(time.time(), 3)
            jobs = [(f"{self.name}-{type}-{self.number}-{i}", now) for i in range(n)]
            self.create(type, jobs)
        self.number += 1
        self.is_over.wait(6)


class Changer(Caller):
    """Cancels, moves, runs and looks at jobs that were created lately, before and after they are due; retries some
    that are dead."""

    def __init__(self, load, name):
        super().__init__(load, name)
        self.twin = Client(load.ports, self.random.random())

    def work(self):
        known = self.load.some_job(self.random)
        if known is None:
            self.is_over.wait(0.1)
            return
        job_id, key = known
        self.random.choice([self.cancel, self.cancel_twice, self.move, self.run_now, self.look,
                            lambda _: self.cancel_together({"biz_id": key}, {job_id}),
                            lambda _: self.cancel_some(job_id), self.retry_dead])(job_id)
        self.is_over.wait(self.load.pause_s)

    def cancel_twice(self, job_id):
        """As two callers do at once: one of them may be told that it did."""
        other = threading.Thread(target=self.cancel, args=(job_id, self.twin))
        other.start()
        self.cancel(job_id)
        other.join()

    def cancel(self, job_id, client=None):
        sent, heard, answer, status, reply = (client or self.client).call("POST", f"/v1/jobs/{job_id}/cancel", {})
        result = None
        if answer == "ok":
            result = "cancelled"
        elif status == 409:
            answer, result = "ok", reply["result"]
        elif status == 404:
            answer, result = "ok", "not_found"
        self.history.write("cancel", b=sent, t=heard, answer=answer, id=job_id, result=result)
        if result == "finished":
            self.history.write("seen", b=sent, t=heard, id=job_id, status=reply["job"]["status"])

    def cancel_some(self, job_id):
        ids = {job_id, *(self.load.some_job(self.random)[0] for _ in range(3))}
        self.cancel_together({"job_ids": sorted(ids)}, ids)

    def cancel_together(self, body, ids):
        """By a business key, or by ids: `ids` are the jobs that this means."""
        sent, heard, answer, _, reply = self.client.call("POST", "/v1/jobs/cancel", body)
        told = {}
        if answer == "ok":
            for result in ("cancelled", "running", "finished", "not_found"):
                told |= {job_id: ("ok", result) for job_id in reply[result]}
            for result in ("locked", "unavailable", "in_doubt"):
                told |= {job_id: ("unknown", None) for job_id in reply.get(result, ())}
            # A key whose answer names no job has none, unless a database that is down may know of one.
            is_unknown = "job_ids" in body or told or reply.get("missing")
            rest = ("unknown", None) if is_unknown else ("ok", "not_found")
        else:
            rest = (answer, None)
        for job_id in ids | set(told):
            one, result = told.get(job_id, rest)
            self.history.write("cancel", b=sent, t=heard, answer=one, id=job_id, result=result)

    def retry_dead(self, _):
        """One of the newest jobs of webhooks that are dead."""
        _, _, answer, _, reply = self.client.call("GET", "/v1/jobs?biz_type=hook&status=dead&limit=20")
        dead = [job["job_id"] for job in reply["items"]
                if job["biz_id"].startswith(self.load.prefix)] if answer == "ok" else []
        if dead:
            job_id = self.random.choice(dead)
            sent, heard, answer, _, _ = self.client.call("POST", f"/v1/jobs/{job_id}/retry", {})
            self.history.write("retry", b=sent, t=heard, answer=answer, id=job_id)

    def move(self, job_id):
        at = round(time.time() + self.random.uniform(0, 5), 3)
        body = {"action_time": time_text(at)}
        sent, heard, answer, _, _ = self.client.call("POST", f"/v1/jobs/{job_id}/reschedule", body)
        self.history.write("move", b=sent, t=heard, answer=answer, id=job_id, at=at)

    def run_now(self, job_id):
        sent, heard, answer, _, _ = self.client.call("POST", f"/v1/jobs/{job_id}/run", {})
        self.history.write("move", b=sent, t=heard, answer=answer, id=job_id, at=sent)

    def look(self, job_id):
        sent, heard, answer, status, reply = self.client.call("GET", f"/v1/jobs/{job_id}")
        if answer == "ok":
            self.history.write("seen", b=sent, t=heard, id=job_id, status=reply["status"])
        elif status == 404:
            self.history.write("seen", b=sent, t=heard, id=job_id, status="not found")


class Halter(Caller):
    """Pauses a type for seconds, creates jobs of it meanwhile, and resumes it."""

    PAUSED_S, BETWEEN_S = 8, 2
    number = 0

    def work(self):
        sent, heard, answer, _, _ = self.client.call("POST", "/v1/types/halted/pause", {})
        self.create_some()
        self.is_over.wait(self.PAUSED_S)
        until = time.time()
        while not self.load.is_giving_up.is_set():
            if self.client.call("POST", "/v1/types/halted/resume")[2] == "ok":
                break
            self.load.is_giving_up.wait(0.1)
        if answer == "ok":
            self.history.write("paused", b=sent, t=heard, type="halted", until=until)
        self.create_some()
        self.is_over.wait(self.BETWEEN_S)

    def create_some(self):
        self.number += 1
        now = time.time()
        self.create_each("halted", [(f"{self.name}-{self.number}-{i}", round(now + i / 5, 3)) for i in range(40)])


class Load:
    """All callers. Thread: the main thread; `remember` and `some_job` any."""

    KEPT = 4000  # jobs that changers choose from

    def __init__(self, nodes, databases, path, seed, rate, batch, spread_s, prefix=""):
        self.nodes, self.ports = nodes, list(nodes)  # names by port
        self.seed, self.rate, self.batch, self.spread_s = seed, rate, batch, spread_s
        self.databases, self.prefix, self.pause_s = databases, prefix, 0.02
        self.history = Writer(path)
        self.is_over, self.is_giving_up, self.is_at_rest = (threading.Event() for _ in range(3))
        self.known, self.lock = [], threading.Lock()
        self.batchers = [None] * 3
        self.batchers = [Batcher(self, f"{prefix}batcher-{i}") for i in range(3)]
        self.creators = [Creator(self, f"{prefix}creator-{i}") for i in range(3)]
        self.creators += [Changer(self, f"{prefix}changer-{i}") for i in range(2)]
        self.creators += [Crowd(self, f"{prefix}crowd")]
        self.creators += [Business(self, f"{prefix}business-{i}") for i in range(2)]
        self.creators += [KeyHolder(self, f"{prefix}holder"), Halter(self, f"{prefix}halter")]
        self.consumers = [Consumer(self, f"consumer-{i}") for i in range(2)]
        self.consumers += [Holder(self, f"holder-{i}") for i in range(2)]

    def remember(self, jobs):
        with self.lock:
            self.known += jobs
            del self.known[:-self.KEPT]

    def some_job(self, rng):
        with self.lock:
            return rng.choice(self.known) if self.known else None

    def start(self):
        for caller in (*self.batchers, *self.creators, *self.consumers):
            caller.start()

    def stop_creating(self, patience):
        """The callers get the answers they still wait for."""
        self.is_over.set()
        deadline = time.monotonic() + patience
        for caller in (*self.batchers, *self.creators):
            caller.join(max(0.0, deadline - time.monotonic()))
        self.is_giving_up.set()
        for caller in (*self.batchers, *self.creators):
            caller.join()

    def stop(self):
        self.is_at_rest.set()
        for consumer in self.consumers:
            consumer.join()
        self.history.close()


def serve(settings, commands):
    load = Load(**settings)
    load.start()
    commands.send("ready")
    commands.recv()
    load.stop_creating(60)
    commands.send("created")
    commands.recv()
    load.stop()
    commands.send("stopped")


class LoadProcess:
    """The load, as the process that started it sees it."""

    def __init__(self, **settings):
        context = multiprocessing.get_context("spawn")
        self.commands, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(settings, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.commands.recv()

    def stop_creating(self):
        self.commands.send("over")
        self.commands.recv()

    def stop(self):
        self.commands.send("rest")
        self.commands.recv()
        self.process.join()

    def kill(self):
        self.process.kill()
