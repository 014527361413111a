"""The cluster under test: nodes, a primary with its standby, and the wires between them, all on loopback."""
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

from postgres import Clock, Server, eventually
from proxy import Proxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
STANDBY_PATIENCE_S = 15  # until a standby that does not stream is built anew
GIVEN = set()  # ports: of two that a cluster has drawn and not opened yet, none may be the other


def free_port():
    """Below the range of outgoing connections, so that none of those takes it in between; each once."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            if port not in GIVEN and probe.connect_ex(("127.0.0.1", port)):
                GIVEN.add(port)
                return port


def url(ports):
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return f"postgresql://postgres@{hosts}/tocsin?target_session_attrs=read-write&connect_timeout=2"


def binary():
    return os.environ.get("TOCSIN_BINARY", str(ROOT / "build/release/tocsin"))


class Node:
    """A process of `tocsin serve`, on the same port whenever it starts."""

    def __init__(self, name, folder, databases, history, options=(), clock=None):
        self.name, self.folder, self.port, self.history = name, folder, free_port(), history
        self.options, self.clock, self.process = list(options), clock, None
        for database in databases:
            self.options += ["--database", database]

    def start(self, options=()):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
        if self.clock:
            self.clock.set("+0")
            environment |= self.clock.environment()
        with open(self.folder / f"node-{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [binary(), "serve", "--listen", f"127.0.0.1:{self.port}", "--allow-superuser-handlers",
                 "--node-name", self.name, *self.options, *options],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_until_ready(self, patience=60):
        eventually(self.is_ready, f"node {self.name} is ready", patience)

    def is_ready(self):
        if self.process.poll() is not None:
            # Without its control database a node does not start; a service manager would try again.
            if self.process.returncode != 1:
                raise RuntimeError(f"node {self.name} ended with {self.process.returncode}")
            self.start()
        status, reply = self.get("/readyz")
        return status == 200 and "degraded" not in json.dumps(reply)

    def get(self, path, method="GET", body=None):
        """Status and JSON; (0, None) when it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"content-type": "application/json"})
            reply = connection.getresponse()
            text = reply.read()
            return reply.status, json.loads(text) if "json" in reply.headers.get("content-type", "") else text.decode()
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.note_memory()
        self.process.kill()
        self.process.wait()

    def terminate(self, patience=60):
        """SIGTERM; the exit code. What it needs on its way out counts too."""
        self.note_memory()
        self.signal(signal.SIGTERM)
        eventually(self.has_ended, f"node {self.name} ends", patience)
        return self.process.returncode

    def has_ended(self):
        self.note_memory()
        return self.process.poll() is not None

    def note_memory(self):
        """The most that the process has had in memory so far. It forgets when it ends, so this is called before."""
        if mb := self.memory_mb("VmHWM"):
            self.history.write("memory", node=self.name, mb=mb, t=time.time())

    def memory_mb(self, what="VmRSS"):
        """None: it has ended."""
        if self.process.poll() is not None:
            return None
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{what}:\s*(\d+) kB", status)
        return int(found[1]) // 1024 if found else None


class Cluster:
    """Three nodes on a primary with a synchronous standby (or an asynchronous one), and on a second database.

    Each node has wires of its own to every server.
    """

    SHARDS = 32

    def __init__(self, folder, history, nodes=3, is_synchronous=True, has_small_disk=False, has_clocks=False,
                 heartbeat_timeout=3):
        self.folder, self.history, self.is_synchronous = pathlib.Path(folder), history, is_synchronous
        self.heartbeat_timeout = heartbeat_timeout
        self.servers = self.make_servers(has_small_disk, has_clocks)
        self.primary, self.standby, *self.others = self.servers
        routes = {}
        self.nodes = []
        for name in "abcdefgh"[:nodes]:
            ports = [free_port() for _ in self.servers]
            for server, port in zip(self.servers, ports):
                routes[name, server.port] = (port, server.port)
            # As a user of two servers writes it.
            databases = [f"control={url(ports[:2])}", *(f"second={url([port])}" for port in ports[2:])]
            clock = Clock(self.folder / f"clock-{name}") if has_clocks and name == "abcdefgh"[nodes - 1] else None
            options = ["--heartbeat-timeout", f"{heartbeat_timeout}s"]
            self.nodes.append(Node(name, self.folder, databases, history, options, clock))
        self.proxy = Proxy(routes)

    def start(self):
        self.start_servers()
        for server in self.primaries():
            server.psql("CREATE DATABASE tocsin TEMPLATE template0 ENCODING 'UTF8'", "postgres")
        # A node that asks the standby first would hear that there is no such database.
        eventually(lambda: "tocsin" in self.standby.psql("SELECT datname FROM pg_database", "postgres").split(),
                   "the standby has the database")
        first, *others = self.nodes
        first.start(["--migrate", "--shards", str(self.SHARDS)])
        first.wait_until_ready()
        for node in others:
            node.start()
        self.wait_until_well()

    def make_servers(self, has_small_disk, has_clocks):
        # One for the primary and its standby: a promotion is no step of the clock.
        control, second = [Clock(self.folder / f"clock-{name}") if has_clocks else None
                           for name in ("control", "second")]
        return [Server(self.folder / f"postgres-{i}" / "disk", free_port(), has_small_disk and i < 2,
                       control if i < 2 else second) for i in range(3)]

    def primaries(self):
        return [self.primary, *self.others]

    def places(self):
        """By shard, the number of the database in which it lives: its index in primaries()."""
        return list(map(int, self.primary.psql("SELECT unnest(places) FROM tocsin.shard_map").split()))

    def business_databases(self):
        """As callers of SQL name them: directly, wherever the primary is."""
        first = ",".join(str(server.port) for server in (self.primary, self.standby))
        hosts = ",".join(["127.0.0.1"] * 2)
        more = "user=postgres dbname=tocsin connect_timeout=2 target_session_attrs=read-write"
        return [f"host={hosts} port={first} {more}",
                *(f"host=127.0.0.1 port={server.port} {more}" for server in self.others)]

    def start_servers(self):
        for server in self.primaries():
            server.create()
            server.configure(False)
            server.start()
        self.attach_standby()

    def stop(self):
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.signal(signal.SIGCONT)
                node.kill()
        self.proxy.stop()
        for server in self.servers:
            server.remove()

    def wait_until_well(self):
        """Every primary answers, the standby streams, every node is ready, and the shards are shared out."""
        for server in self.primaries():
            eventually(server.answers, f"the server on port {server.port} answers")
        self.mend_standby()
        for node in self.nodes:
            node.wait_until_ready()
        eventually(self.is_shared, "the shards are shared out")

    def is_shared(self):
        status, nodes = self.nodes[0].get("/v1/nodes")
        return status == 200 and len(self.nodes) == sum(
            item["state"] == "active" and item["shards"] > 0 for item in nodes["items"])

    def command(self, *words):
        """Runs a command of the program, on the databases directly. False: it failed, and the log says why."""
        databases = [f"control={url([self.primary.port, self.standby.port])}",
                     *(f"second={url([server.port])}" for server in self.others)]
        options = [word for database in databases for word in ("--database", database)]
        with open(self.folder / "commands.log", "ab") as log:
            return subprocess.run([binary(), *words, *options], stdout=log, stderr=log, check=False).returncode == 0

    def find(self, job_id):
        """The id of the job that REST finds under this one; None: there is no such job."""
        def answer():
            status, reply = self.nodes[0].get(f"/v1/jobs/{job_id}")
            return (reply.get("job_id"),) if status in (200, 404) else None
        return eventually(answer, f"job {job_id} is looked up")[0]

    # ---- servers

    def attach_standby(self):
        """Makes the other server a standby of the primary, and waits until commits are on both."""
        self.standby.copy_from(self.primary)
        self.standby.start()
        eventually(self.standby_streams, "the standby streams")
        if self.is_synchronous:
            self.primary.configure(True)
            eventually(lambda: self.primary.has_standby("sync"), "the standby is synchronous")

    def standby_streams(self):
        return self.primary.has_standby("async", "sync")

    def mend_standby(self):
        """A primary that crashed may have recycled log that the standby lacks: it would never stream again."""
        try:
            eventually(self.standby_streams, "the standby streams", STANDBY_PATIENCE_S)
        except TimeoutError:
            self.history.write("note", t=time.time(), text="the standby did not come back, and was built anew")
            self.rebuild_standby()

    def promote(self):
        """The standby becomes the primary; the old one is told nothing."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def rebuild_standby(self):
        self.standby.stop("immediate")
        self.attach_standby()

    # ---- wires

    def set_wires(self, node, mode, **settings):
        for server in self.servers:
            self.proxy.set((node.name, server.port), mode, **settings)

    # ---- the end

    def wait_until_at_rest(self, patience=120):
        """Nothing is pending or running, or on its way from one database to another."""
        live = """SELECT (SELECT count(*) FROM tocsin.job WHERE status IN ('pending', 'running'))
                  + (SELECT count(*) FROM tocsin.outbox WHERE settled_at IS NULL)"""
        deadline = time.monotonic() + patience
        while left := sum(int(server.psql(live)) for server in self.primaries()):
            if time.monotonic() > deadline:
                return left
            time.sleep(0.3)
        return 0
