"""PostgreSQL servers of the cluster under test: started, crashed, promoted, rebuilt and run out of disk."""
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import time

FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
BIN = pathlib.Path(os.environ.get("TOCSIN_PG_BIN", "/usr/lib/postgresql/15/bin"))
PATIENCE_S = 60
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 300
shared_buffers = 256MB
max_wal_size = 1GB
wal_level = logical  # shards move
hot_standby = on
wal_retrieve_retry_interval = '500ms'  # no commit is acknowledged until the standby has come back
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %a '
include_if_exists = 'chaos.conf'
"""
DISK_MB = 6144  # of the small disk while it is not full; memory is taken only for what lies there


def eventually(condition, what, patience=PATIENCE_S):
    """Waits until condition() holds; its value. Throws TimeoutError."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {patience} s")
        time.sleep(0.05)
    return value


class Clock:
    """The wall clock of one process, which may be set. Its monotonic clock stays true, as when an operator does so."""

    def __init__(self, path):
        self.path = path
        self.set("+0")

    def set(self, offset):
        """`offset`: seconds with their sign. Holds for the process within a second."""
        self.path.write_text(offset + "\n")

    def environment(self):
        return {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self.path), "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


class Server:
    """One server in `folder`, whose data lies in `folder`/data. Runs as user postgres when we are root."""

    def __init__(self, folder, port, is_on_small_disk=False, clock=None):
        self.folder, self.port, self.process, self.clock = pathlib.Path(folder), port, None, clock
        self.data = self.folder / "data"
        self.log = self.folder.parent / "log"  # not on a disk that is full
        self.owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self.become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if self.owner else []
        self.folder.mkdir(parents=True)
        self.is_mounted = is_on_small_disk and self.mount(f"size={DISK_MB}m")
        if self.owner:
            os.chown(self.folder, self.owner.pw_uid, self.owner.pw_gid)

    # ---- running

    def run(self, program, *arguments):
        done = subprocess.run(self.command(program, arguments), cwd="/", text=True, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.strip()}")
        return done.stdout

    def command(self, program, arguments):
        return [*self.become, str(BIN / program), *map(str, arguments)]

    def create(self):
        self.run("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8")
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(SETTINGS)

    def copy_from(self, primary):
        """Becomes a standby of `primary`; what was here is forgotten."""
        self.wipe()
        self.run("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "-d",
                 f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby")
        self.configure(False)

    def wipe(self):
        shutil.rmtree(self.data, ignore_errors=True)

    def start(self):
        log = open(self.log, "ab")
        # As its own user: libfaketime makes a semaphore that no other user may open.
        clock = ["env", *(f"{name}={value}" for name, value in self.clock.environment().items())] if self.clock else []
        self.process = subprocess.Popen(
            [*self.become, *clock, str(BIN / "postgres"), "-D", str(self.data), "-p", str(self.port)], cwd="/",
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        eventually(self.answers, f"server on port {self.port} starts")

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the server on port {self.port} ended: {self.last_words()}")
        is_ready = subprocess.run([BIN / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False)
        return is_ready.returncode == 0

    def last_words(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])

    def stop(self, mode="fast"):
        """immediate: as a crash would; the next start recovers from the log."""
        if self.is_running():
            self.run("pg_ctl", "stop", "-w", "-s", "-m", mode, "-D", self.data)
            self.process.wait()

    def die_unheard(self, seconds):
        """Sends its standbys nothing more for some seconds, and dies with what they have not got."""
        senders = list(map(int, self.psql("SELECT pid FROM pg_stat_replication", "postgres").split()))
        for pid in senders:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGQUIT)
        for pid in senders:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def remove(self):
        """Stops it and deletes its data; the log stays."""
        if self.is_running():
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        if self.is_mounted:
            subprocess.run(["umount", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- asking

    def psql(self, sql, database="tocsin", patience=30):
        """The rows as text, one per line, columns separated by tabs. Throws RuntimeError."""
        done = subprocess.run([BIN / "psql", "-qXAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", sql,
                               self.dsn(database)], text=True, capture_output=True, check=False, timeout=patience)
        if done.returncode:
            raise RuntimeError(f"{sql}: {done.stderr.strip()}")
        return done.stdout

    def dsn(self, database="tocsin"):
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database} connect_timeout=5"

    # ---- replication

    def configure(self, is_synchronous, is_read_only=False):
        """Rewrites what changes while it runs."""
        text = f"synchronous_standby_names = '{'*' if is_synchronous else ''}'\n"
        text += f"default_transaction_read_only = {'on' if is_read_only else 'off'}\n"
        (self.data / "chaos.conf").write_text(text)
        if self.is_running():
            self.process.send_signal(signal.SIGHUP)

    def promote(self):
        self.run("pg_ctl", "promote", "-w", "-s", "-D", self.data)

    def has_standby(self, *states):
        found = self.psql("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'", "postgres")
        return bool(set(states) & set(found.split()))

    # ---- a disk that can be full

    def mount(self, options):
        """A file system in memory, whose size can change: full without filling it. False: this machine refuses."""
        return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.folder], check=False,
                              stderr=subprocess.DEVNULL).returncode == 0

    def fill_disk(self):
        """No page more fits. Where nothing may be mounted: no file may grow beyond 8 MB, which fails many."""
        if not self.is_mounted:
            self.limit_files(str(8 << 20))
            return
        for _ in range(50):  # a size below what is in use by then is refused
            space = os.statvfs(self.folder)
            used = (space.f_blocks - space.f_bfree) * space.f_frsize
            done = subprocess.run(["mount", "-o", f"remount,size={used // 1024 + 64}k", self.folder], check=False,
                                  text=True, capture_output=True)
            if done.returncode == 0:
                return
        raise RuntimeError(f"the disk cannot be filled: {done.stderr.strip()}")

    def free_disk(self):
        if self.is_mounted:
            subprocess.run(["mount", "-o", f"remount,size={DISK_MB}m", self.folder], check=True)
        else:
            self.limit_files("unlimited")

    def limit_files(self, size):
        """As the owner of the processes, which needs no further right. One that has ended meanwhile is none."""
        for pid in self.processes():
            subprocess.run([*self.become, "prlimit", "--pid", str(pid), f"--fsize={size}:"], check=False,
                           stderr=subprocess.DEVNULL)

    def processes(self):
        """The server and its children."""
        if not self.is_running():
            return []
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], text=True, capture_output=True,
                                  check=False).stdout
        return [self.process.pid, *map(int, re.findall(r"\d+", children))]
