"""PostgreSQL as many run it: two servers under Patroni, with etcd to agree who is the primary."""
import json
import os
import signal
import subprocess

from cluster import Cluster, free_port
from postgres import BIN, Server, eventually

CONFIG = {
    "scope": "tocsin",
    "bootstrap": {
        "dcs": {
            "ttl": 20, "loop_wait": 1, "retry_timeout": 3, "synchronous_mode": True, "primary_start_timeout": 0,
            "maximum_lag_on_failover": 1 << 20,
            "postgresql": {"use_pg_rewind": False, "use_slots": True,
                           "parameters": {"max_connections": 300, "shared_buffers": "128MB", "timezone": "UTC"}}},
        "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "trust"}],
        "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]},
}


class PatroniServer(Server):
    """A server that Patroni starts, promotes and rebuilds."""

    def __init__(self, name, folder, port, etcd_port):
        super().__init__(folder, port)
        self.name, self.config = name, self.folder / "patroni.yml"
        own = {"name": name, "restapi": {"listen": f"127.0.0.1:{free_port()}"},
               "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
               "postgresql": {"listen": f"127.0.0.1:{port}", "connect_address": f"127.0.0.1:{port}",
                              "bin_dir": str(BIN), "data_dir": str(self.data),
                              "remove_data_directory_on_diverged_timelines": True,
                              "authentication": {role: {"username": "postgres"}
                                                 for role in ("superuser", "replication")},
                              "parameters": {"unix_socket_directories": ""}}}
        own["restapi"]["connect_address"] = own["restapi"]["listen"]
        self.config.write_text(json.dumps(CONFIG | own))  # JSON is YAML

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.become, "/usr/bin/patroni", self.config], cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env={**os.environ, "HOME": str(self.folder)})

    def is_primary(self):
        return self.says("SELECT NOT pg_is_in_recovery()", "t")

    def has_synchronous_standby(self):
        return self.says("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")

    def says(self, question, answer):
        try:
            return self.psql(question, "postgres").strip() == answer
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    def kill(self):
        """The server dies; Patroni is told nothing."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGKILL)

    def remove(self):
        if self.is_running():
            self.process.terminate()  # stops its server too
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.kill()
        super().remove()


class PatroniCluster(Cluster):
    def make_servers(self, has_small_disk, has_clocks):
        self.etcd_port = free_port()
        return [PatroniServer(f"server{i}", self.folder / f"patroni-{i}" / "disk", free_port(), self.etcd_port)
                for i in range(2)]

    def start_servers(self):
        peer = f"http://127.0.0.1:{free_port()}"
        client = f"http://127.0.0.1:{self.etcd_port}"
        with open(self.folder / "etcd.log", "ab") as log:
            self.etcd = subprocess.Popen(
                ["etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", client,
                 "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"default={peer}", "--unsafe-no-fsync"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for server in self.servers:
            server.start()
        self.find_primary()

    def find_primary(self, other_than=None):
        """Waits until one server is the primary, another one than before, and the other its synchronous standby."""
        def is_found():
            return any(server is not other_than and server.is_primary() and server.has_synchronous_standby()
                       for server in self.servers)
        eventually(is_found, "Patroni has a primary and a standby", 120)
        self.primary, self.standby = sorted(self.servers, key=PatroniServer.is_primary, reverse=True)

    def switch_over(self):
        """As an operator does before maintenance; refused until Patroni trusts the standby."""
        old = self.primary
        def is_done():
            done = subprocess.run(
                [*old.become, "/usr/bin/patronictl", "-c", old.config, "switchover", "tocsin", "--force",
                 "--master", old.name, "--candidate", self.standby.name],
                cwd="/", check=False, text=True, capture_output=True)
            return "Successfully" in done.stdout
        eventually(is_done, "Patroni switches over", 60)
        self.find_primary(other_than=old)

    def mend_standby(self):
        """Patroni does so by itself; find_primary has waited for it."""

    def stop(self):
        super().stop()
        if etcd := getattr(self, "etcd", None):
            etcd.kill()
            etcd.wait()
