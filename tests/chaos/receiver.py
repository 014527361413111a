"""The receiver of webhooks: writes down every start when it has answered. A process of its own.

A request starts when it arrives at this machine, as the kernel says. So a receiver that had no processor for seconds,
whose senders have given up, does not make starts late, and nothing else may. Its answers may be late, too: the event
says when it began to send the answer, and when that was done.

What it answers is drawn from the job's key, so that a job is treated alike wherever and whenever it comes.
"""
import contextlib
import http.server
import io
import json
import multiprocessing
import os
import socket
import struct
import threading
import time
import zlib

from history import Writer

SLOW_S = 0.3
# Of a later attempt: it still runs when a node that was frozen brings the outcome of the first. Not so long that the
# sender gives it up, even if the receiver waits for the processor.
LATER_S = 1.0
STOP_S = 5  # for what is still to be answered when the receiver is stopped
SO_TIMESTAMPNS = 35  # of Linux: each read tells when its bytes arrived; Python has no name for it
TIMESPEC = struct.Struct("qq")
# Of TCP_INFO: the state of the connection, and how long ago its last data arrived (ms).
TCP_STATE = struct.Struct("B")
LAST_DATA = struct.Struct("52xI")
CLOSED_BY_PEER = 8
TICK_S = 0.01  # the kernel counts the age of the last data in ticks, of at most so long


def answer_to(biz_id, attempt):
    """done, fail or dead, and how long it takes."""
    lot = zlib.crc32(biz_id.encode()) % 100
    if lot == 0:
        return "fail", 0.0  # always: it dies of its attempts
    if lot == 1:
        return "dead", 0.0
    if lot < 6 and attempt == 1:
        return "fail", 0.0
    if lot >= 30:
        return "done", 0.0
    return "done", SLOW_S if attempt == 1 else LATER_S  # so many that some are running whenever a node dies


CODES = {"done": 204, "fail": 500, "dead": 410}


class Arrivals(io.RawIOBase):
    """Reads from a socket, and knows when the last bytes arrived (`at`).

    The kernel gives a packet that waits to be read, and the end of the connection behind it, one time: that of the end.
    So if the sender has given up meanwhile, the age of the last data tells when they came.
    """

    def __init__(self, connection):
        self.connection, self.at = connection, None

    def readable(self):
        return True

    def readinto(self, buffer):
        n, notes, _, _ = self.connection.recvmsg_into([buffer], socket.CMSG_SPACE(TIMESPEC.size))
        for level, kind, data in notes:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = TIMESPEC.unpack(data)
                self.at = seconds + nanoseconds / 1e9
        info = self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA.size)
        if n and TCP_STATE.unpack_from(info)[0] == CLOSED_BY_PEER:
            age_ms, = LAST_DATA.unpack(info)
            self.at = min(self.at, time.time() - age_ms / 1000 + TICK_S)
        return n


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    history = None

    def setup(self):
        super().setup()
        self.arrivals = Arrivals(self.connection)
        self.rfile = io.BufferedReader(self.arrivals)

    def do_POST(self):
        job = json.loads(self.rfile.read(int(self.headers["content-length"])))["data"]
        started = self.arrivals.at
        attempt = int(self.headers["tocsin-attempt"])
        answer, takes = answer_to(job["biz_id"], attempt)
        if job["biz_type"] in ("few", "paced"):
            answer, takes = "done", SLOW_S if job["biz_type"] == "few" else 0.0
        with self.server.answering():
            time.sleep(takes)
            takes = time.time() - started
            try:
                self.send_response(CODES[answer])
                self.send_header("content-length", "0")
                self.end_headers()
            finally:  # it started, whoever hears of it
                self.history.write("start", t=started, id=self.headers["webhook-id"], attempt=attempt, answer=answer,
                                   takes=takes, sent_in=time.time() - started, node=job["node"],
                                   sent=int(self.headers["webhook-timestamp"]))

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 4096  # as many as Linux allows: a request beyond it is one that no handler saw
    daemon_threads = True

    def __init__(self, *settings):
        self.unanswered, self.changed = 0, threading.Condition()
        super().__init__(*settings)

    @contextlib.contextmanager
    def answering(self):
        self.count(1)
        try:
            yield
        finally:
            self.count(-1)

    def count(self, change):
        with self.changed:
            self.unanswered += change
            self.changed.notify_all()

    def wait_until_answered(self, patience):
        with self.changed:
            return self.changed.wait_for(lambda: not self.unanswered, patience)

    def server_activate(self):
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)  # connections inherit it
        super().server_activate()

    def handle_error(self, *_):
        pass  # a node that was killed, or is gone


def serve(port, path, commands):
    with contextlib.suppress(PermissionError):  # it is root who may
        os.nice(-10)  # what all wait for, on a machine that has no processor to spare
    Handler.history = Writer(path)
    server = Server(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    commands.send("ready")
    try:
        commands.recv()
    except EOFError:
        pass
    server.shutdown()
    server.wait_until_answered(STOP_S)  # its start is written down only then
    Handler.history.close()


class Receiver:
    """The receiver, as the process that started it sees it."""

    def __init__(self, port, path):
        self.url = f"http://127.0.0.1:{port}/"
        context = multiprocessing.get_context("spawn")
        self.commands, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(port, path, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.commands.recv()

    def stop(self):
        self.commands.close()
        self.process.join(2 * STOP_S)
        self.process.kill()
