"""What a run came to, for people: a table of 80 columns."""
import collections


def quantile(values, q):
    return values[min(len(values) - 1, int(len(values) * q))] if values else 0.0


class Report:
    """Figures of a run, from its history and its rows."""

    def __init__(self, history, checker, seconds):
        self.history, self.checker, self.seconds = history, checker, seconds
        self.creates = sorted((asked.first_sent, asked.acknowledged) for asked in history.asked.values()
                              if asked.acknowledged)

    def print(self):
        history, rows = self.history, self.checker.rows
        statuses = collections.Counter(row.status for row in rows.values())
        unknown = [asked for asked in history.asked.values() if asked.job_id is None and asked.is_unknown]
        print(f"{len(self.creates):,} jobs acknowledged in {self.seconds:.0f} s; {len(unknown)} never answered; rows: "
              + ", ".join(f"{n:,} {status}" for status, n in sorted(statuses.items())))
        starts = sum(map(len, history.runs.values()))
        cancels = collections.Counter(cancel.get("result") or cancel["answer"] for all_ in history.cancels.values()
                                      for cancel in all_)
        print(f"{starts:,} starts seen by handlers and consumers; cancels: "
              + ", ".join(f"{n} {what}" for what, n in sorted(cancels.items())))
        print()
        print(f"{'type':<8}{'jobs':>10}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}   lateness of first starts")
        for type in sorted(history.types):
            late = sorted(self.lateness(rows.values(), type))
            figures = "".join(f"{quantile(late, q) * 1000:>10.1f}" for q in (0.5, 0.99, 1.0))
            print(f"{type:<8}{len(late):>10,}{figures}")
        print()
        print(f"{'fault':<12}{'times':>6}{'duplicates':>12}{'writes back':>13}{'mended':>9}{'latest start':>14}")
        print(f"{'':<12}{'':>6}{'':>12}{'s, at most':>13}{'s':>9}{'s':>14}")
        self.print_faults(rows)
        for name, n in sorted(self.checker.duplicates.items()):
            if "+" in name or name == "no fault":
                print(f"{n} duplicates: {name}")

    def lateness(self, rows, type=None, begin=0.0, end=float("inf")):
        """Of first starts whose deadline stands as it was asked; pull types wait for consumers besides."""
        moved, asked = self.history.moves, self.history.asked
        for row in rows:
            if row.started_at is not None and (row.type == type if type else row.type != "pull"):
                if begin <= row.action_time < end and row.job_id not in moved:
                    # Not before it was there: a create whose answer was lost is repeated, and comes late.
                    known = asked[row.biz_id].acknowledged if row.biz_id in asked else None
                    yield row.started_at - max(row.action_time, known or 0.0)

    def print_faults(self, rows):
        by_name = collections.defaultdict(list)
        for fault in self.history.faults:
            by_name[fault["name"]].append(fault)
        for name, faults in sorted(by_name.items()):
            back = [self.first_create_after(fault["on"]) for fault in faults]
            late = [max(self.lateness(rows.values(), None, fault["on"], fault["off"]), default=0.0) for fault in faults]
            mended = max(fault["off"] - fault["on"] for fault in faults)
            print(f"{name:<12}{len(faults):>6}{self.checker.duplicates[name]:>12}{max(back):>13.2f}{mended:>9.1f}"
                  f"{max(late):>14.2f}")

    def first_create_after(self, moment):
        """Until the first create that was both asked and answered after `moment`."""
        return min((heard - moment for sent, heard in self.creates if sent > moment), default=float("inf"))
