"""What a run came to, as a table of 80 columns."""
import bisect
import collections

SHOWN = 5  # violations of one kind that are printed


def quantile(values, q):
    return values[min(len(values) - 1, int(len(values) * q))] if values else 0.0


class Report:
    """Figures of a run, from its history and its rows."""

    def __init__(self, history, checker, seconds):
        self.history, self.checker, self.seconds = history, checker, seconds
        self.heard = sorted(asked.acknowledged for asked in history.asked.values() if asked.acknowledged)
        self.starts = sorted(self.first_starts(checker.rows.values()))

    def print(self):
        history, rows = self.history, self.checker.rows
        statuses = collections.Counter(row.status for row in rows.values())
        unknown = [asked for asked in history.asked.values() if not asked.ids and asked.is_unknown]
        print(f"{len(self.heard):,} jobs acknowledged in {self.seconds:.0f} s; {len(unknown)} never answered; rows: "
              + ", ".join(f"{n:,} {status}" for status, n in sorted(statuses.items())))
        starts = sum(map(len, history.runs.values()))
        cancels = collections.Counter(cancel.get("result") or cancel["answer"] for all_ in history.cancels.values()
                                      for cancel in all_)
        print(f"{starts:,} starts seen by handlers and consumers; cancels: "
              + ", ".join(f"{n} {what}" for what, n in sorted(cancels.items())))
        unseen = sum(max(0, row.attempts - len(history.runs.get(row.job_id, ()))) for row in rows.values()
                     if history.types[row.type]["kind"] == "webhook")
        print(f"{unseen} attempts of webhooks were counted, and no handler saw them start")
        print(f"{len(history.snapshots)} snapshots in which counts and rows were compared")
        print(f"{self.checker.aliases()} ids of repeated creates stand for jobs with other ids")
        for type, most in sorted(self.checker.most_at_once.items()):
            print(f"{most} jobs of {type} at once, of {history.types[type]['max_running']} that may be")
        takeovers = self.checker.takeovers
        print(f"{len(takeovers)} deaths of nodes were judged, by {takeovers.total():,} jobs that were due")
        late, frozen = self.checker.late_while_running, self.checker.frozen_while_running
        print(f"{late} results of consumers and {frozen} of frozen nodes came while the next attempt ran")
        print(f"{self.checker.left_behind} starts after the lease of a node that stopped were judged")
        print()
        print(f"{'type':<8}{'jobs':>10}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}   lateness of first starts")
        for type in sorted(history.types):
            late = sorted(late for _, late, started in self.starts if started == type)
            figures = "".join(f"{quantile(late, q) * 1000:>10.1f}" for q in (0.5, 0.99, 1.0))
            print(f"{type:<8}{len(late):>10,}{figures}")
        print()
        print("fault          times  duplicates    no writes   mended  late p99    latest")
        print("                                   s, at most        s         s         s")
        self.print_faults()
        for name, n in sorted(self.checker.duplicates.items()):
            if "+" in name or name in ("no fault", "answered too late"):
                print(f"{n} duplicates: {name}")
        for name, n in sorted(self.checker.done_and_dead.items()):
            print(f"{n} dead although the last attempt was done: {name}")

    def first_starts(self, rows):
        """(deadline, lateness, type) of jobs whose deadline stands as it was asked, in order."""
        for row in rows:
            if row.started_at is not None and self.history.has_own_time(row.job_id):
                # Not before it was there: a create whose answer was lost is repeated, and comes late.
                asked = self.history.asked.get(row.biz_id)
                known = asked.acknowledged if asked and asked.acknowledged else 0.0
                yield row.action_time, max(0.0, row.started_at - max(row.action_time, known)), row.type

    def print_faults(self):
        by_name = collections.defaultdict(list)
        for fault in self.history.faults:
            by_name[fault["name"]].append(fault)
        for name, faults in sorted(by_name.items()):
            silence = max(self.longest_silence(fault["on"], fault["off"]) for fault in faults)
            late = sorted(late for fault in faults for late in self.starts_between(fault["on"], fault["off"]))
            mended = max(fault["off"] - fault["on"] for fault in faults)
            print(f"{name:<14}{len(faults):>6}{self.checker.duplicates[name]:>12}{silence:>13.2f}{mended:>9.1f}"
                  f"{quantile(late, 0.99):>10.2f}{quantile(late, 1.0):>10.2f}")

    def starts_between(self, begin, end):
        """Lateness of what was due then; pull types wait for consumers besides."""
        first, last = (bisect.bisect_left(self.starts, (moment,)) for moment in (begin, end))
        return (late for _, late, type in self.starts[first:last] if self.history.types[type]["kind"] != "pull")

    def longest_silence(self, begin, end):
        """The longest time since the begin of a fault in which no create was acknowledged."""
        first, last = bisect.bisect_right(self.heard, begin), bisect.bisect_left(self.heard, end) + 1
        heard = [begin, *self.heard[first:last]]
        return max((later - earlier for earlier, later in zip(heard, heard[1:])), default=end - begin)


def print_violations(violations):
    kinds = collections.defaultdict(list)
    for violation in violations:
        kinds[violation.invariant, violation.what].append(violation)
    for (invariant, what), found in sorted(kinds.items()):
        print(f"{invariant} BROKEN, {what}: {len(found)}")
        for violation in found[:SHOWN]:
            print(f"    job {violation.job_id}: {violation.text}")
