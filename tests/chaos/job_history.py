"""The events of a run, ordered by job: what was asked for, what started, what callers and consumers were told."""
import collections
import dataclasses

# s: after its arrival a webhook's sender may give it up. The time-out of 2 s began before, when the sender began to
# connect: at most a start window of half a second earlier, unless claims are slow and connections, too.
GIVEN_UP = 2.0 - 0.6


@dataclasses.dataclass(slots=True)
class Asked:
    """A job that was asked for: all requests for one biz_id together."""
    type: str
    at: float
    first_sent: float
    ids: list[str] = dataclasses.field(default_factory=list)  # that were answered, each once
    is_unknown: bool = False
    acknowledged: float | None = None


@dataclasses.dataclass(slots=True)
class Run:
    """One start of a handler, or one lease of a consumer. `claimed`: the latest moment its claim can have been made."""
    attempt: int
    at: float
    claimed: float
    answer: str | None = None  # done, fail, dead; None: none was given, or it is not known whether it arrived
    answered: float | None = None  # not before this moment
    sent_by: float | None = None  # and not after this one
    is_unknown: bool = False  # a consumer's answer that may have arrived
    pause: float | None = None  # asked for before the retry
    token: str | None = None
    leased_until: float | None = None  # the end of the lease, as its consumer was told
    until: float | None = None  # the latest end that it can have, as it was extended
    ends_after: float | None = None  # the earliest
    given_up: float | None = None  # an answer came so late that the sender may have given up since this moment
    node: str | None = None  # that claimed it


def shard_of(job_id):
    return int(job_id) % 1024


class History:
    """The events of a run, ordered by job."""

    def __init__(self, events):
        self.types, self.asked = {}, {}
        self.keys = collections.defaultdict(set)  # of an id: several when a failover lost ids, which came again
        self.cancels, self.moves, self.retries, self.seen = (collections.defaultdict(list) for _ in range(4))
        self.runs, self.settles = collections.defaultdict(list), collections.defaultdict(list)
        self.faults, self.memory, self.snapshots, self.places, self.paused = [], [], [], [], []
        self.busy = collections.defaultdict(list)  # by job, [begin, end] of what its handler did
        self.polls = collections.defaultdict(list)  # by type, what consumers asked
        self.refused = 0
        for event in events:
            getattr(self, "on_" + event["e"])(event)
        for runs in self.runs.values():
            runs.sort(key=lambda run: run.at)
        self.faults.sort(key=lambda fault: fault["on"])
        self.places.sort(key=lambda event: event["t"])
        self.give_answers()

    def on_type(self, event):
        self.types[event["name"]] = event

    def on_create(self, event):
        ids = event.get("ids") or [None] * len(event["keys"])
        for key, at, job_id in zip(event["keys"], event["at"], ids):
            asked = self.asked.get(key)
            if asked is None:
                asked = self.asked[key] = Asked(event["type"], at, event["b"])
            asked.first_sent = min(asked.first_sent, event["b"])
            if event["answer"] == "ok":
                if job_id not in asked.ids:
                    asked.ids.append(job_id)
                self.keys[job_id].add(key)
                asked.acknowledged = min(event["t"], asked.acknowledged or event["t"])
            elif event["answer"] == "unknown":
                asked.is_unknown = True
            else:
                self.refused += 1

    def on_cancel(self, event):
        self.cancels[event["id"]].append(event)

    def on_move(self, event):
        self.moves[event["id"]].append(event)

    def on_retry(self, event):
        if event["answer"] != "refused":
            self.retries[event["id"]].append(event)

    def on_paused(self, event):
        self.paused.append(event)

    def on_seen(self, event):
        self.seen[event["id"]].append(event)

    def on_start(self, event):
        at = event["t"]
        answered, given_up = at + event.get("takes", 0.0), None
        sent_by = max(answered, at + event.get("sent_in", 0.0))
        if sent_by >= at + GIVEN_UP:
            given_up = sent_by = at + GIVEN_UP
            answered = min(answered, given_up)
        self.runs[event["id"]].append(Run(event["attempt"], at, at, event["answer"], answered, sent_by,
                                         given_up=given_up, node=event.get("node")))
        self.busy[event["id"]].append((at, answered))

    def on_poll(self, event):
        self.polls[event["type"]].append(event)

    def on_lease(self, event):
        ttr = self.types[event["type"]]["ttr"]
        for job_id, token, until, attempt in event["items"]:
            claimed = min(event["t"], until - ttr)  # `until` is of a clock that may be ahead
            self.runs[job_id].append(Run(attempt, event["t"], claimed, token=token, leased_until=until, until=until,
                                         ends_after=until, node=event.get("node")))

    def on_settle(self, event):
        for job_id, token, result in event["items"]:
            self.settles[job_id].append({**event, "token": token, "result": result})

    def on_fault(self, event):
        self.faults.append(event)

    def on_places(self, event):
        self.places.append(event)

    def on_memory(self, event):
        self.memory.append(event)

    def on_counts(self, event):
        self.snapshots.append(event)

    def on_note(self, event):
        pass

    def is_retried(self, job_id, begin, end):
        """Whether a caller may have made the job pending again meanwhile, with attempts 0."""
        return any(retry["b"] <= end and (retry["answer"] == "unknown" or retry["t"] >= begin)
                   for retry in self.retries.get(job_id, ()))

    def has_own_time(self, job_id):
        """Whether the job is due when its create said: nobody has moved or retried it."""
        return job_id not in self.moves and job_id not in self.retries

    def deadlines_of(self, job_id):
        """What gave the job another deadline: moves, and retries, which make it due at once."""
        return [*self.moves.get(job_id, ()), *({**retry, "at": retry["b"]} for retry in self.retries.get(job_id, ()))]

    def databases_of(self, job_id, begin, end):
        """The numbers of the databases in which the job may have lived meanwhile; none, where nobody has looked."""
        known = [event for event, later in zip(self.places, [*self.places[1:], None])
                 if later is None or later["t"] > begin]
        before_end = [event for event in known if event["t"] < end]
        return {event["places"][shard_of(job_id)] for event in known[:len(before_end) + 1]}

    def give_answers(self):
        """What consumers said belongs to the run whose token they named."""
        for job_id, settles in self.settles.items():
            runs = {run.token: run for run in self.runs[job_id]}
            for settle in sorted(settles, key=lambda settle: settle["t"]):
                run = runs.get(settle["token"])
                if run is None or settle["result"] in ("stale", "refused"):
                    continue
                if settle["kind"] == "extend":
                    run.until = max(run.until, settle["until"])
                    if settle["result"] == "ok":  # an unknown one may have had no effect
                        run.ends_after = settle["until"] - (settle["t"] - settle["b"])
                else:
                    run.answer = "done" if settle["kind"] == "ack" else "fail"
                    run.answered, run.sent_by = settle["b"], settle["t"]
                    run.is_unknown, run.pause = settle["result"] == "unknown", settle.get("delay")
