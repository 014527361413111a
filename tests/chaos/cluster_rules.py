"""The rules for the cluster as a whole: limits, pauses, takeovers and memory. Part of the checker."""
import collections
import math

MARGIN = 0.010  # s: a row's time is rounded, a lease end is told in milliseconds
# s: a handler starts within half a second of its claim, or not at all. After a claim that itself took longer than a
# quarter of a second it may start later, if it must wait for a connection; here it need not.
CLAIM_TO_START = 0.6
LEARNED = 3.0  # s: until every node knows of a pause, if it hears no notification of it
TERMINAL = {"done", "cancelled", "dead"}
MOST_MB = 200  # of a node's memory, whatever happens; about 50 in long runs
# s: besides the heartbeat time-out, until others have started what a dead node left, on a loaded machine.
TAKES_OVER = 4.0
CATCH_UP = 1.0  # s: in which consumers who waited for a frozen node have leased what was free meanwhile
NODES = 3
LIMITS_SPAN = 5.0  # s: no handler takes longer
# s: in which starts are counted. The long one finds a rate that is exceeded by a little, all the time.
RATE_SPANS = (1.0, LIMITS_SPAN, 15.0)


class ClusterRules:
    """Used by `Checker`, which has the history, the rows and `broken`."""

    # ---- I12: no more at once than max_running, no faster than the rate

    def check_limits(self):
        by_type = collections.defaultdict(list)
        for job_id, busy in self.history.busy.items():
            if row := self.rows.get(job_id):
                by_type[row.type] += busy
        for job_id, runs in self.history.runs.items():
            if row := self.rows.get(job_id):
                by_type[row.type] += [self.leased(job_id, run) for run in runs if run.token is not None]
        for name, busy in sorted(by_type.items()):
            type = self.history.types[name]
            if type.get("max_running"):
                self.check_max_running(name, type["max_running"], busy)
            if type.get("rate"):
                self.check_rate(name, type["rate"], sorted(begin for begin, _ in busy))

    def leased(self, job_id, run):
        """[begin, end] of the time in which a consumer had the job for certain; it may be empty."""
        end = run.ends_after - self.hastened(job_id, run.at, run.until)
        return run.at, max(run.at, end if run.answered is None else min(end, run.answered))

    def check_max_running(self, name, most, busy):
        # Who ends at the moment that another begins has ended.
        running = 0
        for at, change in sorted([(begin, 1) for begin, _ in busy] +
                                 [(max(begin, end - MARGIN), -1) for begin, end in busy]):
            running += change
            self.most_at_once[name] = max(self.most_at_once[name], running)
            if running > most and not self.has_lost_permits(at):
                return self.broken("I12", "more than max_running", None, f"{running} of {name} at {at:.3f}")

    def check_rate(self, name, rate, starts):
        for span in RATE_SPANS:
            if self.is_faster(name, rate, starts, span):
                return  # reported once

    def is_faster(self, name, rate, starts, span):
        most, first = most_starts(rate, span), 0
        for last, at in enumerate(starts):
            while starts[first] < at - span:
                first += 1
            if last - first + 1 > most and not self.has_lost_permits(at, span):
                self.broken("I12", "faster than its rate", None,
                            f"{last - first + 1} of {name} in the {span:.0f} s until {at:.3f}")
                return True
        return False

    def has_lost_permits(self, at, span=LIMITS_SPAN):
        """Whether what counts at this moment may have started under permits that two nodes held."""
        return any(fault.get("ends_permits") for fault in self.faults_between(at - max(span, LIMITS_SPAN), at))

    # ---- I12: nothing of a paused type starts

    def check_pauses(self):
        types = {pause["type"] for pause in self.history.paused}
        starts = [(row.type, job_id, run.at) for job_id, runs in self.history.runs.items()
                  if (row := self.rows.get(job_id)) and row.type in types for run in runs]
        for pause in self.history.paused:
            begin = pause["t"] + LEARNED + CLAIM_TO_START
            for type, job_id, at in starts:
                if type == pause["type"] and begin < at < pause["until"] and not self.is_cut_off(pause["t"], at):
                    self.broken("I12", "started while its type was paused", job_id,
                                f"{at - pause['t']:.1f} s after the pause")

    def is_cut_off(self, begin, end):
        """Whether a fault may meanwhile have kept a node from its databases."""
        return any(fault["repeats"] for fault in self.faults_between(begin, end))

    # ---- I8: others take over from the dead, memory is bounded

    def check_takeovers(self):
        """While one node is dead and all else is well, nothing waits for longer than others take to scan its shards."""
        if self.heartbeat_timeout is None:
            return
        most = takeover_time(self.heartbeat_timeout)
        deaths = self.deaths(most)
        for row in self.rows.values():
            is_over = row.started_at is None and row.status in TERMINAL
            if is_over or not self.history.has_own_time(row.job_id) or row.type != "noop":
                continue
            asked = self.history.asked.get(row.biz_id)
            due = max(row.action_time, asked.acknowledged if asked and asked.acknowledged else 0.0)
            late = math.inf if row.started_at is None else row.started_at - due
            for begin, end in deaths:
                if begin <= due <= end:
                    self.takeovers[begin] += 1
                    if late > most:
                        self.broken("I8", "nobody took over in time", row.job_id, f"{late:.1f} s late")

    def deaths(self, most):
        """Of each node that died while all else was well, [begin, end] of the times that can show whether it was
        missed: what was due then would still have waited for it when the time was over."""
        return [(death["on"], death["dead_until"] - most) for death in self.history.faults
                if "dead_until" in death and self.is_alone(death, death["on"] - most, death["dead_until"])]

    def is_alone(self, fault, begin, end):
        return all(other is fault for other in self.faults_between(begin, end))

    def check_left_behind(self):
        """What ran on a node that stopped while all else was well runs again when its lease has ended, and the others
        have missed the node."""
        stops = [fault for fault in self.history.faults if "stopped" in fault]
        if self.heartbeat_timeout is None or not stops:
            return
        for job_id, runs in self.history.runs.items():
            if job_id in self.rows and self.history.has_own_time(job_id):
                for before, run in zip(runs, runs[1:]):
                    for stop in stops:
                        self.check_next(stop, job_id, before, run)

    def check_next(self, stop, job_id, before, run):
        kind = self.history.types[self.rows[job_id].type]
        lease_end = before.at + kind["ttr"] if before.until is None else before.until
        if before.node not in stop["nodes"] or not before.at <= stop["stopped"] <= lease_end:
            return
        latest = max(lease_end, stop["stopped"] + self.heartbeat_timeout) + TAKES_OVER
        # Jobs of limited types wait for the permits of the dead, too, and those of a paused type for its end.
        is_paused = any(pause["type"] == kind["name"] for pause in self.history.paused)
        if is_paused or kind.get("max_running") or kind.get("rate") or not self.is_alone(
                stop, stop["on"] - takeover_time(self.heartbeat_timeout), latest):
            return
        self.left_behind += 1
        if run.at > latest and run.at > self.asked_for(kind, latest, stop["nodes"]):
            self.broken("I8", "a lease of a dead node ended, and nobody ran its job", job_id,
                        f"{run.at - lease_end:.1f} s after its lease")

    def asked_for(self, kind, latest, stopped):
        """The latest moment at which a job of this type must have been given out that was free at `latest`: later, if
        all consumers waited for the nodes that had stopped then."""
        if kind["kind"] != "pull":
            return latest
        asked = min((poll["b"] for poll in self.history.polls[kind["name"]]
                     if poll["t"] >= latest and poll["node"] not in stopped), default=latest)
        return latest if asked <= latest else asked + CATCH_UP

    def check_memory(self):
        for event in self.history.memory:
            if event["mb"] > MOST_MB:
                self.broken("I7", "memory", None, f"{event['mb']} MB of node {event['node']}")


def takeover_time(heartbeat_timeout):
    """s: after a node has died, until others have started what became due in its shards."""
    return heartbeat_timeout + TAKES_OVER


def most_starts(rate, span):
    """In t seconds at most rate * (t + 1) and one per node; what was on its way is up to half a second late."""
    return rate * (span + 1 + CLAIM_TO_START) + NODES
