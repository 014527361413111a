"""The callers: create, cancel, move and consume jobs over REST or SQL, and write down what they asked and heard.

A process of its own, so that its pace does not depend on what is done to the cluster.
"""
import datetime
import http.client
import json
import multiprocessing
import random
import socket
import subprocess
import threading
import time
import zlib

from history import Writer
from postgres import BIN

TYPES = {
    "noop": {"handler": {"kind": "noop"}},
    "hook": {"handler": {"kind": "webhook", "url": None, "timeout_ms": 2000}, "ttr_ms": 3000, "max_attempts": 3,
             "backoff": {"delays_ms": [500]}},
    "pull": {"handler": {"kind": "pull"}, "ttr_ms": 3000, "max_attempts": 8, "backoff": {"delays_ms": [500]}},
    "scarce": {"handler": {"kind": "pull"}, "ttr_ms": 3000, "max_attempts": 8, "backoff": {"delays_ms": [500]},
               "max_running": 5},
    "ledger": {"handler": {"kind": "sql", "function": "public.book"}, "ttr_ms": 3000, "max_attempts": 8,
               "backoff": {"delays_ms": [500]}},
    "few": {"handler": {"kind": "webhook", "url": None, "timeout_ms": 2000}, "ttr_ms": 3000, "max_attempts": 8,
            "backoff": {"delays_ms": [500]}, "max_running": 5},
    "paced": {"handler": {"kind": "webhook", "url": None, "timeout_ms": 2000}, "ttr_ms": 3000, "max_attempts": 8,
              "backoff": {"delays_ms": [500]}, "rate_per_s": 20},
    "halted": {"handler": {"kind": "webhook", "url": None, "timeout_ms": 2000}, "ttr_ms": 3000, "max_attempts": 8,
               "backoff": {"delays_ms": [500]}},
}
# The business's own books: what a `sql` handler does, in the transaction that ends its job. Some fail once.
BOOKS = """CREATE TABLE public.witness (biz_id text, job_id bigint);
CREATE TABLE public.booked (job_id bigint, attempt integer);
CREATE FUNCTION public.book(job tocsin.job) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.booked (job_id, attempt) VALUES (job.job_id, job.attempts);
  IF hashtext(job.biz_id) % 20 = 0 AND job.attempts = 1 THEN
    RAISE EXCEPTION 'the books are closed';
  END IF;
  RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION public.book FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.book TO tocsin_handler;
GRANT USAGE ON SCHEMA public TO tocsin_handler;
GRANT INSERT ON public.booked TO tocsin_handler;"""
SHARES = {"noop": 0.84, "hook": 0.08, "pull": 0.08}  # of the batches' jobs
PSQL = str(BIN / "psql")
TIMEOUT_S = 8.0  # after which a caller gives up and knows nothing


def describe(name, spec):
    return {"name": name, "kind": spec["handler"]["kind"], "ttr": spec.get("ttr_ms", 30000) / 1000, "retry": 0.5,
            "max_attempts": spec.get("max_attempts", 16), "max_running": spec.get("max_running"),
            "rate": spec.get("rate_per_s")}


def time_text(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(timespec="milliseconds")


def time_of(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def body_of(type, key, at):
    return {"biz_type": type, "biz_id": key, "action_time": time_text(at), "idempotency_key": key}


def answer_of_item(item):
    """The answer to one item of a partial batch, as in the history."""
    if "error" not in item:
        return "ok"
    return "refused" if item["error"]["status"] < 500 and item["error"]["status"] != 429 else "unknown"


class Client:
    """Speaks to the nodes in turn. Thread: owner only."""

    def __init__(self, ports, seed):
        self.ports, self.random, self.connections = ports, random.Random(seed), {}

    def call(self, method, path, body=None, timeout=TIMEOUT_S):
        """(sent, heard, answer, status, JSON); answer as in the history."""
        port = self.random.choice(self.ports)
        payload = None if body is None else json.dumps(body)
        sent = time.time()
        try:
            connection = self.connections.get(port)
            if connection is None:
                connection = self.connections[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sock.settimeout(timeout)
            connection.request(method, path, payload, {"content-type": "application/json"})
            reply = connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException, AttributeError):
            if connection := self.connections.pop(port, None):
                connection.close()
            return sent, time.time(), "unknown", 0, None
        answer = "ok" if reply.status < 300 else "refused" if reply.status < 500 else "unknown"
        return sent, time.time(), answer, reply.status, json.loads(text) if text else None


class Caller(threading.Thread):
    """One caller with connections of its own; `work` is done again and again until `stop`."""

    def __init__(self, load, name):
        super().__init__(name=name, daemon=True)
        self.load, self.history, self.random = load, load.history, random.Random(f"{load.seed} {name}")
        self.client = Client(load.ports, self.random.random())
        self.is_over = load.is_over

    def run(self):
        while not self.is_over.is_set():
            self.work()

    def create(self, type, jobs):
        """Creates jobs [(key, at)], again and again until the answer is known; their ids, or None when refused."""
        body = [body_of(type, *job) for job in jobs]
        while not self.load.is_giving_up.is_set():
            if len(jobs) == 1:
                sent, heard, answer, status, reply = self.client.call("POST", "/v1/jobs", body[0])
                ids = [reply["job_id"]] if answer == "ok" else None
            else:
                sent, heard, answer, status, reply = self.client.call("POST", "/v1/jobs/batch", {"jobs": body})
                ids = [item["job_id"] for item in reply["items"]] if answer == "ok" else None
            if status == 429:
                answer = "unknown"  # turned away: asked again
            self.told(sent, heard, answer, type, jobs, ids)
            if answer == "ok":
                return ids
            if answer == "refused":
                self.history.write("note", t=heard, text=f"create refused: {status} {reply}")
                return None
            self.load.is_giving_up.wait(0.1)
        return None

    def create_each(self, type, jobs):
        """Creates jobs in partial batches, each by itself, until every answer is known; [(id, key)] of those that are
        there. One item of the first batch is refused."""
        wrong = [(f"{jobs[0][0]}-wrong", jobs[0][1])]
        made = []
        while jobs and not self.load.is_giving_up.is_set():
            body = [body_of(type, *job) for job in jobs]
            body += [{**body_of(type, *job), "action_time": "?"} for job in wrong]
            sent, heard, answer, status, reply = self.client.call("POST", "/v1/jobs/batch?partial=true", {"jobs": body})
            if answer != "ok":
                self.told(sent, heard, "unknown" if status == 429 else answer, type, jobs + wrong, None)
                if answer == "refused" and status != 429:
                    self.history.write("note", t=heard, text=f"partial batch refused: {status} {reply}")
                    return made
            else:
                by_answer = {"ok": [], "refused": [], "unknown": []}
                for job, item in zip(jobs + wrong, reply["items"]):
                    by_answer[answer_of_item(item)].append((job, item.get("job_id")))
                for each, items in by_answer.items():
                    if items:
                        self.told(sent, heard, each, type, [job for job, _ in items],
                                  [job_id for _, job_id in items] if each == "ok" else None)
                made += [(job_id, key) for (key, _), job_id in by_answer["ok"]]
                jobs, wrong = [job for job, _ in by_answer["unknown"]], []
            self.load.is_giving_up.wait(0.1 if jobs else 0)
        return made

    def told(self, sent, heard, answer, type, jobs, ids):
        self.history.write("create", b=sent, t=heard, answer=answer, type=type, keys=[key for key, _ in jobs],
                           at=[at for _, at in jobs], ids=ids)


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


class Business(Caller):
    """Does business by SQL: creates, cancels and moves jobs, of whatever shards, in transactions with rows of its own
    that name them. Some have keys and are asked for again, some transactions are rolled back."""

    number = 0

    def __init__(self, load, name):
        super().__init__(load, name)
        self.orders = []  # (database, job_id, biz_id) that may still be pending

    def work(self):
        self.random.choice([self.create_some, self.create_some, self.create_some, self.change_its_mind, self.ask_again,
                            self.cancel_one, self.cancel_key, self.move_one])()
        self.is_over.wait(self.load.pause_s)

    def run_sql(self, dsn, sql):
        """(answer, lines): refused if the server said why not, unknown if nobody knows what became of it."""
        try:
            done = subprocess.run([PSQL, "-qXAt", "-v", "ON_ERROR_STOP=1", "-c", sql, dsn], text=True,
                                  capture_output=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "unknown", []
        return self.answer_of(done.returncode, done.stderr), done.stdout.split()

    @staticmethod
    def answer_of(code, errors):
        # psql: 1 an error that the server told, 2 a connection that was lost, 3 an error of a script
        lost = code == 2 or "connection" in errors or "terminating" in errors
        return "ok" if code == 0 else "unknown" if lost else "refused"

    def orders_of(self, n, pauses):
        self.number += 1
        now = time.time()
        return [(f"sql-{self.name}-{self.number}-{i}", round(now + self.random.choice(pauses), 3)) for i in range(n)]

    def sql_of(self, jobs, type, key="NULL"):
        values = ", ".join(f"('{biz_id}', '{time_text(at)}'::timestamptz)" for biz_id, at in jobs)
        return (f"INSERT INTO public.witness (biz_id, job_id) SELECT k, tocsin.create_job('{type}', k, at, NULL, {key})"
                f" FROM (VALUES {values}) v (k, at) RETURNING job_id")

    def create_some(self):
        began, dsn = time.time(), self.random.choice(self.load.databases)
        type, jobs = self.random.choice(["noop", "noop", "ledger"]), self.orders_of(5, [0, 0.3, 2, 4])
        answer, ids = self.run_sql(dsn, self.sql_of(jobs, type))
        # A refusal in mid-flight (a shard that moves, a crash) is rolled back as a whole.
        self.told(began, time.time(), answer, type, jobs, ids if answer == "ok" else None)
        if answer == "ok":
            self.orders = (self.orders + [(dsn, job_id, key) for job_id, (key, _) in zip(ids, jobs)])[-100:]

    def change_its_mind(self):
        """Nothing of a transaction that is rolled back may ever be seen: neither its jobs nor its cancels."""
        began, dsn = time.time(), self.random.choice(self.load.databases)
        jobs = self.orders_of(2, [0, 0.5])
        cancel = f"SELECT tocsin.cancel_job({self.orders[-1][1]});" if self.orders and self.orders[-1][0] == dsn else ""
        self.run_sql(dsn, f"BEGIN; {self.sql_of(jobs, 'noop')}; {cancel} ROLLBACK")
        self.told(began, time.time(), "refused", "noop", jobs, None)

    def ask_again(self):
        """With a key, and once more by whatever way: one job, and every id that was answered stands for it."""
        jobs = self.orders_of(1, [0.3, 2])
        if not self.create_with_key(jobs, self.random.choice(self.load.databases)):
            return
        if dsn := self.random.choice([*self.load.databases, None]):
            self.create_with_key(jobs, dsn)
        else:
            self.create("noop", jobs)

    def create_with_key(self, jobs, dsn):
        """Again and again until the answer is known; whether they were created."""
        while not self.load.is_giving_up.is_set():
            began = time.time()
            answer, ids = self.run_sql(dsn, self.sql_of(jobs, "noop", "k"))
            self.told(began, time.time(), answer, "noop", jobs, ids if answer == "ok" else None)
            if answer != "unknown":
                return answer == "ok"
            self.load.is_giving_up.wait(0.1)
        return False

    def cancel_key(self):
        if not self.orders:
            return
        dsn, job_id, key = self.orders.pop(self.random.randrange(len(self.orders)))
        began = time.time()
        answer, lines = self.run_sql(dsn, f"SELECT job_id, replace(result, ' ', '_') FROM tocsin.cancel_jobs('{key}')")
        results = [line.split("|") for line in lines] or [[job_id, "not_found"]]
        for told, result in results if answer == "ok" else [[job_id, None]]:
            self.history.write("cancel", b=began, t=time.time(), answer=answer, id=told, result=result)

    def move_one(self):
        if not self.orders:
            return
        dsn, job_id, _ = self.random.choice(self.orders)
        began, at = time.time(), round(time.time() + self.random.uniform(0, 5), 3)
        answer, lines = self.run_sql(dsn, f"SELECT tocsin.reschedule_job({job_id}, '{time_text(at)}')")
        if answer == "ok" and lines != ["rescheduled"]:
            answer = "refused"
        self.history.write("move", b=began, t=time.time(), answer=answer, id=job_id, at=at)

    def cancel_one(self):
        if not self.orders:
            return
        dsn, job_id, _ = self.orders.pop(self.random.randrange(len(self.orders)))
        began = time.time()
        answer, lines = self.run_sql(dsn, f"SELECT tocsin.cancel_job({job_id})")
        result = lines[0] if answer == "ok" and lines else None
        self.history.write("cancel", b=began, t=time.time(), answer=answer, id=job_id, result=result)


class KeyHolder(Business):
    """Creates a job with a key in a transaction that stays open for seconds, while others ask for the same key."""

    def work(self):
        self.number += 1
        # No "sql-": the job may be that of a caller by REST, whose transaction is not this one.
        jobs = [(f"{self.name}-{self.number}", round(time.time() + self.random.choice([0.5, 2, 4]), 3))]
        is_held = threading.Event()
        holder = threading.Thread(target=self.hold, args=(jobs, self.random.choice(self.load.databases), is_held))
        holder.start()
        is_held.wait()
        for ask in self.random.sample([lambda: self.create("noop", jobs), lambda: self.create_each("noop", jobs),
                                       lambda: self.create_with_key(jobs, self.random.choice(self.load.databases))], 2):
            ask()
        holder.join()
        self.is_over.wait(1)

    def hold(self, jobs, dsn, is_held):
        began, is_kept = time.time(), self.random.random() < 0.5
        with subprocess.Popen([PSQL, "-qXAt", "-v", "ON_ERROR_STOP=1", dsn], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as psql:
            killer = threading.Timer(TIMEOUT_S, psql.kill)  # then nobody knows
            killer.start()
            try:
                psql.stdin.write(f"BEGIN; {self.sql_of(jobs, 'noop', 'k')};\n")
                psql.stdin.flush()
                job_id = psql.stdout.readline().strip()
                is_held.set()
                self.is_over.wait(self.random.uniform(0.3, 3))
                psql.stdin.write("COMMIT;\n" if is_kept else "ROLLBACK;\n")
                _, errors = psql.communicate()
            except BrokenPipeError:
                errors = "connection"
            finally:
                is_held.set()
                killer.cancel()
        answer = self.answer_of(psql.returncode, errors) if psql.returncode >= 0 else "unknown"
        if not is_kept:
            answer = "refused"
        self.told(began, time.time(), answer, "noop", jobs, [job_id] if answer == "ok" else None)


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


class Consumer(Caller):
    """Leases jobs; acknowledges most, refuses some, extends some, forgets some, is late with some."""

    def __init__(self, load, name):
        super().__init__(load, name)
        self.is_over, self.late = load.is_at_rest, []

    def lease(self, type):
        sent, heard, answer, _, reply = self.client.call(
            "POST", f"/v1/types/{type}/lease", {"max": 100, "wait_ms": 1000}, timeout=5)
        if answer != "ok":
            self.is_over.wait(0.2)
            return []
        items = reply["items"]
        if items:
            self.history.write("lease", b=sent, t=heard, type=type, node=items[0]["node"], items=[
                [item["job_id"], item["lease_token"], time_of(item["lease_until"]), item["attempts"]]
                for item in items])
        return items

    def work(self):
        acks, nacks, kept = [], [], []
        for item in self.lease("pull"):
            lease = (item["job_id"], item["lease_token"])
            lot = zlib.crc32(item["biz_id"].encode()) % 100 if item["attempts"] == 1 else 99
            if lot == 0:
                self.late.append((time.monotonic() + 3.5, lease))
            elif lot > 1:  # who draws 1 is forgotten
                (nacks if lot < 5 else kept if lot < 8 else acks).append(lease)
        if kept and self.settle("extend", kept, ttr_ms=3000):
            acks += kept
        self.settle("ack", acks)
        self.settle("nack", nacks, delay_ms=700)
        now = time.monotonic()
        self.settle("ack", [lease for when, lease in self.late if when <= now])
        self.late = [(when, lease) for when, lease in self.late if when > now]

    def settle(self, kind, leases, **more):
        if not leases:
            return False
        items = [{"job_id": job_id, "lease_token": token, **({"delay_ms": more["delay_ms"]} if kind == "nack" else {})}
                 for job_id, token in leases]
        body = {"items": items, **({"ttr_ms": more["ttr_ms"]} if kind == "extend" else {})}
        sent, heard, answer, _, reply = self.client.call("POST", f"/v1/leases/{kind}", body)
        # Of a database that did not answer: "unavailable" or "in_doubt".
        results = [item["result"] if item["result"] in ("ok", "stale") else "unknown"
                   for item in reply["items"]] if answer == "ok" else [answer] * len(leases)
        self.history.write("settle", b=sent, t=heard, answer=answer, kind=kind,
                           items=[[*lease, result] for lease, result in zip(leases, results)],
                           **({"delay": more["delay_ms"] / 1000} if kind == "nack" else {}),
                           **({"until": heard + more["ttr_ms"] / 1000} if kind == "extend" else {}))
        return True


class Holder(Consumer):
    """Of a type with a limit: holds what it has leased for a moment, and forgets some. It extends nothing: what is
    extended at another node than its own may be leased beyond the limit (ADR 0018)."""

    def work(self):
        items = self.lease("scarce")
        if items:
            self.is_over.wait(0.2)
        self.settle("ack", [(item["job_id"], item["lease_token"]) for item in items
                            if item["attempts"] > 1 or zlib.crc32(item["biz_id"].encode()) % 20])


class Load:
    """All callers. Thread: the main thread; `remember` and `some_job` any."""

    KEPT = 4000  # jobs that changers choose from

    def __init__(self, ports, databases, path, seed, rate, batch, spread_s, prefix=""):
        self.ports, self.seed, self.rate, self.batch, self.spread_s = ports, seed, rate, batch, spread_s
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
