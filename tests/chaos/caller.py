"""What the callers have in common: their types of jobs, their requests, and how an unknown create becomes known."""
import datetime
import http.client
import json
import random
import socket
import threading
import time

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
        self.port = None  # that the last call asked

    def call(self, method, path, body=None, timeout=TIMEOUT_S):
        """(sent, heard, answer, status, JSON); answer as in the history."""
        port = self.port = self.random.choice(self.ports)
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
