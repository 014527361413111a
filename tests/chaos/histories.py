"""The lines of small histories, as the tests of the checker write them."""
from checker import Row
from faults import FAULTS

TYPES = [{"e": "type", "name": "noop", "kind": "noop", "ttr": 5.0, "retry": 1.0, "max_attempts": 3},
         {"e": "type", "name": "hook", "kind": "webhook", "ttr": 5.0, "retry": 1.0, "max_attempts": 3},
         {"e": "type", "name": "pull", "kind": "pull", "ttr": 5.0, "retry": 1.0, "max_attempts": 3}]


def create(key, job_id, type="hook", at=10.0, b=1.0, answer="ok"):
    ids = [job_id] if answer == "ok" else None
    return {"e": "create", "b": b, "t": b + 0.1, "answer": answer, "type": type, "keys": [key], "at": [at], "ids": ids}


def start(job_id, t, attempt=1, answer="done", **more):
    return {"e": "start", "t": t, "id": job_id, "attempt": attempt, "answer": answer, **more}


def places(t, *databases):
    """In which databases shards 0 and 1 live."""
    return {"e": "places", "t": t, "places": databases}


def lease(job_id, token, claimed, attempt=1, type="pull"):
    items = [[job_id, token, claimed + 5, attempt]]
    return {"e": "lease", "b": claimed, "t": claimed + 0.01, "type": type, "items": items}


def settle(job_id, token, b, kind="ack", result="ok", **more):
    items = [[job_id, token, result]]
    return {"e": "settle", "b": b, "t": b + 0.01, "answer": "ok", "kind": kind, "items": items, **more}


def cancel(job_id, b, result="cancelled", answer="ok"):
    return {"e": "cancel", "b": b, "t": b + 0.1, "answer": answer, "id": job_id, "result": result}


def move(job_id, b, at, answer="ok", took=0.1):
    return {"e": "move", "b": b, "t": b + took, "answer": answer, "id": job_id, "at": at}


def retry(job_id, b, answer="ok"):
    return {"e": "retry", "b": b, "t": b + 0.1, "answer": answer, "id": job_id}


def seen(job_id, b, status):
    return {"e": "seen", "b": b, "t": b + 0.1, "id": job_id, "status": status}


def fault(on, off, name="kill", **more):
    return {"e": "fault", "name": name, "on": on, "off": off, "repeats": FAULTS[name].repeats,
            **more}


def row(job_id, key="k", type="hook", status="done", attempts=1, at=10.0, started=10.1, **more):
    more.setdefault("finished_at", None if status == "pending" else 100.0)
    return Row(job_id, key, type, status, attempts, 3, at, started, **more)


DIED = [create("k", "1"), *(start("1", 9 + n * 1.1, n, "fail") for n in (1, 2, 3)), seen("1", 13, "dead")]
