#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdio>
#include <fstream>

#include "delivery/signature.h"
#include "unit/delivery/webhook_fixture.h"

namespace tocsin {
namespace {

class WebhookWithOneConnection : public Webhook {
 protected:
  WebhookWithOneConnection() : Webhook({"1.2.3", {.max_connections = 1}}) {}
};

TEST_F(Webhook, PostsTheJobWithItsHeaders) {
  ScriptedServer server(always(kOk));
  ClaimedJob job = a_job();
  job.job.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(deliver(url_of(server), {{"headers", {{"X-Shop", "a, b"}}}}, job).kind, Kind::done);

  ASSERT_EQ(server.requests().size(), 1u);
  ReceivedRequest request = server.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/hook?a=b");
  EXPECT_EQ(
      json::parse(request.body),
      json::parse(R"({"type":"order.unpaid","timestamp":"2026-03-01T12:00:00.250000Z","data":{"job_id":"65537"}})"));
  EXPECT_EQ(request.headers["host"], "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(request.headers["content-type"], "application/json");
  EXPECT_EQ(request.headers["content-length"], std::to_string(request.body.size()));
  EXPECT_EQ(request.headers["user-agent"], "tocsin/1.2.3");
  EXPECT_EQ(request.headers["webhook-id"], "65537");
  EXPECT_EQ(request.headers["webhook-timestamp"], "1700000000");
  EXPECT_EQ(request.headers["tocsin-attempt"], "3");
  EXPECT_EQ(request.headers["traceparent"], *job.job.traceparent);
  EXPECT_EQ(request.headers["x-shop"], "a, b");
  EXPECT_FALSE(request.headers.contains("webhook-signature"));
}

TEST_F(Webhook, SignsWhatItSends) {
  ScriptedServer server(always(kOk));
  deliver(url_of(server), {{"secret", kSecret}});
  ReceivedRequest request = server.requests().at(0);
  EXPECT_EQ(request.headers["webhook-signature"],
            sign_webhook(std::vector{*decode_webhook_secret(kSecret)}, "65537", 1700000000, request.body));
}

TEST_F(Webhook, EndsDoneOnEvery2xx) {
  for (const char* status : {"200 OK", "201 Created", "202 Accepted", "299 Odd"}) {
    ScriptedServer server(always(answer(status)));
    EXPECT_EQ(deliver(url_of(server)).kind, Kind::done) << status;
  }
  ScriptedServer silent(always("HTTP/1.1 204 No Content\r\n\r\n"));
  EXPECT_EQ(deliver(url_of(silent)).kind, Kind::done);
}

TEST_F(Webhook, EndsDeadOn410) {
  ScriptedServer server(always(answer("410 Gone")));
  const Outcome outcome = deliver(url_of(server));
  EXPECT_EQ(outcome.kind, Kind::dead);
  EXPECT_NE(outcome.message.find("answered 410 Gone"), std::string::npos) << outcome.message;
}

TEST_F(Webhook, RetriesOnEveryOtherStatus) {
  for (const char* status :
       {"101 Switching Protocols", "400 Bad Request", "404 Not Found", "500 Internal Server Error", "999 Odd"}) {
    ScriptedServer server(always(answer(status)));
    const Outcome outcome = deliver(url_of(server));
    EXPECT_EQ(outcome.kind, Kind::retry) << status;
    EXPECT_NE(outcome.message.find(std::string("answered ") + std::string(status).substr(0, 3)), std::string::npos)
        << outcome.message;
    EXPECT_FALSE(outcome.retry_after) << status;
    EXPECT_EQ(server.requests().size(), 1u);
  }
}

TEST_F(Webhook, FollowsNoRedirect) {
  ScriptedServer server(always(answer("307 Temporary Redirect", "Location: /elsewhere\r\n")));
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::retry);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Webhook, HonoursRetryAfterOf429And503) {
  struct Case {
    const char* status;
    const char* value;
    std::optional<Duration> expected;
  };
  for (const Case& c :
       {Case{"429 Too Many Requests", "17", 17s}, Case{"503 Service Unavailable", "0", {}},
        Case{"503 Busy", "99999999", 24h}, Case{"429 Slow", "99999999999999999999999", 24h}, Case{"429 Slow", "-5", {}},
        Case{"429 Slow", "1.5", {}}, Case{"429 Slow", "Tue, 14 Nov 2023 22:13:30 GMT", 9100ms},
        Case{"429 Slow", "2023-11-14", {}}, Case{"500 Broken", "17", {}}}) {
    ScriptedServer server(always(answer(c.status, std::string("Retry-After: ") + c.value + "\r\n")));
    const Outcome outcome = deliver(url_of(server));
    EXPECT_EQ(outcome.kind, Kind::retry);
    EXPECT_EQ(outcome.retry_after, c.expected) << c.status << " " << c.value;
    EXPECT_TRUE(outcome.is_lower_bound) << "a restarting gateway must not use up the attempts";
  }
}

TEST_F(Webhook, WaitsForTheAnswerBehindInterimOnes) {
  ScriptedServer server(
      always("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + answer("410 Gone")));
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::dead);
}

TEST_F(Webhook, GivesUpOnADrippingAnswerAtItsTotalTimeout) {
  ScriptedServer server([](ScriptedServer::Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nX-Drip: ");
    while (!peer.is_closed_within(5ms) && peer.write("x")) {  // every byte comes well within the timeout
    }
  });
  const Outcome outcome = deliver(url_of(server), {{"timeout_ms", 100}});
  EXPECT_EQ(outcome.kind, Kind::retry);
  EXPECT_NE(outcome.message.find("timed out while waiting for the answer"), std::string::npos) << outcome.message;
  server.wait_for_closed(1);
}

TEST_F(Webhook, GivesUpAtTheEndOfTheLease) {
  ScriptedServer server([](ScriptedServer::Peer& peer) { peer.wait_for_close(); });
  const Outcome outcome = deliver(url_of(server), {{"timeout_ms", 3600000}}, a_job(50ms));
  EXPECT_EQ(outcome.kind, Kind::retry);
  server.wait_for_closed(1);
}

TEST_F(Webhook, TakesTheStatusEvenWhenTheBodyStalls) {
  ScriptedServer server([](ScriptedServer::Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    peer.wait_for_close();
  });
  EXPECT_EQ(deliver(url_of(server), {{"timeout_ms", 100}}).kind, Kind::done);
  server.wait_for_closed(1);  // and does not keep the connection beyond the timeout
}

TEST_F(Webhook, ReadsNoHugeBody) {
  std::size_t written = 0;
  ScriptedServer server([&](ScriptedServer::Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 500 Broken\r\nContent-Length: 1000000000000\r\n\r\n");
    const std::string chunk(1 << 16, 'x');
    while (peer.write(chunk)) written += chunk.size();
  });
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::retry);
  server.wait_for_closed(1);
  EXPECT_LT(written, 64u << 20);  // what sockets buffer, and no more
}

TEST_F(Webhook, ReadsNoEndlessHeader) {
  ScriptedServer server([](ScriptedServer::Peer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\n");
    while (peer.write("X-More: of the same\r\n")) {
    }
  });
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::retry);
  server.wait_for_closed(1);
}

TEST_F(Webhook, RetriesOnAnAnswerThatIsNotHttp) {
  for (const char* garbage : {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "\r\n\r\n\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
                              "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"}) {
    ScriptedServer server([&](ScriptedServer::Peer& peer) { peer.read_request() && peer.write(garbage); });
    const Outcome outcome = deliver(url_of(server));
    EXPECT_EQ(outcome.kind, Kind::retry) << garbage;
    EXPECT_NE(outcome.message.find("malformed HTTP"), std::string::npos) << outcome.message;
    EXPECT_EQ(server.requests().size(), 1u);
  }
}

TEST_F(Webhook, RetriesWhenTheConnectionIsRefused) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor bound(io);
  bound.open(boost::asio::ip::tcp::v4());
  bound.bind({boost::asio::ip::address_v4::loopback(), 0});  // holds the port, listens not
  const std::string origin = "http://127.0.0.1:" + std::to_string(bound.local_endpoint().port());
  const Outcome outcome = deliver(origin + "/hook?token=hidden");
  EXPECT_EQ(outcome.kind, Kind::retry);
  EXPECT_EQ(outcome.message, origin + ": connecting: Connection refused");
}

TEST_F(Webhook, RetriesWhenTheNameDoesNotResolve) {
  const Outcome outcome = deliver("http://" + std::string(70, 'a') + "/");  // no label is that long
  EXPECT_EQ(outcome.kind, Kind::retry);
  EXPECT_NE(outcome.message.find("resolving the name"), std::string::npos) << outcome.message;
}

TEST_F(Webhook, SendsNothingTwiceWhenTheConnectionDies) {
  ScriptedServer before([](ScriptedServer::Peer&) {});
  EXPECT_EQ(deliver(url_of(before)).kind, Kind::retry);
  EXPECT_EQ(before.connections(), 1);

  ScriptedServer after([](ScriptedServer::Peer& peer) { peer.read_request(); });
  EXPECT_EQ(deliver(url_of(after)).kind, Kind::retry);
  EXPECT_EQ(after.requests().size(), 1u);
  EXPECT_EQ(after.connections(), 1);

  // The same on a kept connection: the second request is written there, fails there, and is not written again.
  ScriptedServer second([](ScriptedServer::Peer& peer) {
    peer.read_request();
    peer.write(kOk);
    peer.read_request();
  });
  EXPECT_EQ(deliver(url_of(second)).kind, Kind::done);
  EXPECT_EQ(deliver(url_of(second)).kind, Kind::retry);
  EXPECT_EQ(second.requests().size(), 2u);
  EXPECT_EQ(second.connections(), 1);
}

TEST_F(Webhook, KeepsConnections) {
  for (const std::string& reply :
       {std::string(kOk), answer("200 OK"), answer("500 Broken"),
        "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + std::string(3000, 'x'),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")}) {
    ScriptedServer server(always(reply));
    for (int i = 0; i < 3; ++i) deliver(url_of(server));
    EXPECT_EQ(server.requests().size(), 3u);
    EXPECT_EQ(server.connections(), 1) << reply;
  }
}

TEST_F(WebhookWithOneConnection, KeepsItWhenTheBodyComesInManyPieces) {
  for (const bool is_chunked : {false, true}) {
    ScriptedServer server([&](ScriptedServer::Peer& peer) {
      while (peer.read_request()) {
        peer.write(is_chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                              : "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n");
        for (int i = 0; i < 60; ++i)
          peer.write(is_chunked ? "3e8\r\n" + std::string(1000, 'x') + "\r\n" : std::string(1000, 'x'));
        if (is_chunked) peer.write("0\r\n\r\n");
      }
    });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(deliver(url_of(server)).kind, Kind::done);
    EXPECT_EQ(server.connections(), 1) << is_chunked;
  }
}

TEST_F(Webhook, KeepsNoConnectionThatThePeerWantsClosed) {
  for (const std::string& reply :
       {answer("200 OK", "Connection: close\r\n"), std::string("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        kOk + std::string("HTTP/1.1 200 OK\r\n")}) {  // the last one says more than was asked
    ScriptedServer server(always(reply));
    EXPECT_EQ(deliver(url_of(server)).kind, Kind::done);
    EXPECT_EQ(deliver(url_of(server)).kind, Kind::done);
    EXPECT_EQ(server.connections(), 2) << reply;
  }
}

TEST_F(Webhook, ReplacesAKeptConnectionThatThePeerHasClosed) {
  ScriptedServer server([](ScriptedServer::Peer& peer) { peer.read_request() && peer.write(kOk); });
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::done);
  server.wait_for_closed(1);
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::done);
  EXPECT_EQ(server.requests().size(), 2u);
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(Webhook, ASilentPeerDelaysNoOther) {
  ScriptedServer silent([](ScriptedServer::Peer& peer) { peer.wait_for_close(); });
  ScriptedServer lively(always(kOk));
  std::vector<std::future<Outcome>> stuck;
  for (int i = 0; i < 20; ++i) stuck.push_back(begin(url_of(silent)));
  EXPECT_EQ(deliver(url_of(lively)).kind, Kind::done);
  client_.stop(0s);
  for (auto& attempt : stuck) EXPECT_EQ(attempt.get().kind, Kind::retry);
}

TEST_F(Webhook, EndsEverythingInFlightWhenStopped) {
  ScriptedServer server([](ScriptedServer::Peer& peer) {
    peer.read_request();
    peer.wait_for_close();
  });
  auto attempt = begin(url_of(server));
  server.wait_for_requests(1);
  client_.stop(0s);
  const Outcome outcome = attempt.get();
  EXPECT_EQ(outcome.kind, Kind::retry);
  EXPECT_NE(outcome.message.find("shutting down"), std::string::npos) << outcome.message;
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::not_started);  // later ones never begin
  EXPECT_EQ(server.requests().size(), 1u);
}

class WebhookWithTwoConnections : public Webhook {
 protected:
  WebhookWithTwoConnections() : Webhook({"1.2.3", {.max_connections = 2}}) {}
};

TEST_F(WebhookWithTwoConnections, QueuesRequestsWithoutAConnection) {
  ScriptedServer server(always(kOk));
  std::vector<std::future<Outcome>> attempts;
  for (int i = 0; i < 50; ++i) attempts.push_back(begin(url_of(server)));
  for (auto& attempt : attempts) EXPECT_EQ(attempt.get().kind, Kind::done);
  EXPECT_EQ(server.requests().size(), 50u);
  EXPECT_LE(server.connections(), 2);
}

TEST_F(WebhookWithTwoConnections, EndsAnAttemptWhoseLeaseEndsInTheQueue) {
  ScriptedServer server([](ScriptedServer::Peer& peer) {
    peer.read_request();
    peer.wait_for_close();
  });
  auto first = begin(url_of(server));
  auto second = begin(url_of(server));
  server.wait_for_requests(2);
  const Outcome third = deliver(url_of(server), json::object(), a_job(30ms));
  EXPECT_EQ(third.kind, Kind::not_started) << "an attempt that never got its turn is none";
  auto queued = begin(url_of(server));
  client_.stop(0s);
  EXPECT_EQ(queued.get().kind, Kind::not_started);
  EXPECT_EQ(server.requests().size(), 2u);
}

class WebhookWithShortIdleTime : public Webhook {
 protected:
  WebhookWithShortIdleTime() : Webhook({"1.2.3", {.idle_timeout = 10ms}}) {}
};

TEST_F(WebhookWithShortIdleTime, ClosesIdleConnections) {
  ScriptedServer server(always(kOk));
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::done);
  server.wait_for_closed(1);
}

// Trusts one certificate for `localhost` and one for another name.
class WebhookOverTls : public Webhook {
 protected:
  WebhookOverTls() : Webhook({"1.2.3", {.ca_file = write_trusted()}}) {}
  ~WebhookOverTls() override { std::remove(path().c_str()); }

  static std::string path() {
    return testing::TempDir() + "tocsin_webhook_test_ca." + std::to_string(::getpid()) + ".pem";
  }
  static const TlsIdentity& localhost() {
    static const TlsIdentity identity = make_identity("localhost");
    return identity;
  }
  static const TlsIdentity& other_name() {
    static const TlsIdentity identity = make_identity("other.example");
    return identity;
  }
  static std::string write_trusted() {
    std::ofstream(path()) << localhost().certificate << other_name().certificate;
    return path();
  }
  static std::string url_of(const ScriptedServer& server, const std::string& host = "localhost") {
    return "https://" + host + ":" + std::to_string(server.port()) + "/";
  }
};

TEST_F(WebhookOverTls, DeliversToATrustedPeerAndKeepsTheConnection) {
  ScriptedServer server(always(answer("200 OK")), localhost());
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome = deliver(url_of(server));
    EXPECT_EQ(outcome.kind, Kind::done) << outcome.message;
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(WebhookOverTls, RefusesAPeerWithAnotherName) {
  ScriptedServer server(always(kOk), other_name());
  const Outcome outcome = deliver(url_of(server));
  EXPECT_EQ(outcome.kind, Kind::retry);
  EXPECT_NE(outcome.message.find("negotiating TLS: hostname mismatch"), std::string::npos) << outcome.message;

  ScriptedServer by_address(always(kOk), localhost());
  EXPECT_EQ(deliver(url_of(by_address, "127.0.0.1")).kind, Kind::retry);
  EXPECT_TRUE(server.requests().empty());
  EXPECT_TRUE(by_address.requests().empty());
}

TEST_F(WebhookOverTls, RefusesASelfSignedPeer) {
  ScriptedServer server(always(kOk), make_identity("localhost"));
  const Outcome outcome = deliver(url_of(server));
  EXPECT_EQ(outcome.kind, Kind::retry);
  EXPECT_NE(outcome.message.find("negotiating TLS: self-signed certificate"), std::string::npos) << outcome.message;
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(WebhookOverTls, TimesOutInTheHandshake) {
  ScriptedServer server([](ScriptedServer::Peer& peer) { peer.wait_for_close(); });  // speaks no TLS
  const Outcome outcome = deliver(url_of(server), {{"timeout_ms", 50}});
  EXPECT_NE(outcome.message.find("timed out while negotiating TLS"), std::string::npos) << outcome.message;
}

}  // namespace
}  // namespace tocsin
