#include "node/database.h"

#include <spdlog/spdlog.h>

#include "postgres/pg_client_store.h"

namespace tocsin {
namespace {

constexpr std::size_t kQueue = 20'000;  // requests waiting for a database thread; over it callers get 429
constexpr std::size_t kBatch = 500;     // requests that share a transaction
constexpr std::size_t kReadBatch = 100;
// Jobs that a batch of reads may answer: a hundred lists of the default length (100 and one that tells whether there
// are more), but ten of the longest. Of each list a statement returns some 1 MiB at most (kMostBytesOfList).
constexpr std::size_t kReadRows = 10'100;
// Reads that may be slow: few at a time, and none is worth waiting for long.
constexpr int kReaders = 2;
constexpr std::size_t kReadQueue = 64;
constexpr int kReadTimeoutMs = 5'000;
// Requests that wait for locks of other transactions, some seconds each at most.
constexpr int kLockWaiters = 4;
constexpr std::size_t kLockQueue = 64;
constexpr std::size_t kTypeRetryQueue = 64;
constexpr Duration kLockPatience = std::chrono::seconds(3);  // as lock_timeout
constexpr int kLastHeldTries = 16;                           // few: most of these keys are still held after 3 s

SessionConfig named(SessionConfig session, const std::string& role) {
  session.application = "tocsin " + role;
  return session;
}

SessionConfig reader(SessionConfig session) {
  session.statement_timeout_ms = kReadTimeoutMs;
  return named(std::move(session), "reads");
}

Error row_is_locked() { return {ErrorCode::conflict, "another transaction holds its row", ""}; }

}  // namespace

Housekeeping::Callbacks Database::callbacks(Hooks hooks) {
  return {std::move(hooks.check),
          [this] { open(); },
          [this](const Error& why) { close(why); },
          [this, reload = std::move(hooks.reload_types)](TypeStore& store) { return reload(*this, store); },
          [this] { watch_.answered(); },
          [this](const Error& error) { note_failure(error); },
          [this] { return reports_.take(); },
          [this](std::vector<TypeState> states) {
            MutexLock lock(mutex_);
            type_states_ = std::move(states);
          },
          [this](std::size_t days) { withheld_history_ = static_cast<std::int64_t>(days); }};
}

Database::Database(DatabaseConfig config, const Clock& clock, Metrics& metrics, std::shared_ptr<PollQueue> polls,
                   Hooks hooks)
    : config_(std::move(config)),
      clock_(clock),
      reports_([this]() -> std::optional<ReportBuffer::Context> {
        const auto now = shared().db_clock.at_least(clock_.now());
        if (!now) return {};
        return ReportBuffer::Context{*now, shared().catalog.get()};
      }),
      watch_(title(), clock),
      events_(metrics, reports_, watch_, config_.is_only_database ? "" : config_.name + ": ",
              [this] { housekeeping_.reload_types(); }),
      housekeeping_({named(config_.session, "housekeeping"), config_.retain_days, config_.node_id}, clock,
                    callbacks(hooks)),
      engine_(
          config_.engine, clock, events_, std::move(hooks.find_handler), std::move(polls),
          [this] {
            if (is_control()) housekeeping_.reload_types();
          },
          [this, changed = std::move(hooks.members_changed)] {
            if (is_control()) changed();
          }),
      pool_(config_.database_id, named(config_.session, "api"), config_.shards, config_.db_pool, kQueue, clock,
            [&metrics](Duration time) { metrics.waited(time); }),
      readers_(config_.database_id, reader(config_.session), config_.shards, kReaders, kReadQueue, clock,
               [&metrics](Duration time) { metrics.waited(time); }),
      lock_waiters_(config_.database_id, named(config_.session, "api"), config_.shards, kLockWaiters, kLockQueue, clock,
                    [&metrics](Duration time) { metrics.waited_behind_locks(time); }),
      type_retries_(config_.database_id, named(config_.session, "api"), config_.shards, 1, kTypeRetryQueue, clock,
                    [&metrics](Duration time) { metrics.waited(time); }),
      locked_creates_(
          named(config_.session, "api"), config_.shards, clock, kQueue, kLockPatience,
          [](PgClientStore& client_store, std::vector<CreateItem> items, bool is_last) {
            const int tries = is_last ? kLastHeldTries : ClientStore::kMostHeldTries;
            auto held = write_creates(client_store, std::move(items), tries);
            if (!is_last) return held;
            for (const CreateItem& item : held)
              item.done(Error{ErrorCode::conflict, "another transaction creates a job with its key", ""});
            return std::vector<CreateItem>{};
          },
          kQueue),  // all in one attempt, for its tries bound the pass
      // With several databases a job that looks locked may be moving. So it is tried once here, and NodeBackend asks
      // where the job lives before it tries again.
      locked_jobs_(named(config_.session, "api"), config_.shards, clock, kQueue,
                   config_.is_only_database ? kLockPatience : Duration(0),
                   [](PgClientStore& client_store, std::vector<ChangeItem> items, bool is_last) {
                     return write_changes(client_store, std::move(items),
                                          is_last ? LockedRowAttempt::last : LockedRowAttempt::second);
                   }),
      locked_leases_(
          named(config_.session, "api"), config_.shards, clock, kQueue, kLockPatience,
          [node = config_.engine.engine.node](PgClientStore& client_store, std::vector<LeaseItem> items, bool is_last) {
            auto locked = write_leases(client_store, node, std::move(items));
            if (!is_last) return locked;
            for (LeaseItem& item : locked) refuse(item, row_is_locked());
            return std::vector<LeaseItem>{};
          }),
      creates_(named(config_.session, "api"), config_.shards, clock, kQueue, kBatch,
               [](PgClientStore& client_store, std::vector<CreateItem> items) {
                 write_creates(client_store, std::move(items));
               }),
      keyed_creates_(
          named(config_.session, "api"), config_.shards, clock, kQueue, kBatch,
          [this](PgClientStore& client_store, std::vector<CreateItem> items) {
            for (const CreateItem& item : locked_creates_.push(write_creates(client_store, std::move(items))))
              item.done(too_many_requests());
          }),
      changes_(named(config_.session, "api"), config_.shards, clock, kQueue, kBatch,
               [this](PgClientStore& client_store, std::vector<ChangeItem> items) {
                 const LockedRowAttempt which =
                     config_.is_only_database ? LockedRowAttempt::first : LockedRowAttempt::first_and_last;
                 for (ChangeItem& item : locked_jobs_.push(write_changes(client_store, std::move(items), which)))
                   refuse(item, too_many_requests());
               }),
      leases_(named(config_.session, "api"), config_.shards, clock, kQueue, kBatch,
              [this, node = config_.engine.engine.node](PgClientStore& client_store, std::vector<LeaseItem> items) {
                for (LeaseItem& item : locked_leases_.push(write_leases(client_store, node, std::move(items))))
                  refuse(item, too_many_requests());
              }),
      reads_(named(config_.session, "api"), config_.shards, clock, kQueue, kReadBatch,
             [](PgClientStore& client_store, std::vector<ReadItem> items) {
               answer_reads(client_store, std::move(items));
             },
             {most_rows, kReadRows}),
      hints_(named(config_.session, "api"), [this](const Error& error) { events_.failed("hints", error); }) {
  if (config_.is_only_database) return;
  outbox_waiter_.emplace(outbox_lookup(config_.session), clock,
                         OutboxWaiter::Hooks{[this] { return is_answering(); },
                                             [this](const Error& error) { events_.failed("outbox lookup", error); }});
  outbox_waiter_->start();
}

Database::~Database() { stop(); }

Status Database::start() {
  // Connects first, so that neither the first jobs nor the first request wait for new connections.
  Status done = Error{ErrorCode::unavailable, "it did not answer", ""};
  if (config_.is_answering) done = engine_.connect();
  if (done) done = housekeeping_.start();
  if (!done && is_control()) return done;
  if (!done) housekeeping_.start_later();
  engine_.start();
  return Unit{};
}

void Database::stop() {
  stop_outbox_waiter();
  engine_.stop(Duration(0), [] {});
  housekeeping_.stop();
  creates_.stop();
  keyed_creates_.stop();
  changes_.stop();
  leases_.stop();
  locked_creates_.stop();
  locked_jobs_.stop();
  locked_leases_.stop();
  pool_.stop();
  lock_waiters_.stop();  // after the pool, which posts to it
  type_retries_.stop();
  reads_.stop();
  readers_.stop();
  hints_.stop();
}

void Database::open() {
  std::size_t shards = 0;
  bool was_refused = false;
  {
    MutexLock lock(mutex_);
    mirrored_.clear();  // an older state of the database may have come back, without these types
    if (std::exchange(is_open_, true)) return;
    engine_.engine().set_all_shards(all_);
    engine_.engine().set_shards(mine_);
    shards = mine_.size();
    was_refused = std::exchange(is_refused_, false);
  }
  if (!config_.is_answering || was_refused)
    spdlog::info("database {}: can be used; this node scans {} shards there", title(), shards);
}

// Most sessions find out by themselves that another database answers, but not sessions that a pooler keeps open.
void Database::close(const Error& why) {
  bool was_refused = false;
  {
    MutexLock lock(mutex_);
    was_refused = std::exchange(is_refused_, true);
    is_open_ = false;
    engine_.engine().set_all_shards({});
    engine_.engine().set_shards({});
  }
  if (!was_refused) spdlog::error("database {}: {}", title(), why.message);
}

void Database::note_failure(const Error& error) {
  {
    MutexLock lock(mutex_);
    mirrored_.clear();  // another server, or an older state, may answer next
    if (!is_open_) trouble_ = error;
  }
  watch_.failed(error);
  events_.note_failure("housekeeping", error);
}

std::optional<Error> Database::unavailable_reason() const {
  MutexLock lock(mutex_);
  if (is_open_) return {};
  return Error{ErrorCode::unavailable, trouble_.message, ""};
}

bool Database::is_answering() const { return !unavailable_reason() && watch_.is_answering(); }

void Database::set_shards(std::vector<Shard> mine, std::vector<Shard> all) {
  MutexLock lock(mutex_);
  mine_ = std::move(mine);
  all_ = std::move(all);
  if (!is_open_) return;
  engine_.engine().set_all_shards(all_);
  engine_.engine().set_shards(mine_);
}

std::size_t Database::shards() const {
  MutexLock lock(mutex_);
  return mine_.size();
}

bool Database::has_type(TypeId type) const {
  if (is_control()) return true;
  MutexLock lock(mutex_);
  return mirrored_.contains(type);
}

Status Database::mirror(TypeStore& store, const TypeCatalog& catalog) {
  Versions wanted;
  Versions before;
  {
    MutexLock lock(mutex_);
    before = mirrored_;
  }
  std::vector<BizType> changed;
  for (const auto& [id, type] : catalog.by_id) {
    wanted[id] = type->gmt_modified;
    const auto mirrored = before.find(id);
    if (mirrored == before.end() || mirrored->second != type->gmt_modified) changed.push_back(*type);
  }
  if (wanted == before) return Unit{};
  if (auto done = store.mirror(changed); !done) return done;
  MutexLock lock(mutex_);
  if (mirrored_ == before) mirrored_ = std::move(wanted);  // else: changed meanwhile; the next call writes all again
  return Unit{};
}

bool Database::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  Coalescer<CreateItem>& writer = job.idempotency_key ? keyed_creates_ : creates_;
  return writer.push({{std::move(job), std::move(done)}});
}

bool Database::change(ChangeItem item, bool is_retry) {
  if (!is_retry) return changes_.push(std::move(item));
  std::vector<ChangeItem> one;
  one.push_back(std::move(item));
  return locked_jobs_.push(std::move(one)).empty();
}

void Database::hint(const Candidate& job) {
  const auto now = shared().db_clock.at_least(clock_.now());
  if (now && job.fire_at >= *now + shared().config.hint_window()) return;
  // After the end of the membership lease another node may own the shard. This node may still own it, too, if its
  // engine continues without a lease.
  const MonoTime at = clock_.now();
  const bool is_mine = engine_.owns(shard_of(job.job_id));
  if (is_mine && !shared().membership.is_stopped(at)) engine_.engine().hint(job);
  if (!is_mine || shared().membership.is_lease_lost(at)) hints_.push(job);
}

}  // namespace tocsin
