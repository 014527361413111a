"""Judges a history against the final tables: which promises of docs/invariants.md were broken, and what came twice.

The checker believes the witnesses of the history alone, and of the system only its final rows. It knows nothing of how
the system works, but what it promises to the outside. An unknown answer is never taken for a failure: both outcomes
must then fit.
"""
import collections
import dataclasses
import math

from cluster_rules import CLAIM_TO_START, MARGIN, TERMINAL, ClusterRules
from job_history import shard_of
from told_rules import ToldRules

# s: an outcome is on disk so soon after its answer, or a fault keeps it away: a call that takes as long is given up and
# repeated on a new session (ADR 0051, for leases of 3 s).
WRITTEN_IN = 1.0
UNSEEN = ("noop", "sql")  # kinds of handlers whose starts nobody writes down


@dataclasses.dataclass(slots=True)
class Row:
    """A job as the tables hold it when all is at rest. Times in seconds, None where there is none."""
    job_id: str
    biz_id: str
    type: str
    status: str
    attempts: int
    max_attempts: int
    action_time: float
    started_at: float | None = None
    finished_at: float | None = None


@dataclasses.dataclass(frozen=True)
class Violation:
    invariant: str
    what: str
    job_id: str | None
    text: str


class Checker(ClusterRules, ToldRules):
    """Compares a history with the rows that it left. `counts`: what tocsin.job_stats says, by (type, status).

    `witnessed`: of the jobs created by SQL, what was written in the same transactions, job_ids by biz_id. `booked`: how
    often the function of a `sql` job has written into the business's own table, by job_id. `heartbeat_timeout`: of the
    nodes, in seconds. `stands_for`: the job that REST finds under an id, None if it finds none; of the ids that
    `ids_to_ask` names.
    """

    def __init__(self, history, rows, counts=None, witnessed=None, booked=None, heartbeat_timeout=None,
                 stands_for=None):
        self.history, self.counts, self.witnessed, self.booked = history, counts, witnessed, booked
        self.heartbeat_timeout, self.stands_for = heartbeat_timeout, stands_for or {}
        self.rows = {}
        self.acknowledged = {job_id for asked in history.asked.values() for job_id in asked.ids}
        self.violations = []
        self.duplicates = collections.Counter()  # by the names of the faults that explain them
        self.done_and_dead = collections.Counter()  # the same
        self.most_at_once = collections.Counter()  # jobs of each type with a limit
        self.takeovers = collections.Counter()  # of each death of a node that was judged, the jobs that judged it
        self.left_behind = 0  # jobs that ran on a node when it stopped, and whose next start was judged
        # Results of an attempt that came, or can have come, while the next one ran.
        self.late_while_running = self.frozen_while_running = 0
        for row in rows:
            if row.job_id in self.rows:
                self.broken("I10", "two rows of one job", row.job_id,
                            f"{row.status} and {self.rows[row.job_id].status}")
            self.rows[row.job_id] = row

    def check(self):
        self.check_creates()
        self.check_witnesses()
        for row in self.rows.values():
            self.check_row(row)
            self.check_moved(row)
            self.check_unseen(row)
        for job_id in set(self.history.cancels) | set(self.history.seen) | set(self.history.retries):
            self.check_answers(job_id)
            self.check_finished(job_id)
        for job_id, runs in self.history.runs.items():
            self.check_runs(job_id, runs)
        for job_id, settles in self.history.settles.items():
            self.check_settles(job_id, settles)
            self.check_stale(job_id, settles)
        self.check_counts()
        self.check_snapshots()
        self.check_books()
        self.check_limits()
        self.check_pauses()
        self.check_takeovers()
        self.check_left_behind()
        self.check_memory()
        return self.violations

    def broken(self, invariant, what, job_id, text):
        self.violations.append(Violation(invariant, what, job_id, text))

    # ---- I1, I10: what was acknowledged is there, once, and nothing else

    def check_creates(self):
        by_key = collections.defaultdict(list)
        for row in self.rows.values():
            by_key[row.biz_id].append(row)
        for key, asked in self.history.asked.items():
            known = [job_id for job_id in asked.ids if self.key_of(self.job_of(job_id)) == key]
            if asked.ids and not known:
                self.broken("I1", "acknowledged job lost", asked.ids[0], f"acknowledged at {asked.acknowledged:.3f}")
            else:
                for job_id in set(asked.ids) - set(known):
                    self.broken("I10", "an id that was answered is no job", job_id, f"biz_id {key}")
            rows = by_key.get(key, ())
            if len(rows) > 1:
                self.broken("I10", "one key, two jobs", rows[0].job_id, f"and {rows[1].job_id}")
        for key, rows in by_key.items():
            asked = self.history.asked.get(key)
            if asked is None:
                self.broken("I10", "a job that nobody asked for", rows[0].job_id, f"biz_id {key}")
            elif not asked.ids and not asked.is_unknown:
                self.broken("I10", "a refused job is there", rows[0].job_id, f"biz_id {key}")

    def key_of(self, job_id):
        return self.rows[job_id].biz_id if job_id in self.rows else None

    def job_of(self, job_id):
        """The job that a caller finds under this id."""
        return self.stands_for.get(job_id, job_id)

    def aliases(self):
        return sum(job is not None and job != job_id for job_id, job in self.stands_for.items())

    def check_witnesses(self):
        """A job and its transaction are there both, or neither."""
        if self.witnessed is None:
            return
        for key, ids in self.witnessed.items():
            for job_id in ids - set(self.history.asked[key].ids):  # of the others it is reported above
                if self.key_of(self.job_of(job_id)) != key:
                    self.broken("I1", "committed job lost", job_id, f"biz_id {key}")
        for row in self.rows.values():
            ids = self.witnessed.get(row.biz_id, ())
            if row.biz_id.startswith("sql-") and row.job_id not in map(self.job_of, ids):
                self.broken("I10", "a job without its transaction", row.job_id, f"biz_id {row.biz_id}")

    def check_row(self, row):
        if row.status not in TERMINAL:
            self.broken("I1", "has not ended", row.job_id, f"{row.status} after {row.attempts} attempts")
        if row.attempts > row.max_attempts:
            self.broken("I6", "attempts beyond the limit", row.job_id, f"{row.attempts} of {row.max_attempts}")
        kind = self.history.types[row.type]["kind"]
        runs = self.history.runs.get(row.job_id, ())
        if row.status == "done":
            if row.attempts < 1 or row.started_at is None or row.finished_at is None:
                self.broken("I10", "done without an attempt", row.job_id, f"{row.attempts} attempts")
            if kind not in UNSEEN and not any(run.answer == "done" for run in runs):
                self.broken("I1", "done, but no handler did it", row.job_id, f"{len(runs)} starts")
        if row.status == "dead" and row.attempts < row.max_attempts and not any(run.answer == "dead" for run in runs):
            self.broken("I6", "dead before its last attempt", row.job_id, f"{row.attempts} of {row.max_attempts}")
        cancels = self.cancels_of(row.job_id)
        if row.status == "cancelled" and not any(may_have(cancel, "cancelled") for cancel in cancels):
            self.broken("I10", "cancelled by nobody", row.job_id, "")
        if row.started_at is not None:
            self.check_time(row.job_id, row.started_at + MARGIN / 10, "by its own row")

    def cancels_of(self, job_id):
        return self.history.cancels.get(job_id, ())

    # ---- I2: never early

    def check_time(self, job_id, started, who):
        all_asked = [self.history.asked[key] for key in self.history.keys[job_id] | {self.key_of(job_id)}
                     if key in self.history.asked]
        if job_id not in self.rows or not all_asked:
            return
        changes = self.history.deadlines_of(job_id)
        earliest = min(earliest_time(asked.at, changes, started) for asked in all_asked)
        if started < earliest - self.hastened(job_id, started, started):
            self.broken("I2", "early", job_id, f"{(earliest - started) * 1000:.1f} ms, {who}")

    # ---- I3, I10: what callers were told stays true

    def check_answers(self, job_id):
        self.check_told(job_id)
        row = self.rows.get(job_id)
        status = row.status if row else None
        for cancel in self.cancels_of(job_id):
            if cancel["answer"] != "ok" or row is None:
                continue
            if cancel["result"] == "cancelled":
                if status != "cancelled":
                    self.broken("I3", "cancelled, and ended otherwise", job_id, f"{status}")
                for run in self.history.runs.get(job_id, ()):
                    if run.claimed > cancel["t"]:
                        self.broken("I3", "started after its cancel", job_id,
                                    f"{run.claimed - cancel['t']:.3f} s after")
            elif cancel["result"] == "not_found":
                self.broken("I10", "not found, and there", job_id, f"{status}")
        ended = None
        for seen in sorted(self.history.seen.get(job_id, ()), key=lambda seen: seen["b"]):
            if seen["status"] == "not found":
                if row:
                    self.broken("I10", "not found, and there", job_id, f"{status}")
            elif (ended and seen["status"] != ended["status"] and seen["b"] > ended["t"] and
                  not self.may_live_again(job_id, ended, seen["t"])):
                self.broken("I10", "changed after its end", job_id, f"{ended['status']}, then {seen['status']}")
            elif seen["status"] in TERMINAL:
                ended = seen
        if ended and row and row.status != ended["status"] and not self.may_live_again(job_id, ended, math.inf):
            self.broken("I10", "changed after its end", job_id, f"{ended['status']}, then {row.status}")
        self.check_retries(job_id, row)

    def may_live_again(self, job_id, ended, until):
        return ended["status"] == "dead" and self.history.is_retried(job_id, ended["b"], until)

    def check_retries(self, job_id, row):
        if row is None or row.status == "cancelled" or self.history.types[row.type]["kind"] in UNSEEN:
            return
        for retry in self.history.retries.get(job_id, ()):
            if retry["answer"] == "ok" and not any(run.at >= retry["b"] for run in self.history.runs.get(job_id, ())):
                self.broken("I1", "retried, and never started", job_id, f"retried at {retry['t']:.3f}")

    def check_told(self, job_id):
        """One caller is told that it cancelled the job, unless a standby that lacked the cancel took over."""
        told = sorted((cancel for cancel in self.cancels_of(job_id)
                       if cancel["answer"] == "ok" and cancel["result"] == "cancelled"), key=lambda cancel: cancel["b"])
        for before, cancel in zip(told, told[1:]):
            if not self.may_have_lost(job_id, before["b"], cancel["t"]):
                self.broken("I3", "two were told that they cancelled it", job_id,
                            f"{cancel['t'] - before['t']:.3f} s apart")

    # ---- I2, I4, I6: starts

    def check_runs(self, job_id, runs):
        row = self.rows.get(job_id)
        if row is None:
            if job_id not in self.acknowledged:  # else it is reported as lost
                self.broken("I10", "a job started that nobody asked for", job_id, f"at {runs[0].at:.3f}")
            return
        kind = self.history.types[row.type]
        self.check_time(job_id, runs[0].at, "by its handler")
        for run in runs:
            if run.attempt > row.max_attempts:
                self.broken("I6", "attempts beyond the limit", job_id, f"attempt {run.attempt} of {row.max_attempts}")
        for before, run in zip(runs, runs[1:]):
            self.check_pair(job_id, kind, before, run)
            if kind["kind"] == "webhook":
                self.count_frozen(job_id, before, run)
        self.check_last(row, runs[-1])
        self.check_end(row, kind, runs)

    def check_pair(self, job_id, kind, before, run):
        lease_end = before.claimed + kind["ttr"] - CLAIM_TO_START
        if before.until is not None:
            lease_end = before.ends_after
        lost_claims = [fault for fault in self.faults_of(job_id, None, before.claimed, run.at)
                       if fault.get("loses_claims")]
        may_be_over = run.attempt <= before.attempt or before.answer == "dead"
        if may_be_over and self.history.is_retried(job_id, before.at, run.at):
            return  # its attempts are counted anew
        if run.attempt <= before.attempt and not lost_claims:
            self.broken("I4", "an attempt started twice", job_id, f"attempt {run.attempt} after {before.attempt}")
        due = -math.inf
        if before.answer == "fail":
            due = min(before.answered + (kind["retry"] if before.pause is None else before.pause), lease_end)
        earliest = earliest_time(due, moves_after(before, self.history.moves.get(job_id, ())), run.claimed)
        if run.claimed < earliest - MARGIN - self.hastened(job_id, before.at, run.claimed) and not lost_claims:
            self.broken("I2", "retried early", job_id, f"{(earliest - run.claimed) * 1000:.1f} ms")
        if before.answer == "fail":
            return  # a retry is no duplicate
        if before.given_up is not None and run.claimed >= before.given_up + kind["retry"] - MARGIN:
            self.duplicates["answered too late"] += 1
            return
        is_expired = run.claimed >= lease_end - MARGIN
        if is_expired and kind["kind"] == "pull" and (before.answer is None or before.is_unknown):
            return  # its consumer let the lease end
        faults = lost_claims + self.faults_that_repeat(job_id, before, run, is_expired)
        if not faults:
            self.broken("I4", "started again without a reason" if is_expired else "overlap within a lease", job_id,
                        f"{run.claimed - before.claimed:.3f} s later")
        self.duplicates["+".join(sorted({fault["name"] for fault in faults})) or "no fault"] += 1

    def check_last(self, row, run):
        """What its handler has done at its last attempt may end dead only where a fault kept the outcome away."""
        if row.status != "dead" or run.answer != "done" or run.is_unknown or run.attempt != row.attempts:
            return
        if run.given_up is not None:
            self.done_and_dead["answered too late"] += 1
            return
        faults = self.faults_that_repeat(row.job_id, run, run, True)
        if not faults:
            self.broken("I4", "done by its handler, and dead", row.job_id, f"attempt {run.attempt}")
        self.done_and_dead["+".join(sorted({fault["name"] for fault in faults})) or "no fault"] += 1

    def check_end(self, row, kind, runs):
        """What ended the job is the result of its last attempt: it was written after that attempt had answered."""
        if (kind["kind"] != "webhook" or row.status not in ("done", "dead") or row.finished_at is None
                or row.job_id in self.history.retries):
            return
        answered = min((run.answered for run in runs if run.attempt == row.attempts), default=-math.inf)
        if row.finished_at < answered - MARGIN:
            self.broken("I5", "ended by a result of another attempt", row.job_id,
                        f"{answered - row.finished_at:.3f} s before attempt {row.attempts} answered")

    def count_frozen(self, job_id, before, run):
        """A node that ran the first of two attempts was frozen then, and went on while another ran the second."""
        self.frozen_while_running += any(
            before.at <= fault["stopped"] <= before.answered and run.at <= fault["continued"] <= run.answered
            for fault in self.faults_of(job_id, before.node, before.at, run.answered) if "continued" in fault)

    def faults_that_repeat(self, job_id, before, run, is_expired):
        """Each fault declares which duplicates it can cause (faults.py), and while what of the first run it does so. It
        causes none after its end, which is when all is well again."""
        if is_expired:  # its outcome was not written
            what, begin, end = "expired", before.answered, before.sent_by + WRITTEN_IN
        else:
            what, begin, end = "within", before.at, run.claimed
        return [fault for fault in self.faults_of(job_id, before.node, begin, end) if what in fault["repeats"]]

    def hastened(self, job_id, begin, end):
        """By how much the clock of the job's database may have been ahead meanwhile (s)."""
        return max((fault.get("hastens", 0) for fault in self.faults_of(job_id, None, begin, end)), default=0)

    def faults_of(self, job_id, node, begin, end):
        """The faults meanwhile that struck where the job was: its node (None: any), its database, its shard."""
        shard, databases = shard_of(job_id), self.history.databases_of(job_id, begin, end)
        return [fault for fault in self.faults_between(begin, end)
                if (node is None or node in fault.get("nodes", (node,)))
                and (not databases or databases & set(fault.get("databases", databases)))
                and shard in fault.get("shards", (shard,))]

    def faults_between(self, begin, end):
        return [fault for fault in self.history.faults if fault["on"] <= end and fault["off"] >= begin]

    # ---- I5: results of those who no longer hold the job

    def check_settles(self, job_id, settles):
        runs = {run.token: run for run in self.history.runs.get(job_id, ())}
        winners, until = set(), {token: run.leased_until for token, run in runs.items()}
        for settle in sorted(settles, key=lambda settle: settle["t"]):
            token, run = settle["token"], runs.get(settle["token"])
            if run is None:
                continue
            if settle["result"] == "stale":
                self.late_while_running += any(is_held(other, settle) for other in runs.values() if other is not run)
                continue
            late = settle["b"] - until[token]
            if settle["kind"] == "extend":
                until[token] = max(until[token], settle["until"])
            if settle["result"] != "ok":
                continue
            if late > MARGIN:
                self.broken("I5", "taken after the lease", job_id, f"{settle['kind']} {late:.3f} s late")
            if settle["kind"] != "ack":
                continue
            winners.add(token)
            row = self.rows.get(job_id)
            if row and row.status != "done":
                self.broken("I5", "acknowledged, and not done", job_id, row.status)
            for later in runs.values():
                if later.claimed > settle["t"]:
                    self.broken("I5", "leased after its ack", job_id, f"{later.claimed - settle['t']:.3f} s later")
        if len(winners) > 1:
            self.broken("I5", "two results accepted", job_id, f"{len(winners)} tokens")

    # ---- I11: the counts are the rows

    def check_counts(self):
        if self.counts is None:
            return
        there = collections.Counter((row.type, row.status) for row in self.rows.values())
        for key in sorted(set(there) | set(self.counts)):
            if there[key] != self.counts.get(key, 0):
                self.broken("I11", "counts", None,
                            f"{' '.join(key)}: {self.counts.get(key, 0)} counted, {there[key]} there")

    def check_snapshots(self):
        for event in self.history.snapshots:
            for type, status, counted, there in event["wrong"]:
                self.broken("I11", "counts at a snapshot", None,
                            f"{type} {status} at {event['t']:.3f}: {counted} counted, {there} there")

    # ---- I1, I5: what a `sql` handler did is there once where its job is done, and nowhere else

    def check_books(self):
        if self.booked is None:
            return
        done = {row.job_id for row in self.rows.values()
                if self.history.types[row.type]["kind"] == "sql" and row.status == "done"}
        for job_id in sorted(done | set(self.booked)):
            n = self.booked.get(job_id, 0)
            if n == 0:
                self.broken("I1", "done, and not in the books", job_id, "")
            elif job_id not in done:
                self.broken("I5", "in the books, and not done", job_id, f"{n} times")
            elif n > 1:
                self.broken("I5", "in the books twice", job_id, f"{n} times")


def ids_to_ask(history, rows, witnessed):
    """The ids that were answered for creates, or committed, and that the rows alone do not explain: some are no job's,
    and several for one key must all stand for one job."""
    there = {row.job_id for row in rows}
    answered = {job_id for asked in history.asked.values() for job_id in asked.ids
                if len(asked.ids) > 1 or job_id not in there}
    return answered | (set().union(*witnessed.values()) - there)


def is_held(run, settle):
    """Whether a consumer had this lease for certain when `settle` came."""
    return run.at <= settle["b"] and settle["t"] <= run.ends_after and (
        run.answered is None or settle["t"] <= run.answered)


def may_have(event, result):
    return event["answer"] == "unknown" or (event["answer"] == "ok" and event["result"] == result)


def earliest_time(first, moves, started):
    """The earliest deadline that can have been in force at `started`, whatever became of unknown answers. `first`: the
    deadline without any of `moves`."""
    possible = [(0.0, first)]  # when its request was sent, the deadline
    for move in sorted(moves, key=lambda move: move["b"]):
        if move["answer"] == "refused" or move["b"] > started:
            continue
        if move["answer"] == "ok" and move["t"] <= started:
            possible = [(sent, at) for sent, at in possible if sent > 0 and is_concurrent(sent, move, moves)]
        possible.append((move["b"], move["at"]))
    return min(at for _, at in possible)


def moves_after(run, moves):
    """The moves that may have come after this run. One that was sent before it may as well have come before it."""
    return [move if move["b"] >= run.at else {**move, "answer": "unknown"} for move in moves
            if move["answer"] == "unknown" or move["answer"] == "ok" and move["t"] >= run.at]


def is_concurrent(sent, move, moves):
    """Whether the change sent at `sent` may have come after `move`: it was answered later, or not at all."""
    return any(other["b"] == sent and (other["answer"] == "unknown" or other["t"] > move["b"]) for other in moves)
