"""A TCP proxy between nodes and databases that misbehaves when told to; a process of its own.

Each route is one node's way to one server. Modes:

  pass       forwards
  blackhole  forwards nothing, drops nothing; what was sent arrives when the mode ends, as after a cut of the network
  half_open  the server's side is closed, the client's side stays open and silent for ever
  reset      every connection is reset, new ones at once
  delay      every piece waits `seconds`
  lose_reply with probability `p` the answer to a COMMIT (p / 20: to any other statement) is lost, the connection reset
"""
import asyncio
import contextlib
import multiprocessing
import random
import socket
import struct
import threading

COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"  # CommandComplete of PostgreSQL's protocol
LINGER_ZERO = struct.pack("ii", 1, 0)  # close() sends RST


class Connection:
    """One client's connection and, unless the route says otherwise, one to the server."""

    def __init__(self, route, reader, writer):
        self.route, self.client_reader, self.client = route, reader, writer
        self.server = None
        self.is_silent = False

    async def serve(self):
        try:
            if self.route.mode == "reset":
                return self.reset()
            if self.route.mode == "half_open":
                self.is_silent = True
                return await self.pump(self.client_reader, None, False)
            await self.route.passing.wait()
            reader, self.server = await self.route.dial()
            await asyncio.gather(self.pump(self.client_reader, self.server, False),
                                 self.pump(reader, self.client, True))
        except OSError:
            pass
        finally:
            self.close(self.server)
            self.close(self.client)
            self.route.connections.discard(self)

    async def pump(self, reader, writer, is_reply):
        while data := await reader.read(1 << 16):
            await self.route.passing.wait()
            if self.is_silent:
                continue
            if self.route.mode == "delay":
                await asyncio.sleep(self.route.seconds)
            if is_reply and self.route.loses(data):
                return self.reset()
            writer.write(data)
            await writer.drain()
        if not self.is_silent:
            self.close(writer)

    def go_silent(self):
        self.is_silent = True
        self.close(self.server)

    def reset(self):
        for writer in (self.client, self.server):
            if writer is not None and (sock := writer.get_extra_info("socket")):
                with contextlib.suppress(OSError):  # closed by its other end meanwhile
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
                writer.transport.abort()

    @staticmethod
    def close(writer):
        if writer is not None:
            writer.close()


class Route:
    def __init__(self, port, target):
        self.port, self.listener, self.is_away = port, None, False
        self.target, self.mode, self.p, self.seconds = target, "pass", 0.0, 0.0
        self.connections, self.passing, self.random = set(), asyncio.Event(), random.Random(1)
        self.passing.set()

    async def listen(self):
        self.listener = await asyncio.start_server(self.accept, "127.0.0.1", self.port)

    async def dial(self):
        try:
            return await asyncio.open_connection(*self.target)
        except OSError:
            if not self.is_away:
                self.is_away = True
                self.listener.close()
                self.returning = asyncio.create_task(self.come_back())
            raise

    async def come_back(self):
        """A server that is down refuses; so does the way to it, or clients would not turn to the next one at once."""
        while self.is_away:
            await asyncio.sleep(0.05)
            try:
                _, writer = await asyncio.open_connection(*self.target)
            except OSError:
                continue
            writer.close()
            self.is_away = False
        await self.listen()

    async def accept(self, reader, writer):
        connection = Connection(self, reader, writer)
        self.connections.add(connection)
        await connection.serve()

    def loses(self, data):
        if self.mode != "lose_reply":
            return False
        return self.random.random() < (self.p if COMMITTED in data else self.p / 20)

    def set(self, mode, p=0.0, seconds=0.0):
        self.mode, self.p, self.seconds = mode, p, seconds
        (self.passing.clear if mode == "blackhole" else self.passing.set)()
        for connection in list(self.connections):
            if mode == "reset":
                connection.reset()
            elif mode == "half_open":
                connection.go_silent()


async def run(routes, commands):
    """routes: (listening port, target port)..."""
    made = []
    for port, target in routes:
        made.append(Route(port, ("127.0.0.1", target)))
        await made[-1].listen()
    over = asyncio.Event()

    def obey():
        try:
            index, settings = commands.recv()
        except EOFError:
            return over.set()
        try:
            made[index].set(**settings)
            commands.send(None)
        except Exception as error:  # told to whoever waits for the answer
            commands.send(error)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # connections that are cut at the end
    loop.add_reader(commands.fileno(), obey)
    commands.send("ready")
    await over.wait()


def serve(routes, commands):
    asyncio.run(run(routes, commands))


class Proxy:
    """The proxy, as the process that tells it what to do sees it. Thread: any."""

    def __init__(self, routes):
        """routes: {name: (listening port, target port)}"""
        self.names, self.lock = list(routes), threading.Lock()
        context = multiprocessing.get_context("spawn")
        self.commands, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(list(routes.values()), theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.commands.recv()

    def set(self, name, mode, **settings):
        with self.lock:
            self.commands.send((self.names.index(name), {"mode": mode, **settings}))
            if error := self.commands.recv():
                raise error

    def stop(self):
        self.commands.close()
        self.process.join(5)
        self.process.kill()
