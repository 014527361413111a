"""Consumers of pull jobs."""
import time
import zlib

from caller import TYPES, Caller, time_of

LATE_S = TYPES["pull"]["ttr_ms"] / 1000 + 0.5  # after its lease, what is settled late
HELD_S = 2.0  # for so long the next attempt is held: it is leased when the late result of the one before comes
LATE_KINDS = ("ack", "nack", "extend")


class Consumer(Caller):
    """Leases jobs; acknowledges most, refuses some, extends some, forgets some. It is late with some, and holds their
    next attempt."""

    def __init__(self, load, name):
        super().__init__(load, name)
        self.is_over, self.later = load.is_at_rest, []

    def lease(self, type):
        sent, heard, answer, _, reply = self.client.call(
            "POST", f"/v1/types/{type}/lease", {"max": 100, "wait_ms": 1000}, timeout=5)
        self.history.write("poll", b=sent, t=heard, type=type, node=self.load.nodes[self.client.port])
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
            drawn, lot = divmod(zlib.crc32(item["biz_id"].encode()), 100)
            if lot == 0 and item["attempts"] == 1:
                self.later.append((time.monotonic() + LATE_S, LATE_KINDS[drawn % len(LATE_KINDS)], lease))
            elif lot == 0 and item["attempts"] == 2:
                self.later.append((time.monotonic() + HELD_S, "ack", lease))
            elif item["attempts"] > 1:
                acks.append(lease)
            elif lot > 1:  # who draws 1 is forgotten
                (nacks if lot < 5 else kept if lot < 8 else acks).append(lease)
        if self.settle("extend", kept):
            acks += kept
        self.settle("ack", acks)
        self.settle("nack", nacks)
        now = time.monotonic()
        # Each in a request of its own: one that names a job twice, with the tokens of two attempts, is refused.
        for kind, lease in [(kind, lease) for when, kind, lease in self.later if when <= now]:
            self.settle(kind, [lease])
        self.later = [one for one in self.later if one[0] > now]

    def settle(self, kind, leases, delay_ms=700, ttr_ms=3000):
        if not leases:
            return False
        items = [{"job_id": job_id, "lease_token": token, **({"delay_ms": delay_ms} if kind == "nack" else {})}
                 for job_id, token in leases]
        body = {"items": items, **({"ttr_ms": ttr_ms} if kind == "extend" else {})}
        sent, heard, answer, _, reply = self.client.call("POST", f"/v1/leases/{kind}", body)
        # Of a database that did not answer: "unavailable" or "in_doubt".
        results = [item["result"] if item["result"] in ("ok", "stale") else "unknown"
                   for item in reply["items"]] if answer == "ok" else [answer] * len(leases)
        self.history.write("settle", b=sent, t=heard, answer=answer, kind=kind,
                           items=[[*lease, result] for lease, result in zip(leases, results)],
                           **({"delay": delay_ms / 1000} if kind == "nack" else {}),
                           **({"until": heard + ttr_ms / 1000} if kind == "extend" else {}))
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
