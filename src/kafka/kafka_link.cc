#include "kafka/kafka_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/utf8.h"

namespace tocsin {
namespace {

constexpr Duration kShortestTimeout = std::chrono::seconds(1);
constexpr std::uint64_t kWakeUp = 1;
constexpr std::size_t kMostNamed = 8;  // in an error

}  // namespace

KafkaLink::KafkaLink(KafkaProperties cluster, std::string topic, GuardPtr guard, Duration message_timeout)
    : cluster_(std::move(cluster)),
      topic_(std::move(topic)),
      guard_(std::move(guard)),
      message_timeout_(std::max(message_timeout, kShortestTimeout)) {}

// The attempts of messages in the library's queues have ended; without the purge they would still be sent.
KafkaLink::~KafkaLink() {
  if (client_) rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

Status KafkaLink::open(int wake, std::chrono::milliseconds timeout) {
  wake_ = wake;
  auto conf = make_kafka_conf(cluster_);
  if (!conf) return conf.error();
  KafkaProperties own = {
      {"client.id", "tocsin"},
      {"enable.idempotence", "true"},
      {"acks", "all"},
      {"linger.ms", "2"},
      {"message.timeout.ms",
       std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(message_timeout_).count())},
  };
  for (const auto& [name, value] : own) rd_kafka_conf_set(conf->get(), name.c_str(), value.c_str(), nullptr, 0);
  rd_kafka_conf_set_opaque(conf->get(), this);
  rd_kafka_conf_set_dr_msg_cb(conf->get(), on_delivery);
  rd_kafka_conf_set_error_cb(conf->get(), on_error);
  rd_kafka_conf_set_connect_cb(conf->get(), connect);
  auto client = make_kafka_client(RD_KAFKA_PRODUCER, std::move(*conf));
  if (!client) return client.error();
  client_ = std::move(*client);
  if (Status found = check_kafka_topic(client_.get(), topic_, timeout); !found) {
    return Error{found.error().code, found.error().message + with_trouble(), {}};
  }
  rd_kafka_queue_t* queue = rd_kafka_queue_get_main(client_.get());
  rd_kafka_queue_io_event_enable(queue, wake_, &kWakeUp, sizeof kWakeUp);
  rd_kafka_queue_destroy(queue);
  broken_.clear();  // brokers of the list that do not answer do no harm while others do
  return Unit{};
}

Status KafkaLink::send(std::uint64_t ticket, const BrokerMessage& message) {
  KafkaPtr<rd_kafka_headers_t> headers(rd_kafka_headers_new(7));
  const auto add = [&](const char* name, const std::string& value) {
    rd_kafka_header_add(headers.get(), name, -1, value.data(), static_cast<ssize_t>(value.size()));
  };
  add("message-id", message.id);
  add("tocsin-attempt", message.attempt);
  add("type", message.type);
  add("timestamp",
      std::to_string(message.timestamp_ms));  // the record's own is the time of sending: retention counts by it
  add("content-type", "application/json");
  if (message.traceparent) add("traceparent", *message.traceparent);
  // The ticket travels as the message's opaque pointer.
  const rd_kafka_resp_err_t code = rd_kafka_producev(
      client_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_KEY(message.key.data(), message.key.size()),
      RD_KAFKA_V_VALUE(const_cast<char*>(message.body.data()), message.body.size()), RD_KAFKA_V_HEADERS(headers.get()),
      RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(static_cast<std::uintptr_t>(ticket))), RD_KAFKA_V_END);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    static_cast<void>(headers.release());  // the library's now
    return Unit{};
  }
  refused_.push_back({ticket, rd_kafka_err2str(code)});
  return Unit{};
}

Status KafkaLink::poll(Duration timeout, std::vector<Verdict>& verdicts) {
  std::move(refused_.begin(), refused_.end(), std::back_inserter(verdicts));
  refused_.clear();
  verdicts_ = &verdicts;
  rd_kafka_poll(client_.get(), 0);
  if (verdicts.empty() && broken_.empty()) {
    pollfd fd{wake_, POLLIN, 0};
    ::poll(&fd, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(timeout).count()));
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
    rd_kafka_poll(client_.get(), 0);
  }
  verdicts_ = nullptr;
  return broken_.empty() ? Status(Unit{}) : Status(Error{ErrorCode::unavailable, broken_, {}});
}

void KafkaLink::on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
  auto* link = static_cast<KafkaLink*>(self);
  if (!link->verdicts_) return;  // purged at the end
  // The library refuses all later messages from its cache, even after access to the topic was granted: a new link is
  // needed.
  if (message->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED && link->broken_.empty())
    link->broken_ = rd_kafka_err2str(message->err);
  const auto ticket = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(message->_private));
  link->verdicts_->push_back({ticket, message->err == RD_KAFKA_RESP_ERR_NO_ERROR
                                          ? ""
                                          : rd_kafka_err2str(message->err) + link->with_trouble()});
}

std::string KafkaLink::trouble() const {
  MutexLock lock(mutex_);
  std::string names;
  for (const std::string& name : forbidden_) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "" : "broker " + names + ": " + kForbiddenPeer;
}

std::string KafkaLink::with_trouble() const {
  const std::string what = trouble();
  return what.empty() ? "" : ": " + what;
}

int KafkaLink::connect(int socket, const sockaddr* address, int size, const char* id, void* self) {
  auto* link = static_cast<KafkaLink*>(self);
  if (link->guard_ && !link->guard_->allows(*address)) {
    MutexLock lock(link->mutex_);
    if (link->forbidden_.size() < kMostNamed) link->forbidden_.insert(storable(id, 200));
    return EACCES;
  }
  return ::connect(socket, address, static_cast<socklen_t>(size)) == 0 || errno == EINPROGRESS ? 0 : errno;
}

void KafkaLink::on_error(rd_kafka_t* client, int code, const char* why, void* self) {
  auto* link = static_cast<KafkaLink*>(self);
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    link->broken_ = "all brokers are down" + link->with_trouble();
  } else if (code == RD_KAFKA_RESP_ERR__FATAL) {
    char text[256] = "";
    rd_kafka_fatal_error(client, text, sizeof text);
    link->broken_ = storable(text, sizeof text);
  } else if (code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__SSL) {
    link->broken_ = storable(why, 300);
  }
}

}  // namespace tocsin
