"""The receiver of webhooks: writes down every start before it answers. A process of its own.

What it answers is drawn from the job's key, so that a job is treated alike wherever and whenever it comes.
"""
import http.server
import json
import multiprocessing
import threading
import time
import zlib

from history import Writer

SLOW_S = 0.3


def answer_to(biz_id, attempt):
    """done, fail or dead, and how long it takes."""
    lot = zlib.crc32(biz_id.encode()) % 100
    if lot == 0:
        return "fail", 0.0  # always: it dies of its attempts
    if lot == 1:
        return "dead", 0.0
    if lot < 6 and attempt == 1:
        return "fail", 0.0
    return "done", SLOW_S if lot < 9 else 0.0


CODES = {"done": 204, "fail": 500, "dead": 410}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    history = None

    def do_POST(self):
        started = time.time()
        job = json.loads(self.rfile.read(int(self.headers["content-length"])))["data"]
        attempt = int(self.headers["tocsin-attempt"])
        answer, takes = answer_to(job["biz_id"], attempt)
        if job["biz_type"] in ("few", "paced"):
            answer, takes = "done", SLOW_S if job["biz_type"] == "few" else 0.0
        self.history.write("start", t=started, id=self.headers["webhook-id"], attempt=attempt, answer=answer,
                           takes=takes, node=job["node"], sent=int(self.headers["webhook-timestamp"]))
        if takes:
            threading.Event().wait(takes)
        self.send_response(CODES[answer])
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a node that was killed, or is gone


def serve(port, path, commands):
    Handler.history = Writer(path)
    server = Server(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    commands.send("ready")
    try:
        commands.recv()
    except EOFError:
        pass
    server.shutdown()
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
        self.process.join(5)
        self.process.kill()
