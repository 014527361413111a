"""The history of a run: what was asked, answered and started, as its witnesses saw it.

One JSON object per line, in one file per witness (`*.jsonl`). Times are seconds of this machine's clock, which is the
databases' too: they run here, and only faults of clocks tell them a wrong time. `b` is when a request was sent, `t`
when its answer came, or when the thing happened. An answer is `ok`, `refused` (a 4xx: it had no effect) or `unknown`
(no answer, or a 5xx: it may have had its effect).

  event    fields
  type     name, kind (noop, webhook, pull, sql), ttr, retry (s, the least pause after a failure), max_attempts,
           max_running, rate (per second; both may be missing)
  create   b, t, answer, type, keys (biz_ids, each asked for once), at (asked action_times), ids (when ok)
  cancel   b, t, answer, id, result (when ok: cancelled, running, finished, not_found)
  move     b, t, answer, id, at: reschedule; `run` sets at = b
  retry    b, t, answer, id: a dead job is to be pending again
  paused   b, t, type, until: a pause that was acknowledged; `until`: when its end was asked for
  start    t, id, attempt, answer (what the handler will say: done, fail, dead),     a webhook came
           node (that claimed the job), takes (s, until it began to answer), sent_in (s, until the answer was sent),
           sent (what the node's stamp says, for readers)
  poll     b, t, type, node                                                          a consumer asked a node for jobs
  lease    b, t, type, node, items [[id, token, until, attempt]]                     jobs came to a consumer
  settle   b, t, answer, kind (ack, nack, extend), items [[id, token, result]], delay, until (extend: the new end)
  seen     b, t, id, status                                                          what a reader saw
  fault    name, on, off, and what it can cause (see faults.py): loses_claims, repeats, hastens, ends_permits;
           nodes, databases, shards: what it struck, by name or number (any, where it does not say); stopped (when a
           node was killed or stopped), continued (when the node that was stopped went on), dead_until (of a node that
           was killed, when it was started again)
  places   t, places: by shard, the number of the database in which it lives
  memory   node, mb, t: the most that a node's process has had in memory until then
  counts   t, port, wrong [[type, status, counted, there]]: of one snapshot of a database, where the counts are not its
           rows
  note     text, t
"""
import json
import pathlib
import threading


class Writer:
    """Appends events to one file. Thread: any."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8", buffering=1 << 16)
        self.lock = threading.Lock()

    def write(self, event, **fields):
        line = json.dumps({"e": event, **fields}, separators=(",", ":"))
        with self.lock:
            self.file.write(line + "\n")

    def reopen(self, path):
        """Later events go to another file."""
        with self.lock:
            self.file.close()
            self.file = open(path, "a", encoding="utf-8", buffering=1 << 16)

    def flush(self):
        with self.lock:
            self.file.flush()

    def close(self):
        with self.lock:
            self.file.close()


def read(folder):
    """All events of a run, witness after witness; the last line of one who was killed may be torn."""
    for path in sorted(pathlib.Path(folder).glob("*.jsonl")):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    yield json.loads(line)
