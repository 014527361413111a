#include "multidb/outbox_relay.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <iterator>

#include "base/mutex.h"
#include "base/part_size.h"
#include "base/random.h"
#include "base/worker_thread.h"
#include "ports/row_refusal.h"
#include "postgres/pg_outbox.h"
#include "postgres/pg_type_store.h"

namespace tocsin {
namespace {

constexpr auto kPoll = std::chrono::seconds(1);  // without a notification
constexpr int kEntryBatch = 200;                 // of up to 64 KiB each
// Counting reads every entry: where there are few, with every look.
constexpr std::int64_t kFew = 10'000;
constexpr Duration kSizeOfManyEvery = std::chrono::seconds(10);
constexpr Duration kLookEvery = std::chrono::minutes(10);
constexpr int kLookBatch = 2000;
constexpr auto kLastWait = std::chrono::seconds(2);

class PgRelaySession final : public RelaySession {
 public:
  explicit PgRelaySession(SessionConfig config) : session_(std::move(config)) {}
  OutboxStore& outbox() override { return outbox_; }
  IntakeStore& intake() override { return intake_; }
  TypeStore& types() override { return types_; }

 private:
  Session session_;
  PgOutbox outbox_{session_};
  PgIntake intake_{session_};
  PgTypeStore types_{session_};
};

}  // namespace

RelayDatabase relay_database(DatabaseId database_id, std::string name, SessionConfig session) {
  session.application = "tocsin outbox";
  session.statement_timeout_ms = 5'000;  // how long a call that hangs delays its pair of databases
  return {database_id, std::move(name), [session] { return std::make_unique<PgRelaySession>(session); }};
}

class OutboxRelay::Shared {
 public:
  Shared(const Clock& c, Metrics& m, RelayHooks h) : clock(c), metrics(m), hooks(std::move(h)) {}

  const Clock& clock;
  Metrics& metrics;
  const RelayHooks hooks;
  const std::int64_t id = static_cast<std::int64_t>(true_random() >> 1);
  Latest<ShardsAt> shards{std::make_shared<const ShardsAt>()};
  std::atomic<std::int64_t> relayed{0};
};

// Inserts entries of other databases' outboxes into one database, one batch after the other.
class OutboxRelay::Intake {
 public:
  using Work = std::function<void(Intake&)>;
  Intake(const RelayDatabase& database, Shared& shared)
      : database_id_(database.database_id), name_(database.name), shared_(shared), session_(database.open_session()) {}

  void start() {
    worker_.start("intake", [this] { run(); });
  }
  void stop() { worker_.stop(); }  // after what was pushed before
  // As many as there are outboxes, for each waits for its answer.
  void push(Work work) {
    {
      MutexLock lock(mutex_);
      queue_.push_back(std::move(work));
    }
    worker_.wake();
  }

  // On this thread only. Returns the results of the entries; those that are missing are relayed again.
  std::vector<TakenOver> take_over(DatabaseId source, WallTime valid_until, std::span<const OutboxEntry> entries);
  IntakeStore& store() { return session_->intake(); }
  void run_queue();
  void failed(const Error& error) { shared_.metrics.failed("intake", {error.code, name_ + ": " + error.message, ""}); }

 private:
  void run();
  std::optional<TakenOver> left_out(std::span<const OutboxEntry> part, const Error& error);

  const DatabaseId database_id_;
  const std::string name_;
  Shared& shared_;
  const std::unique_ptr<RelaySession> session_;
  Mutex mutex_;
  std::deque<Work> queue_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

void OutboxRelay::Intake::run() {
  while (worker_.wait()) run_queue();
  run_queue();
}

void OutboxRelay::Intake::run_queue() {
  for (MutexLock lock(mutex_); !queue_.empty(); lock.lock()) {
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work(*this);
  }
}

std::vector<TakenOver> OutboxRelay::Intake::take_over(DatabaseId source, WallTime valid_until,
                                                      std::span<const OutboxEntry> entries) {
  if (auto done = shared_.hooks.make_types_known(database_id_, session_->types()); !done) {
    failed(done.error());
    return {};
  }
  std::vector<TakenOver> all;
  // An entry that cannot be inserted now must not delay the others: parts get smaller until it is alone.
  PartSize part_size;
  bool is_down = false;
  for (std::size_t begin = 0; begin < entries.size() && !is_down;) {
    const auto part = entries.subspan(begin, std::min(part_size.most(), entries.size() - begin));
    auto taken = store().take_over(source, valid_until, part);
    if (taken) {
      part_size.note_success();
      std::ranges::move(*taken, std::back_inserter(all));
      begin += part.size();
      continue;
    }
    const Error& error = taken.error();
    is_down = !is_contention(error.code) && !is_refused_row(error);
    part_size.note_refused(part.size());
    if (part.size() > 1 && !is_down) continue;
    if (auto refused = left_out(part, error)) all.push_back(std::move(*refused));
    ++begin;
  }
  for (const TakenOver& one : all)
    if (one.fire_at) shared_.hooks.hint({one.job_id, one.type_id, *one.fire_at});
  return all;
}

// The part is an entry that was left out, or could not be asked for. Returns the result of an entry that will be
// refused for ever.
std::optional<TakenOver> OutboxRelay::Intake::left_out(std::span<const OutboxEntry> part, const Error& error) {
  const OutboxEntry& first = part.front();
  if (error.code == ErrorCode::invalid)
    return TakenOver{first.job_id, first.type_id, {}, {}, error.message, first.changed_at};
  if (error.code == ErrorCode::moved) shared_.hooks.moved();
  const std::string entry = part.size() == 1 ? "job " + std::to_string(first.job_id) + ": " : "";
  failed({error.code, entry + error.message, ""});
  return {};
}

// Reads the outbox of one database. The data members are its session, its schedule, and the answers of the intakes of
// the other databases.
class OutboxRelay::Outbox {
 public:
  Outbox(const RelayDatabase& database, Shared& shared, const std::map<DatabaseId, std::unique_ptr<Intake>>& intakes)
      : database_id_(database.database_id),
        name_(database.name),
        shared_(shared),
        intakes_(intakes),
        session_(database.open_session()),
        next_forgetting_(shared.clock.now() + std::chrono::minutes(1)) {}

  void start() {
    worker_.start("outbox", [this] { run(); });
  }
  void stop() { worker_.stop(); }
  void wake() { worker_.wake(); }

  const std::string& name() const { return name_; }
  OutboxSize size() const { return *size_.get(); }
  void step();

 private:
  void run();
  bool settle();
  void note_settled(const TakenOver& one);
  void hand_over();
  void hand_over(DatabaseId to, std::vector<OutboxEntry> entries, WallTime valid_until);
  void measure();
  void look_after();
  void look_for(const std::pair<DatabaseId, std::vector<JobId>>& remembered);
  bool is_busy(DatabaseId to) {
    MutexLock lock(mutex_);
    return busy_.contains(to);
  }
  void failed(const Error& error) { shared_.metrics.failed("outbox", {error.code, name_ + ": " + error.message, ""}); }

  const DatabaseId database_id_;
  const std::string name_;
  Shared& shared_;
  const std::map<DatabaseId, std::unique_ptr<Intake>>& intakes_;
  const std::unique_ptr<RelaySession> session_;
  OutboxStore& store_ = session_->outbox();
  Latest<OutboxSize> size_{std::make_shared<const OutboxSize>()};
  MonoTime next_size_{}, next_forgetting_;
  std::map<DatabaseId, MonoTime> next_looks_;
  std::vector<TakenOver> unsettled_;

  Mutex mutex_;
  CondVar answered_;
  std::set<DatabaseId> busy_ TOCSIN_GUARDED_BY(mutex_);  // databases that a batch was sent to
  std::vector<TakenOver> answers_ TOCSIN_GUARDED_BY(mutex_);
  std::vector<std::pair<DatabaseId, std::vector<JobId>>> remembered_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

void OutboxRelay::Outbox::run() {
  while (worker_.wait_for(kPoll)) step();
  {
    MutexLock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + kLastWait;
    while (!busy_.empty() && answered_.wait_until(mutex_, end)) {
    }
  }
  settle();
}

void OutboxRelay::Outbox::step() {
  if (!settle()) return;
  look_after();  // first: hand_over() keeps its pairs of databases busy
  hand_over();
  measure();
}

// False: the answers could not be stored; they are kept, and no more entries are handed over meanwhile.
bool OutboxRelay::Outbox::settle() {
  {
    MutexLock lock(mutex_);
    unsettled_.insert(unsettled_.end(), std::make_move_iterator(answers_.begin()),
                      std::make_move_iterator(answers_.end()));
    answers_.clear();
  }
  // An entry that cannot be written must not delay the others: parts get smaller until it is alone. It is left out, and
  // relayed again later, which changes nothing in the other database.
  PartSize part_size;
  while (!unsettled_.empty()) {
    const auto part = std::span(unsettled_).first(std::min(part_size.most(), unsettled_.size()));
    const auto done = store_.settle(part);
    if (done) {
      part_size.note_success();
      for (const TakenOver& one : part) note_settled(one);
    } else {
      failed(done.error());
      if (!is_refused_row(done.error())) return false;
      part_size.note_refused(part.size());
      if (part.size() > 1) continue;
    }
    unsettled_.erase(unsettled_.begin(), unsettled_.begin() + std::ssize(part));
  }
  return true;
}

void OutboxRelay::Outbox::note_settled(const TakenOver& one) {
  if (!one.error.empty()) {
    spdlog::warn("outbox of {}: job {} was {}: {}", name_, one.job_id,
                 one.existing == one.job_id ? "changed too late" : "refused", one.error);
    next_size_ = {};
  }
  if (one.error.empty() && !one.existing) ++shared_.relayed;
}

void OutboxRelay::Outbox::hand_over() {
  const auto is_empty = store_.is_empty();
  if (!is_empty) return failed(is_empty.error());
  if (*is_empty) return;
  const auto shards = shared_.shards.get();
  for (const auto& [to, there] : *shards) {
    if (is_busy(to) || !intakes_.contains(to)) continue;
    // Before the entries are read: the time for which the other database may take them over counts from here.
    const auto now = shared_.hooks.time_at_least(to);
    if (!now) continue;
    auto entries = store_.claim(there.mine, there.others, shared_.id, kEntryBatch);
    if (!entries) {
      failed(entries.error());
      if (!is_refused_row(entries.error())) return;
      continue;  // entries for other databases are claimed in other rows
    }
    if (!entries->empty()) hand_over(to, std::move(*entries), *now + IntakeStore::kHandOver);
  }
}

void OutboxRelay::Outbox::hand_over(DatabaseId to, std::vector<OutboxEntry> entries, WallTime valid_until) {
  {
    MutexLock lock(mutex_);
    busy_.insert(to);
  }
  intakes_.at(to)->push([this, to, valid_until, entries = std::move(entries)](Intake& intake) {
    auto answers = intake.take_over(database_id_, valid_until, entries);
    // Notified under the lock: the outbox may be destroyed a moment later.
    MutexLock lock(mutex_);
    busy_.erase(to);
    if (!answers.empty()) worker_.wake();
    answers_.insert(answers_.end(), std::make_move_iterator(answers.begin()), std::make_move_iterator(answers.end()));
    answered_.notify_one();
  });
}

void OutboxRelay::Outbox::measure() {
  const MonoTime now = shared_.clock.now();
  if (now < next_size_) return;
  next_size_ = now + kPoll;
  const auto size = store_.size();
  if (!size) return failed(size.error());
  if (size->waiting + size->refused > kFew) next_size_ = now + kSizeOfManyEvery;
  size_.set(std::make_shared<const OutboxSize>(*size));
}

// Lets the other databases forget entries that are settled.
void OutboxRelay::Outbox::look_after() {
  std::vector<std::pair<DatabaseId, std::vector<JobId>>> remembered;
  {
    MutexLock lock(mutex_);
    remembered.swap(remembered_);
  }
  for (const auto& there : remembered) look_for(there);
  const MonoTime now = shared_.clock.now();
  if (now >= next_forgetting_) {
    next_forgetting_ = now + kLookEvery;
    if (auto done = store_.forget_existing(); !done) failed(done.error());
  }
  const auto shards = shared_.shards.get();
  for (const auto& [to, there] : *shards) {
    MonoTime& next = next_looks_.try_emplace(to, next_forgetting_).first->second;
    if (there.mine.empty() || !intakes_.contains(to) || now < next || is_busy(to)) continue;
    next = now + kLookEvery;
    {
      MutexLock lock(mutex_);
      busy_.insert(to);
    }
    intakes_.at(to)->push([this, to = to, mine = there.mine](Intake& intake) {
      auto jobs = intake.store().remembered(database_id_, mine, kLookBatch);
      if (!jobs) intake.failed(jobs.error());
      MutexLock done(mutex_);
      busy_.erase(to);
      if (jobs && !jobs->empty()) remembered_.emplace_back(to, std::move(*jobs));
      worker_.wake();
      answered_.notify_one();
    });
  }
}

void OutboxRelay::Outbox::look_for(const std::pair<DatabaseId, std::vector<JobId>>& remembered) {
  const auto& [to, jobs] = remembered;
  auto gone = store_.gone(jobs);
  if (!gone) return failed(gone.error());
  if (jobs.size() == kLookBatch) next_looks_[to] = shared_.clock.now();
  if (gone->empty()) return;
  intakes_.at(to)->push([gone = std::move(*gone)](Intake& intake) {
    if (auto done = intake.store().note_gone(gone); !done) intake.failed(done.error());
  });
}

OutboxRelay::OutboxRelay(std::vector<RelayDatabase> databases, const Clock& clock, Metrics& metrics, RelayHooks hooks)
    : shared_(std::make_unique<Shared>(clock, metrics, std::move(hooks))) {
  for (const RelayDatabase& database : databases) {
    intakes_.emplace(database.database_id, std::make_unique<Intake>(database, *shared_));
    outboxes_.emplace(database.database_id, std::make_unique<Outbox>(database, *shared_, intakes_));
  }
  add_metrics(metrics);
}

OutboxRelay::~OutboxRelay() { stop(); }

void OutboxRelay::start() {
  for (const auto& [database_id, intake] : intakes_) intake->start();
  for (const auto& [database_id, outbox] : outboxes_) outbox->start();
}

void OutboxRelay::stop() {
  for (const auto& [database_id, outbox] : outboxes_) outbox->stop();
  for (const auto& [database_id, intake] : intakes_) intake->stop();
}

void OutboxRelay::set_shards(const std::vector<Shard>& mine, const ShardMap& map) {
  auto shards = std::make_shared<ShardsAt>();
  for (Shard shard = 0; shard < static_cast<Shard>(map.owners.size()); ++shard) {
    Shards& there = (*shards)[map.database_of(shard)];
    (std::ranges::binary_search(mine, shard) ? there.mine : there.others).push_back(shard);
  }
  shared_->shards.set(std::move(shards));
}

void OutboxRelay::wake(DatabaseId source) {
  if (const auto outbox = outboxes_.find(source); outbox != outboxes_.end()) outbox->second->wake();
}

void OutboxRelay::step_outbox(DatabaseId source) { outboxes_.at(source)->step(); }

void OutboxRelay::step_intake(DatabaseId target) { intakes_.at(target)->run_queue(); }

void OutboxRelay::add_metrics(Metrics& metrics) {
  metrics.add_counter("tocsin_outbox_relayed_total", "Jobs that this node has relayed from outboxes to their databases",
                      [this] { return static_cast<double>(shared_->relayed.load()); });
  for (const auto& each : outboxes_) {
    const Outbox& outbox = *each.second;
    const Metrics::Labels labels{{"database", outbox.name()}};
    metrics.add_gauge(
        "tocsin_outbox_waiting", "Jobs in the database's outbox that have not been relayed",
        [&outbox] { return static_cast<double>(outbox.size().waiting); }, labels);
    metrics.add_gauge(
        "tocsin_outbox_refused", "Entries of the database's outbox that were refused and became no job",
        [&outbox] { return static_cast<double>(outbox.size().refused); }, labels);
    metrics.add_gauge(
        "tocsin_outbox_oldest_seconds", "How long the oldest job in the database's outbox has waited",
        [&outbox] { return std::chrono::duration<double>(outbox.size().oldest).count(); }, labels);
  }
}

}  // namespace tocsin
