"""The rules for what callers and consumers were told: it stays true, and is no refusal without a reason. Also for
attempts that nobody saw. Part of the checker."""
import math

from cluster_rules import MARGIN, TERMINAL

AHEAD = 5.0  # s: a clock of a database steps forward by so much at most (faults.py)


class ToldRules:
    """Used by `Checker`, which has the history, the rows and `broken`."""

    # ---- I10: a job that a cancel found finished is finished

    def check_finished(self, job_id):
        row = self.rows.get(job_id)
        told = [cancel for cancel in self.cancels_of(job_id)
                if cancel["answer"] == "ok" and cancel["result"] == "finished"]
        if row is None or not told:
            return
        cancel = min(told, key=lambda cancel: cancel["t"])
        at = cancel["t"]
        if self.history.is_retried(job_id, cancel["b"], math.inf) or self.may_have_lost(job_id, cancel["b"], math.inf):
            return
        for run in self.history.runs.get(job_id, ()):
            if run.claimed > at + MARGIN + self.hastened(job_id, at - AHEAD, at):
                self.broken("I10", "started after it had finished", job_id, f"{run.claimed - at:.3f} s after")
        # Of a row that is not terminal check_row tells.
        if row.status in TERMINAL and row.finished_at > at + MARGIN + self.hastened(job_id, at - AHEAD, at):
            self.broken("I10", "finished after it had finished", job_id, f"{row.finished_at - at:.3f} s after")

    # ---- I5: who has the lease is believed

    def check_stale(self, job_id, settles):
        runs = {run.token: run for run in self.history.runs.get(job_id, ())}
        for settle in settles:
            run = runs.get(settle["token"])
            if settle["result"] != "stale" or run is None or is_settled(settle, settles):
                continue
            ends = run.ends_after - MARGIN - self.hastened(job_id, run.at, settle["t"])
            if run.at <= settle["b"] and settle["t"] < ends and not self.may_have_ended(job_id, run.at, settle["t"]):
                self.broken("I5", "stale within its lease", job_id,
                            f"{settle['kind']} {ends - settle['t']:.3f} s before its end")

    def may_have_ended(self, job_id, begin, end):
        """Whether a fault may have ended a lease meanwhile, before its time."""
        return any(fault.get("loses_claims") or "within" in fault["repeats"]
                   for fault in self.faults_of(job_id, None, begin, end))

    def may_have_lost(self, job_id, begin, end):
        return any(fault.get("loses_claims") for fault in self.faults_of(job_id, None, begin, end))

    # ---- I10: the deadline is the one that was acknowledged last

    def check_moved(self, row):
        """Run now and retry leave the deadline as it is. A key with several ids has a job that was moved under any of
        them, and in an order that nobody was told."""
        asked = self.history.asked.get(row.biz_id)
        if asked is None or set(asked.ids) - {row.job_id}:
            return
        moves = [move for move in self.history.moves.get(row.job_id, ())
                 if move["answer"] != "refused" and not is_run_now(move)]
        last = max((move for move in moves if move["answer"] == "ok"), key=lambda move: move["b"], default=None)
        if last is None or any(move["answer"] == "unknown" or move["t"] >= last["b"]
                               for move in moves if move is not last):
            return
        if abs(row.action_time - last["at"]) > MARGIN and not self.may_have_lost(row.job_id, last["b"], math.inf):
            self.broken("I10", "not the deadline that it was moved to", row.job_id,
                        f"{row.action_time - last['at']:.3f} s off")

    # ---- I6: an attempt counts because it started, or because a fault kept it from its handler

    def check_unseen(self, row):
        asked = self.history.asked.get(row.biz_id)
        if (self.history.types[row.type]["kind"] != "webhook" or row.status not in TERMINAL or asked is None
                or row.job_id in self.history.retries):
            return
        unseen = set(range(1, row.attempts + 1)) - {run.attempt for run in self.history.runs.get(row.job_id, ())}
        if not unseen:
            return
        begin = min([asked.at, row.started_at or math.inf,
                     *(move["at"] for move in self.history.moves.get(row.job_id, ()))])
        if not any(fault["repeats"] or fault.get("loses_claims")
                   for fault in self.faults_of(row.job_id, None, begin, row.finished_at)):
            self.broken("I6", "an attempt counted that no handler saw", row.job_id,
                        f"attempts {sorted(unseen)} of {row.attempts}")


def is_settled(settle, settles):
    """Whether another ack or nack of this token may have ended its lease before."""
    return any(other is not settle and other["token"] == settle["token"] and other["kind"] != "extend"
               and other["result"] in ("ok", "unknown") and other["b"] <= settle["t"] for other in settles)


def is_run_now(move):
    return move["at"] == move["b"]
