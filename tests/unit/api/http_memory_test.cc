// The bounds of the memory of large requests and answers, over real loopback sockets.
#include "support/http_server_fixture.h"

namespace tocsin {
namespace {

std::string large(std::size_t bytes, const std::string& target = "/large") {
  return "POST " + target + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " + std::to_string(bytes) +
         "\r\n\r\n";
}
std::string get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"; }

class HttpMemory : public HttpServerTest {
 public:
  // Sends a body of this size to a request that the app queues. Returns the queued request.
  std::pair<HttpRequest, Responder> queue(RawClient& c, std::size_t bytes) {
    c.send(large(bytes, "/large/later"));
    EXPECT_EQ(c.response(), "HTTP/1.1 100 Continue\r\n\r\n");
    c.send(std::string(bytes, 'x'));
    return app.next_request();
  }
  // Its client does not read, so it stays in flight: it is far larger than what the two sockets hold.
  static constexpr std::size_t kUnread = std::size_t{32} << 20;
};

// A queue may hold a request for long after the 503 at the end of its reply time.
TEST_F(HttpMemory, ABodyCountsUntilTheAppHasDroppedItsRequest) {
  start([](HttpServerConfig& config) {
    config.limits.large_body_bytes = 1 << 20;
    config.limits.reply_time = milliseconds(1);
  });
  RawClient first = client();
  {
    const auto queued = queue(first, 700'000);
    EXPECT_EQ(first.status(), 503);
    EXPECT_EQ(once(large(700'000)).first, 503);
  }
  RawClient next = client();
  next.send(large(700'000));
  EXPECT_EQ(next.response(), "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_F(HttpMemory, ABodyThatIsNotRunCountsUntilItsConnectionHasAnswered) {
  start([](HttpServerConfig& config) {
    config.limits.large_body_bytes = 1 << 20;
    config.limits.body_time = milliseconds(1);
    config.limits.linger_time = std::chrono::seconds(20);
  });
  RawClient slow = client();
  slow.send(large(700'000));
  EXPECT_EQ(slow.response(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(slow.status(), 408);
  RawClient next = client();
  next.send(large(700'000));
  EXPECT_EQ(next.response(), "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_F(HttpMemory, BodiesOverSixteenKiBCount) {
  start([](HttpServerConfig& config) { config.limits.large_body_bytes = 30'000; });
  RawClient first = client(), second = client();
  const auto queued = queue(first, 20'000);
  EXPECT_EQ(once(large(20'000)).first, 503);
  const auto small = queue(second, kSmallBody);  // is not counted
}

TEST_F(HttpMemory, ARequestIsGoneAtTheEndOfItsReplyTimeOnEveryRoute) {
  start([](HttpServerConfig& config) { config.limits.reply_time = milliseconds(1); });
  RawClient c = client();
  const auto [request, responder] = queue(c, 1);
  EXPECT_EQ(c.status(), 503);
  EXPECT_TRUE(responder.is_gone());
}

TEST_F(HttpMemory, BoundsTheTotalMemoryOfLargeAnswers) {
  start([](HttpServerConfig& config) { config.limits.large_answer_bytes = kUnread + 100'000; });
  RawClient slow = client();
  slow.send(get("/later"));
  app.next_waiting()({200, "text/plain", std::string(kUnread, 'x'), {}});
  RawClient other = client();
  other.send(get("/big"));
  const std::string refused = other.response();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503")) << refused.substr(0, 100);
  EXPECT_NE(refused.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_EQ(once(kGet).first, 200) << "small answers need no place";
  EXPECT_EQ(slow.status(), 200);  // reads it
  slow.send(kGet);
  EXPECT_EQ(slow.status(), 200);  // so its memory is free
  other.send(get("/big"));
  EXPECT_EQ(other.status(), 200);
}

TEST_F(HttpMemory, AnAnswerNeedsNoPlaceWhenItsConnectionHasGone) {
  start([](HttpServerConfig& config) { config.limits.large_answer_bytes = kUnread + 100'000; });
  RawClient slow = client(), other = client();
  slow.send(get("/later"));
  app.next_waiting()({200, "text/plain", std::string(kUnread, 'x'), {}});
  other.send(get("/big"));
  EXPECT_EQ(other.status(), 503);
  slow.close();
  int status = 0;
  for (int i = 0; i < 10'000 && status != 200; ++i) {  // until the server has noticed
    other.send(get("/big"));
    status = other.status();
  }
  EXPECT_EQ(status, 200);
}

// It tells what was done: a 503 would have the caller do it again.
TEST_F(HttpMemory, TheAnswerToAWriteIsNotRefused) {
  start([](HttpServerConfig& config) { config.limits.large_answer_bytes = 100'000; });
  RawClient c = client();
  c.send("POST /big HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_EQ(c.status(), 200);
  c.send(get("/big"));
  EXPECT_EQ(c.status(), 503);
}

TEST_F(HttpMemory, ASharedAnswerCountsOnce) {
  app.shared_body = std::make_shared<const SharedBody>(std::string(kUnread, 'x'));
  start([](HttpServerConfig& config) { config.limits.large_answer_bytes = kUnread; });
  std::vector<std::unique_ptr<RawClient>> readers;
  for (int i = 0; i < 3; ++i) {
    readers.push_back(std::make_unique<RawClient>(server->port()));
    readers.back()->send(get("/shared"));
  }
  for (const auto& reader : readers) EXPECT_EQ(reader->status(), 200);
}

}  // namespace
}  // namespace tocsin
