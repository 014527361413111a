"""When a webhook starts: when its request arrives, however late the receiver reads it."""
import http.client
import json
import threading
import time
import unittest
from unittest import mock

from postgres import eventually
from receiver import Handler, Server


class TheReceiver(unittest.TestCase):
    def setUp(self):
        self.events = []
        history = mock.Mock(write=lambda event, **fields: self.events.append((event, fields)))
        self.enterContext(mock.patch.object(Handler, "history", history))
        self.server = Server(("127.0.0.1", 0), Handler)
        self.addCleanup(self.server.server_close)
        self.caller = http.client.HTTPConnection(*self.server.server_address, timeout=30)
        self.addCleanup(self.caller.close)

    def serve(self):
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(self.server.shutdown)

    def send(self, type="paced"):
        """(earliest, latest) moment of the arrival."""
        earliest = time.time()
        body = {"data": {"biz_id": "k", "biz_type": type, "node": "a"}}
        self.caller.request("POST", "/", json.dumps(body),
                            {"webhook-id": "1", "tocsin-attempt": "1", "webhook-timestamp": "10"})
        return earliest, time.time()

    def test_writes_when_its_answer_was_sent_and_waits_for_that(self):
        self.serve()
        with mock.patch("receiver.answer_to", lambda *_: ("done", 0.3)):
            self.send(type="hook")
            eventually(lambda: self.server.unanswered, "the request is there")
            self.assertEqual(self.events, [])
            self.assertFalse(self.server.wait_until_answered(0))
            self.assertTrue(self.server.wait_until_answered(5))
        (_, fields), = self.events
        self.assertGreaterEqual(fields["sent_in"], 0.3)

    def test_writes_down_a_start_whose_answer_nobody_hears(self):
        self.serve()
        with mock.patch.object(Handler, "end_headers", side_effect=BrokenPipeError):
            self.send()
            eventually(lambda: self.events, "the start is written")

    def start(self, arrival):
        """The event of the request, whose answer is awaited."""
        answer = self.caller.getresponse()
        answer.read()
        self.assertTrue(self.server.wait_until_answered(5))
        self.assertEqual(answer.status, 204)
        event, fields = self.events.pop()
        self.assertEqual((event, fields["id"], fields["sent"]), ("start", "1", 10))
        self.assertLessEqual(arrival[0], fields["t"] + 1e-3)
        self.assertLessEqual(fields["t"], arrival[1] + 1e-3)
        return fields

    def test_tells_when_a_request_arrived_that_waited_for_it(self):
        arrival = self.send()
        began = time.time()
        self.serve()
        fields = self.start(arrival)
        self.assertGreaterEqual(fields["t"] + fields["takes"], began)
        self.assertGreaterEqual(fields["sent_in"], fields["takes"])

    def test_tells_when_a_request_arrived_whose_sender_gave_up_before_it_was_read(self):
        arrival = self.send()
        time.sleep(0.5)
        self.caller.close()
        self.serve()
        eventually(lambda: self.events, "the start is written")
        (_, fields), = self.events
        self.assertLessEqual(arrival[0], fields["t"] + 1e-3)
        self.assertLessEqual(fields["t"], arrival[1] + 0.1)

    def test_tells_the_arrival_of_each_request_of_a_connection(self):
        self.serve()
        first = self.start(self.send())
        second = self.start(self.send())
        self.assertGreater(second["t"], first["t"])


if __name__ == "__main__":
    unittest.main()
