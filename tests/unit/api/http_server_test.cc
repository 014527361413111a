// The server as hostile clients see it: raw bytes over real loopback sockets. Deadlines are configured tiny; every wait
// is for an event.
#include <algorithm>

#include "support/http_server_fixture.h"

namespace tocsin {
namespace {

TEST_F(HttpServerTest, AnswersOverOneConnectionAgainAndAgain) {
  start();
  RawClient c = client();
  for (int i = 0; i < 3; ++i) {
    c.send("POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    const std::string response = c.response();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK\r\n")) << response;
    EXPECT_TRUE(response.ends_with("\r\n\r\nPOST /a?b=c hello"));
    EXPECT_NE(response.find("X-Content-Type-Options: nosniff\r\n"), std::string::npos);
  }
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start([](HttpServerConfig& config) { config.threads = 2; });
  RawClient c = client();
  c.send(
      "GET /later HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n2\r\nGET /3 "
      "HTTP/1.1\r\nHost: x\r\n\r\n");
  app.next_waiting()({200, "text/plain", "first", {}});
  EXPECT_TRUE(c.response().ends_with("first"));
  EXPECT_TRUE(c.response().ends_with("POST /2 2"));
  EXPECT_TRUE(c.response().ends_with("GET /3 "));
}

TEST_F(HttpServerTest, EveryThreadServesItsConnectionsAlsoAfterItHadNone) {
  start([](HttpServerConfig& config) { config.threads = 2; });
  for (int i = 0; i < 3; ++i) {
    RawClient one = client(), other = client();
    for (RawClient* each : {&one, &other}) {
      each->send(kGet);
      EXPECT_EQ(each->status(), 200);
    }
  }
}

TEST_F(HttpServerTest, ReadsRequestsThatComeByteByByte) {
  start();
  RawClient c = client();
  for (const char byte : std::string("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                                     "chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"))
    c.send(std::string_view(&byte, 1));
  EXPECT_TRUE(c.response().ends_with("POST /x abcde"));
  c.send(kGet);
  EXPECT_EQ(c.status(), 200);
}

TEST_F(HttpServerTest, SendsLargeAnswersWhole) {
  start();
  RawClient c = client();
  c.send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n" + kGet);
  EXPECT_GT(c.response().size(), std::size_t{1} << 20);
  EXPECT_EQ(c.status(), 200);
}

TEST_F(HttpServerTest, ReadsLargeBodiesWithinTheirLimit) {
  start();
  RawClient c = client();
  std::string body;
  body.resize(20'000'000, 'x');
  c.send("POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n" + body);
  EXPECT_TRUE(c.response().ends_with("20000000"));
}

TEST_F(HttpServerTest, SupportsHttp10) {
  start();
  RawClient c = client();
  c.send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(c.response().find("Connection: keep-alive\r\n"), std::string::npos);
  c.send("GET /x HTTP/1.0\r\n\r\n");
  EXPECT_NE(c.response().find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(c.rest(), "");
}

TEST_F(HttpServerTest, ClosesWhenAskedTo) {
  start();
  RawClient c = client();
  c.send("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(c.status(), 200);
  EXPECT_EQ(c.rest(), "");
}

TEST_F(HttpServerTest, AnswersHeadWithoutABody) {
  start();
  RawClient c = client();
  c.send("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(c.response(false).find("Content-Length: 8\r\n"), std::string::npos);
  c.send(kGet);
  EXPECT_TRUE(c.response().ends_with("GET /x "));
}

TEST_F(HttpServerTest, LetsTheTargetOverrideTheHost) {
  start();
  RawClient c = client();
  c.send("GET http://other.example:80/host HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(c.response().ends_with("other.example:80"));
  c.send("GET /host HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(c.response().ends_with("\r\n\r\nx"));
}

TEST_F(HttpServerTest, Sends100ContinueToClientsThatExpectIt) {
  start();
  RawClient c = client();
  c.send("POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(c.response(), "HTTP/1.1 100 Continue\r\n\r\n");
  c.send("ab");
  EXPECT_TRUE(c.response().ends_with("POST /x ab"));
  c.send("POST /refused HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(c.status(), 401);
  EXPECT_EQ(c.rest(), "");
}

TEST_F(HttpServerTest, KeepsTheConnectionAfterARefusalWithASmallBody) {
  start();
  RawClient c = client();
  c.send("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" + kGet);
  EXPECT_EQ(c.status(), 401);
  EXPECT_EQ(c.status(), 200);
}

TEST_F(HttpServerTest, DoesNotReadLargeBodiesOfRefusedRequests) {
  start();
  RawClient c = client();
  c.send("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_EQ(c.status(), 401);
  EXPECT_EQ(c.rest(), "");
}

// ---- where a request ends

struct Smuggled {
  const char* name;
  std::string request;
  int status = 400;
};

class Smuggling : public HttpServerTest, public testing::WithParamInterface<Smuggled> {};

TEST_P(Smuggling, IsRefusedAndTheConnectionClosed) {
  start();
  const auto [status, is_closed] = once(GetParam().request);
  EXPECT_EQ(status, GetParam().status);
  EXPECT_TRUE(is_closed);
}

std::string post(const std::string& fields, const std::string& body = "") {
  return "POST /x HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n" + body;
}
std::string chunked(const std::string& body) { return post("Transfer-Encoding: chunked\r\n", body); }

INSTANTIATE_TEST_SUITE_P(
    Table, Smuggling,
    testing::Values(
        Smuggled{"LengthThenChunked", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        Smuggled{"ChunkedThenLength", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")},
        Smuggled{"LengthThenOtherCoding", post("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n", "hello")},
        Smuggled{"OtherCodingThenLength", post("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", "hello")},
        Smuggled{"TwoLengths", post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!")},
        Smuggled{"SameLengthTwice", post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello")},
        Smuggled{"ListOfLengths", post("Content-Length: 5, 5\r\n", "hello")},
        Smuggled{"LengthWithPlus", post("Content-Length: +5\r\n", "hello")},
        Smuggled{"LengthNegative", post("Content-Length: -5\r\n", "hello")},
        Smuggled{"LengthHex", post("Content-Length: 0x5\r\n", "hello")},
        Smuggled{"LengthWithLetters", post("Content-Length: 5abc\r\n", "hello")},
        Smuggled{"LengthEmpty", post("Content-Length: \r\n", "hello")},
        Smuggled{"LengthFraction", post("Content-Length: 5.0\r\n", "hello")},
        Smuggled{"LengthOverflow", post("Content-Length: 18446744073709551617\r\n", "hello")},
        Smuggled{"LengthWithSpaceInside", post("Content-Length: 1 5\r\n", "hello")},
        Smuggled{"LengthQuoted", post("Content-Length: \"5\"\r\n", "hello")},
        Smuggled{"SpaceBeforeColon", post("Content-Length : 5\r\n", "hello")},
        Smuggled{"TabBeforeColon", post("Transfer-Encoding\t: chunked\r\n", "0\r\n\r\n")},
        Smuggled{"ObsFold", post("X: a\r\n b\r\n")}, Smuggled{"ObsFoldTab", post("X: a\r\n\tb\r\n")},
        Smuggled{"FoldedCoding", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")},
        Smuggled{"FoldAtTheStart", "GET /x HTTP/1.1\r\n Host: x\r\n\r\n"},
        Smuggled{"BareLineFeeds", "GET /x HTTP/1.1\nHost: x\n\n"},
        Smuggled{"OneBareLineFeed", "GET /x HTTP/1.1\r\nHost: x\nX: y\r\n\r\n"},
        Smuggled{"BareLineFeedAtTheEnd", "GET /x HTTP/1.1\r\nHost: x\r\n\n"},
        Smuggled{"BareCarriageReturn", post("X: a\rContent-Length: 5\r\n", "hello")},
        Smuggled{"DoubleCarriageReturn", "GET /x HTTP/1.1\r\r\nHost: x\r\n\r\n"},
        Smuggled{"NulInValue", post(std::string("X: a\0b\r\n", 8))},
        Smuggled{"NulInName", post(std::string("X\0: a\r\n", 7))}, Smuggled{"ControlInValue", post("X: a\x01z\r\n")},
        Smuggled{"GzipCoding", post("Transfer-Encoding: gzip\r\n", "hello")},
        Smuggled{"GzipThenChunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
        Smuggled{"ChunkedThenGzip", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")},
        Smuggled{"ChunkedTwice", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n")},
        Smuggled{"TwoCodings", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        Smuggled{"TwoCodingsOneOther",
                 post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")},
        Smuggled{"XChunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")},
        Smuggled{"ChunkedWithVerticalTab", post("Transfer-Encoding: \x0b"
                                                "chunked\r\n",
                                                "0\r\n\r\n")},
        Smuggled{"ChunkedQuoted", post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")},
        Smuggled{"EmptyCoding", post("Transfer-Encoding:\r\n", "0\r\n\r\n")},
        Smuggled{"Http10WithCoding", "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        Smuggled{"NoHost", "GET /x HTTP/1.1\r\n\r\n"},
        Smuggled{"TwoHosts", "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
        Smuggled{"Http20", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        Smuggled{"Http12", "GET /x HTTP/1.2\r\nHost: x\r\n\r\n"}, Smuggled{"Http09", "GET /x\r\n\r\n"},
        Smuggled{"LowerCaseVersion", "GET /x http/1.1\r\nHost: x\r\n\r\n"},
        Smuggled{"SpaceInTarget", "GET /x y HTTP/1.1\r\nHost: x\r\n\r\n"},
        Smuggled{"NoTarget", "GET  HTTP/1.1\r\nHost: x\r\n\r\n"},
        Smuggled{"Star", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"},
        Smuggled{"Authority", "CONNECT a:80 HTTP/1.1\r\nHost: x\r\n\r\n"},
        Smuggled{"Fragment", "GET /x#y HTTP/1.1\r\nHost: x\r\n\r\n"}, Smuggled{"NoColon", post("Nonsense\r\n")},
        Smuggled{"EmptyName", post(": x\r\n")}, Smuggled{"MethodWithSlash", "G/T /x HTTP/1.1\r\nHost: x\r\n\r\n"},
        Smuggled{"Tls", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15)},
        Smuggled{"ChunkSizeNotHex", chunked("x\r\n\r\n")},
        Smuggled{"ChunkSizeNegative", chunked("-1\r\nab\r\n0\r\n\r\n")},
        Smuggled{"ChunkSizeWithPrefix", chunked("0x1\r\na\r\n0\r\n\r\n")},
        Smuggled{"ChunkSizeWithSpace", chunked("1 \r\na\r\n0\r\n\r\n" + std::string(9, ' '))},
        Smuggled{"ChunkSizeOverflow", chunked("fffffffffffffffff\r\nab\r\n0\r\n\r\n")},
        Smuggled{"ChunkWithoutEnd", chunked("1\r\nab\r\n0\r\n\r\n")},
        Smuggled{"ChunkBareLineFeed", chunked("1\na\n0\n\n")},
        Smuggled{"ChunkExtensionTooLong", chunked("1;a=" + std::string(10000, 'x'))},
        Smuggled{"TrailersTooLong", chunked("0\r\nX: " + std::string(10000, 'x'))},
        Smuggled{"ContentEncoding", post("Content-Encoding: gzip\r\nContent-Length: 1\r\n", "x"), 415},
        Smuggled{"UnknownExpectation", post("Expect: tea\r\n"), 417}),
    [](const auto& test) { return test.param.name; });

// The beginning of a ClientHello, which holds no line end.
TEST_F(HttpServerTest, AnswersAClientThatSpeaksTlsInPlainText) {
  start();
  EXPECT_EQ(once(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)), std::pair(400, true));
  EXPECT_EQ(once("GET /x HTTP/1.1\r\nHost: x\r\n\r\n").first, 200) << "it serves on";
}

// ---- limits

TEST_F(HttpServerTest, RefusesLargeHeaders) {
  start([](HttpServerConfig& config) { config.limits.header_bytes = 1000; });
  EXPECT_EQ(once("GET /x HTTP/1.1\r\nHost: x\r\nX: " + std::string(1000, 'x') + "\r\n\r\n"), std::pair(431, true));
  EXPECT_EQ(once("GET /" + std::string(1000, 'x')), std::pair(431, true));
  EXPECT_EQ(once("GET /x HTTP/1.1\r\nHost: x\r\nX: " + std::string(900, 'x') + "\r\n\r\n").first, 200);
}

TEST_F(HttpServerTest, RefusesManyHeaderLines) {
  start();
  std::string many = "GET /x HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(once(many + "\r\n"), std::pair(400, true));
}

TEST_F(HttpServerTest, RefusesBodiesOverTheirLimit) {
  start();
  EXPECT_EQ(once(post("Content-Length: 1001\r\n")), std::pair(413, true));
  EXPECT_EQ(once(chunked("3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\nx\r\n0\r\n\r\n")), std::pair(413, true));
  EXPECT_EQ(once(chunked("fffffffffffffff\r\n")), std::pair(413, true));
  EXPECT_EQ(once(chunked("3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n")).first, 200);
}

TEST_F(HttpServerTest, BoundsTheTotalMemoryOfLargeBodies) {
  start([](HttpServerConfig& config) { config.limits.large_body_bytes = 1 << 20; });
  const std::string large = "POST /large HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 700000\r\n\r\n";
  RawClient first = client();
  first.send(large);
  EXPECT_EQ(first.response(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(once(large).first, 503);
  first.send(std::string(700000, 'x'));
  EXPECT_TRUE(first.response().ends_with("700000"));
  RawClient next = client();
  next.send(large);
  EXPECT_EQ(next.response(), "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_F(HttpServerTest, AnswersConnectionsOverTheLimit) {
  start([](HttpServerConfig& config) { config.limits.connections = 2; });
  RawClient a = client(), b = client();
  a.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  const Responder answer_a = app.next_waiting();
  b.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  const Responder answer_b = app.next_waiting();
  RawClient c = client();
  c.send(kGet);
  EXPECT_EQ(c.status(), 503);
  EXPECT_EQ(c.rest(), "");
  answer_a({200, "text/plain", "still here", {}});
  answer_b({200, "text/plain", "here too", {}});
  EXPECT_TRUE(a.response().ends_with("still here"));
  EXPECT_TRUE(b.response().ends_with("here too"));
}

TEST_F(HttpServerTest, AnswersForAHandlerThatNeverResponds) {
  start();
  RawClient c = client();
  c.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  app.next_waiting();
  EXPECT_EQ(c.status(), 500);
  c.send(kGet);
  EXPECT_EQ(c.status(), 200);
}

TEST_F(HttpServerTest, IdleConnectionsAreClosedForNewOnes) {
  start([](HttpServerConfig& config) { config.limits.connections = 2; });
  RawClient a = client(), b = client();
  a.send(kGet);
  EXPECT_EQ(a.status(), 200);
  b.send(kGet);
  EXPECT_EQ(b.status(), 200);
  RawClient c = client();
  c.send(kGet);
  EXPECT_EQ(c.status(), 200);
  EXPECT_EQ(a.rest(), "");
  b.send(kGet);
  EXPECT_EQ(b.status(), 200);
}

TEST_F(HttpServerTest, ListensOnIpv6) {
  start([](HttpServerConfig& config) { config.host = "[::1]"; });
  EXPECT_GT(server->port(), 0);
}

// ---- deadlines

TEST_F(HttpServerTest, TimesOutASlowHeader) {
  start([](HttpServerConfig& config) {
    config.limits.header_time = milliseconds(40);
    config.limits.header_bytes = 64 << 20;
  });
  RawClient c = client();
  c.send("GET /x HTTP/1.1\r\nHost: x\r\nX: ");
  while (!c.has_answer() && c.send("y")) {
  }
  EXPECT_EQ(c.status(), 408);
  EXPECT_EQ(c.rest(), "");
}

TEST_F(HttpServerTest, TimesOutASlowBody) {
  start([](HttpServerConfig& config) { config.limits.body_time = milliseconds(40); });
  RawClient c = client();
  c.send("POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n");
  while (!c.has_answer() && c.send("y")) {
  }
  EXPECT_EQ(c.status(), 408);
  RawClient d = client();
  d.send(chunked("5\r\nhe"));
  EXPECT_EQ(d.status(), 408);
}

TEST_F(HttpServerTest, ClosesIdleConnections) {
  start([](HttpServerConfig& config) { config.limits.idle_time = milliseconds(40); });
  EXPECT_EQ(client().rest(), "");
  RawClient c = client();
  c.send(kGet);
  EXPECT_EQ(c.status(), 200);
  EXPECT_EQ(c.rest(), "");
}

TEST_F(HttpServerTest, AnswersForAHandlerThatTakesTooLong) {
  start([](HttpServerConfig& config) { config.limits.reply_time = milliseconds(40); });
  RawClient c = client();
  c.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  const Responder late = app.next_waiting();
  const std::string answer = c.response();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503")) << answer;
  EXPECT_EQ(answer.find("Retry-After"), std::string::npos) << "it may have happened: not to be repeated blindly";
  late({200, "text/plain", "too late", {}});
  EXPECT_EQ(c.rest(), "");
}

TEST_F(HttpServerTest, ClosesConnectionsOfClientsThatDoNotRead) {
  start([](HttpServerConfig& config) {
    config.limits.write_time = milliseconds(40);
    config.limits.connections = 1;
  });
  RawClient c = client();
  std::string many;
  for (int i = 0; i < 100; ++i) many += "GET /big HTTP/1.1\r\nHost: x\r\n\r\n";
  c.send(many);
  while (once(kGet).first != 200) {  // 503 until the place is free
  }
  EXPECT_LT(c.rest().size(), std::size_t{100} << 20);
}

TEST_F(HttpServerTest, SlowClientsDoNotDelayOthers) {
  start();
  std::vector<std::unique_ptr<RawClient>> drippers;
  for (int i = 0; i < 200; ++i) {
    drippers.push_back(std::make_unique<RawClient>(server->port()));
    drippers.back()->send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Le");
  }
  RawClient c = client();
  c.send(kGet);
  EXPECT_EQ(c.status(), 200);
}

// ---- ends

TEST_F(HttpServerTest, StopFinishesRequestsInFlight) {
  start();
  RawClient idle = client(), busy = client();
  idle.send(kGet);
  EXPECT_EQ(idle.status(), 200);
  busy.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  const Responder answer = app.next_waiting();
  std::thread stopping([&] { server->stop(std::chrono::seconds(30)); });
  EXPECT_EQ(idle.rest(), "");  // closed at once
  answer({200, "text/plain", "done", {}});
  const std::string response = busy.response();
  EXPECT_TRUE(response.ends_with("done"));
  EXPECT_NE(response.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(busy.rest(), "");
  stopping.join();
}

TEST_F(HttpServerTest, StopClosesRemainingConnectionsAfterTheGrace) {
  start();
  RawClient busy = client();
  busy.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  const Responder late = app.next_waiting();
  server->stop(milliseconds(1));
  EXPECT_EQ(busy.rest(), "");
  server.reset();
  late({200, "text/plain", "nobody hears this", {}});
}

TEST_F(HttpServerTest, AnswersALongPollOverAHalfClosedConnection) {
  start();
  RawClient half = client();
  half.send("GET /later?long HTTP/1.1\r\nHost: x\r\n\r\n");
  const Responder answer = app.next_waiting();
  half.finish_sending();
  EXPECT_EQ(half.response(), "HTTP/1.1 100 Continue\r\n\r\n");  // so the server has seen it
  EXPECT_FALSE(answer.is_gone());
  answer({200, "text/plain", "jobs", {}});
  EXPECT_TRUE(half.response().ends_with("jobs"));
}

TEST_F(HttpServerTest, BindsItsAddressBeforeItServes) {
  HttpServer first(app, {});
  ASSERT_TRUE(first.bind());
  HttpServerConfig same;
  same.port = first.port();
  HttpServer second(app, same);
  EXPECT_FALSE(second.bind());
  RawClient early(first.port());
  early.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(first.start());
  EXPECT_EQ(early.status(), 200);
}

TEST_F(HttpServerTest, StopsAfterPeersHaveDisconnected) {
  start();
  for (int i = 0; i < 20; ++i) client().send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  RawClient c = client();
  c.send(kGet);
  EXPECT_EQ(c.status(), 200);
}

TEST_F(HttpServerTest, ReportsThatItCannotListen) {
  start();
  HttpServer second(app, {.host = "127.0.0.1", .port = server->port(), .threads = 1, .limits = {}});
  const Status status = second.start();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().field, "listen");
  HttpServer nowhere(app, {.host = "203.0.113.7", .port = 0, .threads = 1, .limits = {}});
  EXPECT_FALSE(nowhere.start());
}

TEST_F(HttpServerTest, DetectsThatALongPollHasDisconnected) {
  start();
  RawClient leaves = client(), stays = client(), pipelines = client();
  const std::string get = "GET /later?long HTTP/1.1\r\nHost: x\r\n\r\n";
  leaves.send(get);
  const Responder to_nobody = app.next_waiting();
  stays.send(get);
  const Responder to_somebody = app.next_waiting();
  pipelines.send(get + kGet);
  const Responder to_the_hasty = app.next_waiting();
  EXPECT_FALSE(to_nobody.is_gone());
  leaves.close();
  for (int i = 0; i < 10'000 && !to_nobody.is_gone(); ++i) EXPECT_NE(once(kGet).first, 0);  // time passes
  EXPECT_TRUE(to_nobody.is_gone());
  EXPECT_FALSE(to_somebody.is_gone());
  to_somebody({200, "text/plain", "here", {}});
  EXPECT_EQ(stays.status(), 200);
  stays.send(kGet);
  EXPECT_EQ(stays.status(), 200) << "the connection lives on";
  stays.send(get);
  app.next_waiting()({200, "text/plain", "again", {}});
  EXPECT_EQ(stays.status(), 200);
  to_the_hasty({200, "text/plain", "both", {}});
  EXPECT_EQ(pipelines.status(), 200);
  EXPECT_EQ(pipelines.status(), 200);
}

}  // namespace
}  // namespace tocsin
