// Which endpoints webhooks may call, which deserve it now, and how many requests they bear at once.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "delivery/resolver.h"
#include "support/manual_clock.h"
#include "unit/delivery/webhook_fixture.h"

namespace tocsin {
namespace {

// What a name resolves to is the test's to say.
class FixedResolver final : public Resolver {
 public:
  explicit FixedResolver(std::vector<const char*> texts) {
    for (const char* text : texts) addresses_.push_back(boost::asio::ip::make_address(text));
  }
  void resolve(const std::string&, Done done) override { done({}, addresses_); }

 private:
  Addresses addresses_;
};

class WebhookToSeveralAddresses : public Webhook {
 protected:
  WebhookToSeveralAddresses()
      : Webhook({"1.2.3",
                 {.resolver = std::make_shared<FixedResolver>(
                      std::vector<const char*>{"169.254.169.254", "::ffff:10.0.0.1", "0.0.0.0", "127.0.0.1"})}}) {}
};

TEST_F(WebhookToSeveralAddresses, ConnectsOnlyToThoseThatMayBeCalled) {
  ScriptedServer server(always(kOk));
  const Outcome outcome = deliver("http://shop.example:" + std::to_string(server.port()) + "/");
  EXPECT_EQ(outcome.kind, Kind::done) << outcome.message;
  EXPECT_EQ(server.connections(), 1);
}

// A name that resolves to the receiver once, and to somewhere else from then on.
class RebindingResolver final : public Resolver {
 public:
  void resolve(const std::string&, Done done) override {
    done({}, {boost::asio::ip::make_address(std::exchange(is_first_, false) ? "127.0.0.1" : "127.0.0.2")});
  }

 private:
  bool is_first_ = true;
};

class WebhookToANameThatChanges : public Webhook {
 protected:
  WebhookToANameThatChanges() : Webhook({"1.2.3", {.resolver = std::make_shared<RebindingResolver>()}}) {}
};

TEST_F(WebhookToANameThatChanges, ConnectsToTheCheckedAddress) {
  ScriptedServer server(always(kOk));
  const Outcome outcome = deliver("http://shop.example:" + std::to_string(server.port()) + "/");
  EXPECT_EQ(outcome.kind, Kind::done) << outcome.message;
}

class WebhookToForbiddenAddresses : public Webhook {
 protected:
  WebhookToForbiddenAddresses()
      : Webhook(
            {"1.2.3",
             {.resolver = std::make_shared<FixedResolver>(std::vector<const char*>{"0.0.0.0", "::", "10.0.0.1"})}}) {}
};

TEST_F(WebhookToForbiddenAddresses, ConnectsNowhere) {
  ScriptedServer server(always(kOk));
  const Outcome outcome = deliver("http://shop.example:" + std::to_string(server.port()) + "/");
  EXPECT_EQ(outcome.kind, Kind::retry);
  EXPECT_NE(outcome.message.find("refused"), std::string::npos) << outcome.message;
  EXPECT_EQ(outcome.message.find("10.0.0.1"), std::string::npos) << "internal addresses stay secret";
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(Webhook, ConnectsToNoForbiddenAddressInAnySpelling) {
  ScriptedServer server(always(kOk));
  const std::string port = std::to_string(server.port());
  for (const char* host : {"0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]", "0x0.0", "00000000"}) {
    const Outcome outcome = deliver("http://" + std::string(host) + ":" + port + "/");
    EXPECT_EQ(outcome.kind, Kind::retry) << host;
    EXPECT_NE(outcome.message.find("refused"), std::string::npos) << outcome.message;
  }
  EXPECT_EQ(server.connections(), 0);
  EXPECT_EQ(deliver("http://2130706433:" + port + "/").kind, Kind::done) << "127.0.0.1 in a spelling of its own";
}

TEST_F(Webhook, NamesAnAddressThatMayNotBeCalledWhenTheTypeIsWritten) {
  const auto field_at_fault = [this](const std::string& url) {
    BizType type;
    type.ttr = 30s;
    type.handler_json = json{{"kind", "webhook"}, {"url", url}}.dump();
    const auto error = client_.check(type);
    return error ? error->field : "";
  };
  EXPECT_EQ(field_at_fault("http://169.254.169.254/latest/meta-data"), "handler.url");
  EXPECT_EQ(field_at_fault("http://[::ffff:10.0.0.1]/"), "handler.url");
  EXPECT_EQ(field_at_fault("http://0xa000001/"), "handler.url");
  EXPECT_EQ(field_at_fault("http://127.0.0.1/"), "");
  EXPECT_EQ(field_at_fault("http://localhost/"), "");
}

TEST_F(Webhook, HandsOverJobsAcknowledgedLater) {
  ScriptedServer server(always(answer("202 Accepted")));
  ClaimedJob job = a_job();
  job.token = 0x1234;
  job.job.fire_at = WallTime(std::chrono::seconds(1772366430));
  EXPECT_EQ(deliver(url_of(server), {{"async", true}}, job).kind, Kind::handed_over);
  ReceivedRequest request = server.requests().at(0);
  EXPECT_EQ(request.headers["tocsin-lease-token"], "0000000000001234");
  EXPECT_EQ(request.headers["tocsin-lease-until"], "2026-03-01T12:00:30.000000Z");

  EXPECT_EQ(deliver(url_of(server), {{"async", false}}, job).kind, Kind::done);
  EXPECT_FALSE(server.requests().at(1).headers.contains("tocsin-lease-token")) << "who is not asked needs no key";
  ScriptedServer prompt(always(answer("200 OK")));
  EXPECT_EQ(deliver(url_of(prompt), {{"async", true}}, job).kind, Kind::done);
}

class WebhookWithBreaker : public Webhook {
 protected:
  WebhookWithBreaker() : Webhook({"1.2.3", {}, {.failures = 3, .first_pause = 30s}}) {}
};

TEST_F(WebhookWithBreaker, SpendsNoAttemptsOnAnEndpointThatAnswersNothing) {
  ScriptedServer mute([](ScriptedServer::Peer& peer) { peer.read_request(); });  // and closes
  for (int i = 0; i < 3; ++i) EXPECT_EQ(deliver(url_of(mute)).kind, Kind::retry);
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome = deliver(url_of(mute));
    EXPECT_EQ(outcome.kind, Kind::not_started);
  }
  EXPECT_EQ(mute.requests().size(), 3u);
  ScriptedServer other(always(kOk));
  EXPECT_EQ(deliver(url_of(other)).kind, Kind::done) << "another endpoint has nothing to do with it";
}

TEST_F(WebhookWithBreaker, TakesARefusalForAnAnswer) {
  ScriptedServer server(always(answer("503 Busy")));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(deliver(url_of(server)).kind, Kind::retry);
}

class WebhookWithShortPause : public Webhook {
 protected:
  WebhookWithShortPause() : Webhook({"1.2.3", {}, {.failures = 1, .first_pause = 20ms}}) {}
};

TEST_F(WebhookWithShortPause, ReportsItsCapacityAndTriesAgain) {
  std::atomic<bool> is_well{false};
  ScriptedServer server([&](ScriptedServer::Peer& peer) {
    while (peer.read_request() && is_well && peer.write(kOk)) {
    }
  });
  BizType type;
  type.name = "order.unpaid";
  type.handler_json = json{{"kind", "webhook"}, {"url", url_of(server)}}.dump();
  const auto handler = client_.make(type);
  EXPECT_EQ(handler->pool()->capacity(), 128u) << "nothing is known of it yet";
  EXPECT_EQ(handler->pool()->name(), "its endpoint " + url_of(server).substr(0, url_of(server).rfind('/')));
  EXPECT_EQ(deliver(url_of(server)).kind, Kind::retry);
  EXPECT_LE(handler->pool()->capacity(), 1u);
  EXPECT_NE(handler->hold_reason().find("has not answered"), std::string::npos) << handler->hold_reason();
  is_well = true;
  while (deliver(url_of(server)).kind != Kind::done) {
  }
  EXPECT_EQ(handler->pool()->capacity(), 512u) << "answers come quickly: as many wait as are on their way";
  EXPECT_EQ(handler->hold_reason(), "");
}

// A process that was frozen goes on before its timers run: time passes while a name is resolved, and no timer ends.
class FreezingResolver final : public Resolver {
 public:
  FreezingResolver(ManualClock& clock, Duration freeze) : clock_(clock), freeze_(freeze) {}
  void resolve(const std::string&, Done done) override {
    clock_.advance(freeze_);
    done({}, {boost::asio::ip::make_address("127.0.0.1")});
  }

 private:
  ManualClock& clock_;
  const Duration freeze_;
};

TEST(HttpSender, SendsNothingAfterItsDeadlineOrStart) {
  struct Case {
    Duration deadline, start_by;
    bool is_sent;
  };
  for (const Case& each :
       {Case{60s, Duration::max(), true}, Case{30s, Duration::max(), false}, Case{60s, 30s, false}}) {
    ScriptedServer server(always(kOk));
    ManualClock clock;
    HttpSenderOptions options{.resolver = std::make_shared<FreezingResolver>(clock, 30s)};
    options.guard = *AddressGuard::allowing({}, /*allow_loopback=*/true);
    HttpSender sender(options, clock);
    ASSERT_TRUE(sender.start().ok());
    OutboundRequest request;
    request.target = {false, "shop.example", server.port(), "shop.example", "/", "http://shop.example"};
    request.timeout = 600s;
    request.deadline = clock.now() + each.deadline;
    if (each.start_by != Duration::max()) request.start_by = clock.now() + each.start_by;
    std::promise<Result<OutboundReply>> promise;
    sender.send(std::move(request), [&](Result<OutboundReply> reply) { promise.set_value(std::move(reply)); });
    const auto reply = promise.get_future().get();
    sender.stop();
    ASSERT_EQ(reply.ok(), each.is_sent);
    if (!each.is_sent) {
      EXPECT_EQ(reply.error().code, ErrorCode::conflict) << "the attempt does not count";
    }
    EXPECT_EQ(server.requests().size(), each.is_sent ? 1U : 0U);
  }
}

// Never answers.
class SilentResolver final : public Resolver {
 public:
  void resolve(const std::string& host, Done done) override {
    const std::lock_guard lock(mutex_);
    asked_[host].push_back(std::move(done));
  }
  std::size_t asked(const std::string& host) {
    const std::lock_guard lock(mutex_);
    return asked_[host].size();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Done>> asked_;
};

// The resolver has few threads.
TEST(HttpSender, ANameThatHangsIsAskedOnce) {
  const auto resolver = std::make_shared<SilentResolver>();
  SystemClock clock;
  HttpSender sender({.idle_timeout = 2ms, .resolver = resolver}, clock);
  ASSERT_TRUE(sender.start().ok());
  // While one is asked for, the other has no attempt under way.
  for (int i = 0; i < 6; ++i) {
    OutboundRequest request;
    const std::string host = i % 2 == 0 ? "even.example" : "odd.example";
    request.target = {false, host, 80, host, "/", "http://" + host};
    request.timeout = 30ms;
    request.deadline = clock.now() + 60s;
    std::promise<Result<OutboundReply>> promise;
    sender.send(std::move(request), [&](Result<OutboundReply> reply) { promise.set_value(std::move(reply)); });
    EXPECT_FALSE(promise.get_future().get().ok());
  }
  sender.stop();
  EXPECT_EQ(resolver->asked("even.example"), 1U);
  EXPECT_EQ(resolver->asked("odd.example"), 1U);
}

// Answers no request before a number of them have come. One thread.
class PatientServer {
 public:
  explicit PatientServer(std::size_t wanted) : wanted_(wanted), thread_([this] { accept(), io_.run(); }) {}
  ~PatientServer() {
    io_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + "/"; }

 private:
  using Socket = boost::asio::ip::tcp::socket;

  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& ec, Socket socket) {
      if (ec) return;
      read(std::make_shared<Socket>(std::move(socket)));
      accept();
    });
  }
  void read(const std::shared_ptr<Socket>& socket) {
    auto text = std::make_shared<std::array<char, 4096>>();
    socket->async_read_some(boost::asio::buffer(*text), [this, socket, text](const auto& ec, std::size_t) {
      if (ec) return;
      waiting_.push_back(socket);
      if (waiting_.size() < wanted_) return;
      for (const auto& each : waiting_) boost::asio::write(*each, boost::asio::buffer(std::string_view(kOk)));
    });
  }

  const std::size_t wanted_;
  boost::asio::io_context io_{1};
  boost::asio::ip::tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::vector<std::shared_ptr<Socket>> waiting_;
  std::thread thread_;
};

class WebhookWithManyConnections : public Webhook {
 protected:
  static constexpr int kMany = 2000;
  WebhookWithManyConnections() : Webhook({"1.2.3", {.max_connections = kMany}}) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
};

TEST_F(WebhookWithManyConnections, HasThousandsOfRequestsInFlight) {
  PatientServer server(kMany);
  std::vector<std::future<Outcome>> outcomes;
  for (int i = 0; i < kMany; ++i) outcomes.push_back(begin(server.url()));
  int done = 0;
  for (auto& outcome : outcomes) done += outcome.get().kind == Kind::done;
  EXPECT_EQ(done, kMany);
}

}  // namespace
}  // namespace tocsin
