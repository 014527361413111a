"""The faults: each strikes, lasts, and heals. `FAULTS` names them all.

A fault is a function of the cluster, a random generator and the seconds it lasts. It returns when what it broke is
mended, with what it struck (Struck); the caller waits until the cluster works again. Faults of one group never strike
together.
"""
import contextlib
import dataclasses
import signal
import subprocess
import time
import typing

from cluster_rules import takeover_time
from postgres import BIN, eventually


class Struck(typing.TypedDict, total=False):
    """What a fault struck; any node, database or shard where it does not say."""
    nodes: list[str]
    databases: list[int]
    shards: list[int]
    stopped: float  # s: when the node was killed or stopped
    continued: float  # s: when the node that was stopped went on
    dead_until: float  # s: when the node that was killed was started again


CONTROL, SECOND = Struck(databases=[0]), Struck(databases=[1])


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    group: str  # node, wire, database, second, move
    strike: typing.Callable
    about: str
    loses_claims: bool = False  # claims that were not on the standby may be gone, unless it is synchronous
    # Which duplicates it can cause. `expired`: an outcome is not written before the lease ends, because the node or the
    # way to the database is gone, so the job is due again. `within`: the next attempt begins within the lease, because
    # the database's clock ends it early. None of them after the fault's end, when all is well again.
    repeats: tuple = ("expired",)
    hastens: float = 0  # s: a database's clock may be ahead by so much, so its jobs start early
    ends_permits: bool = False  # the control database's clock ends them before nodes do: limits do not hold (ADR 0018)


FAULTS = {}
CLOCKS = {"clock", "clock_control", "clock_second"}  # they need libfaketime


def fault(name, group, about, **more):
    def register(strike):
        FAULTS[name] = Fault(name, group, strike, about, **more)
        return strike
    return register


def last(seconds):
    time.sleep(seconds)


# ---- nodes


@fault("kill", "node", "kill -9 of a node")
def kill(cluster, rng, seconds):
    node = rng.choice(cluster.nodes)
    stopped = time.time()
    node.kill()
    # The others must have taken over before it comes back: what is due in the first two seconds shows whether they did.
    last(takeover_time(cluster.heartbeat_timeout) + 2)
    dead_until = time.time()
    node.start()
    return Struck(nodes=[node.name], stopped=stopped, dead_until=dead_until)


# Only `expired`: a node that is stopped takes no attempt for failed, and it is stopped for longer than a lease. When it
# goes on, others may be running what it ran.
@fault("freeze", "node", "SIGSTOP beyond the heartbeat time-out, SIGCONT")
def freeze(cluster, rng, seconds):
    node = rng.choice(cluster.nodes)
    stopped = time.time()
    node.signal(signal.SIGSTOP)
    try:
        last(cluster.heartbeat_timeout + 1.2 + rng.uniform(0, seconds / 2))
    finally:
        continued = time.time()
        node.signal(signal.SIGCONT)
    return Struck(nodes=[node.name], stopped=stopped, continued=continued)


# A node that is stopped writes its handlers' outcomes, so no lease ends because of it.
@fault("restart", "node", "SIGTERM to one node after the other", repeats=())
def restart(cluster, rng, seconds):
    for node in rng.sample(cluster.nodes, len(cluster.nodes)):
        if code := node.terminate():
            raise RuntimeError(f"node {node.name} left with exit code {code}")
        node.start()
        node.wait_until_ready()


@fault("clock", "node", "the clock of one node steps by hours, forward and back", repeats=())
def clock(cluster, rng, seconds):
    node = next(node for node in cluster.nodes if node.clock)
    try:
        for offset in rng.sample(["+3600", "-600", "+86400", "-7200"], 2):
            node.clock.set(offset)
            last(seconds / 2)
    finally:
        node.clock.set("+0")
    return Struck(nodes=[node.name])


# ---- wires


def wire(name, about, repeats=("expired",), **settings):
    @fault(name, "wire", about, repeats=repeats)
    def cut(cluster, rng, seconds):
        node = rng.choice(cluster.nodes)
        cluster.set_wires(node, name, **settings)
        try:
            last(seconds)
        finally:
            cluster.set_wires(node, "pass")
        return Struck(nodes=[node.name])


wire("blackhole", "nothing passes between a node and its databases; it arrives when the cut is over")
wire("half_open", "the databases' side of a node's connections is gone, and nobody tells the node")
# An outcome takes a few trips of 60 ms: no lease ends meanwhile.
wire("delay", "every packet between a node and its databases is late", repeats=(), seconds=0.03)
wire("lose_reply", "answers to COMMIT and to other statements are lost", p=0.3)


@fault("reset", "wire", "all connections of a node are reset, again and again")
def reset(cluster, rng, seconds):
    node = rng.choice(cluster.nodes)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        cluster.set_wires(node, "reset")
        cluster.set_wires(node, "pass")
        last(rng.uniform(0.2, 0.8))
    return Struck(nodes=[node.name])


# ---- databases


@fault("terminate", "database", "pg_terminate_backend of the nodes' sessions, again and again")
def terminate(cluster, rng, seconds):
    until, databases = time.monotonic() + seconds, set()
    while time.monotonic() < until:
        database, share = rng.randrange(len(cluster.primaries())), rng.choice([0.2, 1.0])
        server = cluster.primaries()[database]
        databases.add(database)
        with contextlib.suppress(RuntimeError):  # another fault has just stopped it
            server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        f" WHERE application_name LIKE 'tocsin%' AND datname = 'tocsin' AND random() < {share}")
        last(rng.uniform(0.2, 0.8))
    return Struck(databases=sorted(databases))


@fault("locks", "database", "a stranger locks rows, and is idle in its transaction")
def locks(cluster, rng, seconds):
    shard, database = rng.randrange(8), rng.randrange(len(cluster.primaries()))
    dsn = cluster.primaries()[database].dsn()
    with subprocess.Popen([BIN / "psql", "-qX", dsn], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as stranger:
        stranger.stdin.write(f"BEGIN; SELECT job_id FROM tocsin.job_live WHERE shard % 8 = {shard} FOR UPDATE;\n")
        stranger.stdin.flush()
        last(seconds)
        stranger.stdin.close()
    return Struck(databases=[database], shards=list(range(shard, cluster.SHARDS, 8)))


@fault("crash", "database", "pg_ctl stop -m immediate of the primary, and start")
def crash(cluster, rng, seconds):
    cluster.primary.stop("immediate")
    last(rng.uniform(0, seconds / 2))
    cluster.primary.start()
    return CONTROL


@fault("crash_second", "second", "the same of the second database")
def crash_second(cluster, rng, seconds):
    cluster.others[0].stop("immediate")
    last(rng.uniform(0, seconds))
    cluster.others[0].start()
    return SECOND


def step_clock(server, rng, seconds):
    try:
        for offset in rng.sample(["+2", "+5", "+1"], 2):
            server.clock.set(offset)
            last(1 + seconds / 2)
    finally:
        server.clock.set("+0")
        last(3)  # libfaketime looks at its file every second or two


@fault("clock_control", "database", "the clock of the control database steps forward by seconds, and back",
       repeats=("expired", "within"), hastens=5, ends_permits=True)
def clock_control(cluster, rng, seconds):
    step_clock(cluster.primary, rng, seconds)
    return CONTROL


@fault("clock_second", "second", "the clock of the second database steps forward by seconds, and back",
       repeats=("expired", "within"), hastens=5)
def clock_second(cluster, rng, seconds):
    step_clock(cluster.others[0], rng, seconds)
    return SECOND


@fault("promote", "database", "the primary dies, the standby is promoted", loses_claims=True)
def promote(cluster, rng, seconds):
    # Nothing but its own word makes an asynchronous standby lag on a machine of our own.
    cluster.primary.die_unheard(0 if cluster.is_synchronous else 1)
    cluster.promote()
    last(seconds / 2)
    cluster.rebuild_standby()
    return CONTROL


@fault("demote", "database", "the standby is promoted, the old primary stays up, read-only", loses_claims=True)
def demote(cluster, rng, seconds):
    old = cluster.primary
    old.configure(cluster.is_synchronous, is_read_only=True)
    eventually(lambda: old.psql("SHOW transaction_read_only", "postgres").strip() == "on", "the primary is read-only")
    # What had begun before may still be writing.
    writers = "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
    eventually(lambda: old.psql(writers, "postgres").strip() == "0", "nobody writes any more")
    cluster.promote()
    last(max(seconds, 7))  # longer than the lookahead: what is due by then was never seen on the old primary
    cluster.rebuild_standby()
    return CONTROL


@fault("disk", "database", "the disk of the primary is full")
def disk(cluster, rng, seconds):
    server = cluster.primary
    server.fill_disk()
    try:
        last(seconds)
    finally:
        server.free_disk()
    if not server.is_running():  # without room for its log a server gives up
        server.start()
    return CONTROL


def places_of(cluster):
    """None: the database does not answer."""
    with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
        return cluster.places()


@fault("move", "move", "no fault: a shard moves to the other database, under load", repeats=())
def move(cluster, rng, seconds):
    shard = rng.randrange(cluster.SHARDS)
    # What strikes beside it may have stopped the database, and may end the command: both are tried again.
    database = eventually(lambda: places_of(cluster), "the places of the shards are known")[shard]
    eventually(lambda: cluster.command("shard", "move", str(shard), "--to", ["second", "control"][database]),
               f"shard {shard} has moved", 120)
    return Struck(shards=[shard])


# ---- of a cluster under Patroni; they strike by themselves only


def fail_over(cluster, rng, seconds):
    cluster.primary.kill()
    cluster.find_primary(other_than=cluster.primary)
    last(seconds)
    return CONTROL


def switch_over(cluster, rng, seconds):
    cluster.switch_over()
    last(seconds)
    return CONTROL


OF_PATRONI = [Fault("fail over", "database", fail_over, "the primary dies, Patroni promotes the standby", True),
              Fault("switch over", "database", switch_over, "patronictl switchover", True)]


def plan(rng, names):
    """Yields the faults to strike together, without end: every name once in each round, some in pairs."""
    while True:
        round_ = rng.sample(sorted(names), len(names))
        while round_:
            first = FAULTS[round_.pop()]
            second = next((FAULTS[name] for name in round_ if FAULTS[name].group != first.group), None)
            if second and rng.random() < 0.3:
                round_.remove(second.name)
                yield [first, second]
            else:
                yield [first]
