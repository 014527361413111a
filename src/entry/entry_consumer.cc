#include "entry/entry_consumer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "base/utf8.h"

namespace tocsin {
namespace {

constexpr std::size_t kMessageBatch = 500;                      // messages that share a transaction
constexpr Duration kPatience = std::chrono::milliseconds(250);  // also how soon a stop is seen
constexpr Duration kFirstPause = std::chrono::milliseconds(100), kLongestPause = std::chrono::seconds(5);
constexpr int kFailuresPerLine = 8;  // one log line for so many failures in a row

}  // namespace

EntryConsumer::EntryConsumer(Entry entry, ApiContext& context, EntryCounts& counts)
    : entry_(std::move(entry)),
      state_(std::make_shared<EntryState>(entry_.target)),
      context_(context),
      counts_(counts) {}
EntryConsumer::~EntryConsumer() { stop(); }

void EntryConsumer::start() {
  worker_.start("entry", [this] { run(); });
}

void EntryConsumer::stop() {
  worker_.request_stop();
  {
    MutexLock lock(mutex_);
    if (source_) source_->interrupt();
  }
  worker_.stop();
}

bool EntryConsumer::pause(int failures) {
  const Duration length = std::min(kLongestPause, kFirstPause * (1 << std::min(failures, 6)));
  return worker_.wait_for(length);
}

void EntryConsumer::run() {
  for (int failures = 0;; ++failures) {
    const std::unique_ptr<EntrySource> source = entry_.make_source();
    {
      MutexLock lock(mutex_);
      if (worker_.is_stopping()) return;  // under the lock: stop() interrupts the source that it finds
      source_ = source.get();
    }
    Status done = source->open();
    if (done) {
      spdlog::info("entry {}: consuming", entry_.target);
      set_trouble("");
      failures = 0;
      ++counts_.connected;
      done = consume(*source);
      --counts_.connected;
    }
    {
      MutexLock lock(mutex_);
      source_ = nullptr;
    }
    if (worker_.is_stopping()) return;
    set_trouble(done.error().message);
    if (failures % kFailuresPerLine == 0) spdlog::warn("entry {}: {}", entry_.target, done.error().message);
    if (!pause(failures)) return;
  }
}

Status EntryConsumer::consume(EntrySource& source) {
  while (!worker_.is_stopping()) {
    auto messages = source.receive(kMessageBatch, kPatience);
    if (!messages) return messages.error();
    if (messages->empty()) continue;
    const auto answers = take(*messages);
    if (!answers) return Unit{};
    std::vector<std::optional<std::string>> refusals;
    for (const EntryAnswer& answer : *answers)
      refusals.push_back(answer.kind == EntryAnswer::Kind::refused ? std::optional(answer.why) : std::nullopt);
    if (Status settled = source.settle(refusals); !settled) return settled;
    count(*messages, *answers);
  }
  return Unit{};
}

std::optional<std::vector<EntryAnswer>> EntryConsumer::take(std::vector<EntryMessage>& messages) {
  const auto received = std::chrono::steady_clock::now();
  for (int failures = 0;; ++failures) {
    const auto waited = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - received);
    for (EntryMessage& message : messages) message.waited = waited;
    auto answers = create_jobs_from_messages(context_, messages);
    if (answers) {
      if (failures > 0) set_trouble("");
      return *std::move(answers);
    }
    set_trouble("waits for the database: " + answers.error().message);
    if (failures % kFailuresPerLine == 0)
      spdlog::warn("entry {}: waits for the database: {}", entry_.target, answers.error().message);
    if (!pause(failures)) return {};
  }
}

void EntryConsumer::count(const std::vector<EntryMessage>& messages, const std::vector<EntryAnswer>& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    switch (answers[i].kind) {
      case EntryAnswer::Kind::created:
        ++counts_.created;
        break;
      case EntryAnswer::Kind::existing:
        ++counts_.existing;
        break;
      case EntryAnswer::Kind::refused:
        ++counts_.refused;
        spdlog::warn("entry {}: message {} is refused: {}", entry_.target, storable(messages[i].id, 256),
                     answers[i].why);
        break;
    }
  }
}

}  // namespace tocsin
