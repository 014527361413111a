"""The proxy misbehaves as it is told to, and not otherwise."""
import socket
import threading
import unittest

from cluster import free_port
from postgres import eventually
from proxy import COMMITTED, Proxy

MOMENT_S = 0.2  # in which nothing must come


def echo(listener):
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(peer,), daemon=True).start()


def answer(peer):
    try:
        while data := peer.recv(1000):
            peer.sendall(data)
    except OSError:
        pass
    peer.close()


class ProxyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=echo, args=(cls.listener,), daemon=True).start()
        cls.port = free_port()
        cls.proxy = Proxy({"route": (cls.port, cls.listener.getsockname()[1])})

    @classmethod
    def tearDownClass(cls):
        cls.proxy.stop()
        cls.listener.close()

    def setUp(self):
        self.proxy.set("route", "pass")
        self.wire = self.connect()
        self.assertEqual(self.ask(b"hello"), b"hello")

    def connect(self):
        wire = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self.addCleanup(wire.close)
        return wire

    def ask(self, text):
        self.wire.sendall(text)
        return self.wire.recv(1000)

    def assert_silent(self, wire):
        wire.settimeout(MOMENT_S)
        with self.assertRaises(TimeoutError):
            wire.recv(1000)
        wire.settimeout(30)

    def test_a_black_hole_holds_back_and_then_gives_everything(self):
        self.proxy.set("route", "blackhole")
        self.wire.sendall(b"late")
        self.assert_silent(self.wire)
        self.proxy.set("route", "pass")
        self.assertEqual(self.wire.recv(1000), b"late")

    def test_a_half_open_connection_stays_silent_for_ever_and_a_new_one_works(self):
        self.proxy.set("route", "half_open")
        new = self.connect()
        new.sendall(b"anybody?")
        self.wire.sendall(b"anybody?")
        self.assert_silent(new)
        self.proxy.set("route", "pass")
        self.assert_silent(self.wire)
        self.wire = self.connect()
        self.assertEqual(self.ask(b"hello"), b"hello")

    def test_a_reset_ends_old_and_new_connections(self):
        self.proxy.set("route", "reset")
        with self.assertRaises(ConnectionError):
            self.ask(b"hello") or self.ask(b"hello")
        with self.assertRaises(ConnectionError):
            self.wire = self.connect()  # the reset may come before it returns
            if self.ask(b"hello") == b"":
                raise ConnectionError

    def test_an_answer_to_a_commit_is_lost_and_the_rest_arrives(self):
        self.proxy.set("route", "lose_reply", p=1.0)
        with self.assertRaises(ConnectionError):
            if self.ask(COMMITTED) == b"":
                raise ConnectionError

    def test_it_refuses_while_its_server_is_down(self):
        port, target = free_port(), free_port()
        proxy = Proxy({"route": (port, target)})
        self.addCleanup(proxy.stop)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as first:
            self.assertEqual(first.recv(1000), b"")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)
        with socket.create_server(("127.0.0.1", target)) as server:
            server.accept()[0].close()  # the proxy looks whether it is back
            eventually(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), "the proxy is back")

    def test_delay_delays(self):
        self.proxy.set("route", "delay", seconds=2 * MOMENT_S)
        self.wire.sendall(b"slow")
        self.assert_silent(self.wire)
        self.assertEqual(self.wire.recv(1000), b"slow")


if __name__ == "__main__":
    unittest.main()
