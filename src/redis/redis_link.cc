#include "redis/redis_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/utf8.h"

namespace tocsin {

Error RedisLink::failure() const {
  return {ErrorCode::unavailable, context_ && context_->err ? storable(context_->errstr, 200) : "out of memory", {}};
}

Status RedisLink::open(int wake, std::chrono::milliseconds timeout) {
  wake_ = wake;
  const auto connect = [this](const std::string& address, std::chrono::milliseconds part) -> Status {
    context_.reset(redisConnectWithTimeout(address.c_str(), server_.peer.port, timeval_of(part)));
    return context_ && !context_->err ? Status(Unit{}) : Status(failure());
  };
  if (Status done = dialer_.dial(server_.peer, timeout, connect); !done) return done;
  const int fd = context_->fd;
  redisSetTimeout(context_.get(), timeval_of(timeout));
  give_up_when_silent(fd);
  shut_fd_ = fd;
  if (Status done = dialer_.interruption(); !done) return done;  // interrupt() came before shut_fd_ was set
  if (!server_.password.empty()) {
    const Status done =
        server_.user.empty() ? ask({"AUTH", server_.password}) : ask({"AUTH", server_.user, server_.password});
    if (!done) return Error{done.error().code, "login: " + done.error().message, {}};
  }
  if (server_.database != 0)
    if (Status done = ask({"SELECT", std::to_string(server_.database)}); !done) return done;
  if (Status done = ask({"PING"}); !done) return done;  // fails if the server requires a login
  // From here on nothing waits: the library reads and writes what is possible.
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  context_->flags &= ~REDIS_BLOCK;
  return Unit{};
}

Status RedisLink::ask(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) texts.push_back(word.data()), sizes.push_back(word.size());
  const Reply reply(static_cast<redisReply*>(
      redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data())));
  if (!reply) return failure();
  if (reply->type == REDIS_REPLY_ERROR) return Error{ErrorCode::unavailable, storable(reply->str, 200), {}};
  return Unit{};
}

Status RedisLink::send(std::uint64_t ticket, const BrokerMessage& message) {
  const std::string maxlen = std::to_string(stream_.maxlen.value_or(0)), at = std::to_string(message.timestamp_ms);
  std::vector<std::string_view> words = {"XADD", stream_.name};
  if (stream_.maxlen) words.insert(words.end(), {"MAXLEN", "~", maxlen});
  words.insert(words.end(), {"*", "message-id", message.id, "type", message.type, "biz-id", message.key,
                             "tocsin-attempt", message.attempt, "timestamp", at, "body", message.body});
  if (message.traceparent) words.insert(words.end(), {"traceparent", *message.traceparent});
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) texts.push_back(word.data()), sizes.push_back(word.size());
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()) != REDIS_OK)
    return failure();
  sent_.push_back(ticket);
  return Unit{};
}

Status RedisLink::flush(bool& is_flushed) {
  int done = 0;
  if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return failure();
  is_flushed = done != 0;
  return Unit{};
}

Status RedisLink::poll(Duration timeout, std::vector<Verdict>& verdicts) {
  bool is_flushed = true;
  if (Status done = flush(is_flushed); !done) return done;
  pollfd fds[2] = {{context_->fd, static_cast<short>(is_flushed ? POLLIN : POLLIN | POLLOUT), 0}, {wake_, POLLIN, 0}};
  ::poll(fds, 2, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(timeout).count()));
  eventfd_t ignored = 0;
  ::eventfd_read(wake_, &ignored);
  if ((fds[0].revents & ~POLLOUT) != 0 && redisBufferRead(context_.get()) != REDIS_OK) return failure();
  while (!sent_.empty()) {
    void* raw = nullptr;
    if (redisGetReplyFromReader(context_.get(), &raw) != REDIS_OK) return failure();
    if (!raw) break;
    const Reply reply(static_cast<redisReply*>(raw));
    verdicts.push_back({sent_.front(), reply->type == REDIS_REPLY_ERROR ? storable(reply->str, 300) : ""});
    sent_.pop_front();
  }
  return Unit{};
}

void RedisLink::interrupt() {
  dialer_.interrupt();
  if (const int fd = shut_fd_; fd >= 0) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace tocsin
