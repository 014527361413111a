#include "node/database.h"

#include <spdlog/spdlog.h>

#include "postgres/pg_job_desk.h"

namespace tocsin {
namespace {

constexpr std::size_t kQueue = 20'000;  // requests waiting for a database thread; over it callers get 429
constexpr std::size_t kBatch = 500;     // requests that share a transaction
constexpr Duration kSilence = std::chrono::seconds(5);

// Answers every request of a batch. When the batch as a whole was refused for its values or for what somebody holds,
// each request is tried alone, so that one cannot fail its neighbours. What then fails alone is left to `last`.
template <class Item, class Reply, class Call, class Last>
void flush(std::vector<Item>& items, const Call& call, const Last& last) {
  Result<std::vector<Reply>> replies = call(items);
  if (replies) {
    for (std::size_t i = 0; i < items.size(); ++i) items[i].done(std::move((*replies)[i]));
    return;
  }
  const Error error = replies.error();
  const bool is_final = items.size() == 1 || error.code == ErrorCode::in_doubt || error.code == ErrorCode::unavailable;
  for (Item& item : items) {
    if (is_final) {
      last(item, error);
      continue;
    }
    std::vector<Item> alone;
    alone.push_back(std::move(item));
    flush<Item, Reply>(alone, call, last);
  }
}

SessionConfig named(SessionConfig session, const std::string& role) {
  session.application = "tocsin " + role;
  return session;
}

}  // namespace

void Database::write_creates(PgJobDesk& desk, std::vector<Create> items) {
  const auto create = [&](const std::vector<Create>& batch) {
    std::vector<NewJob> jobs;
    jobs.reserve(batch.size());
    for (const Create& item : batch) jobs.push_back(item.job);
    return desk.create(jobs, CreateMode::each_if_free);
  };
  flush<Create, CreateReply>(items, create, [this](Create& item, const Error& error) {
    // Waiting for somebody's lock is for threads that hold up nobody else.
    const bool is_held = error.code == ErrorCode::conflict && error.field != kElsewhere;
    const auto patient = std::make_shared<Create>(std::move(item));
    if (is_held && post([patient](Stores& stores) {
          auto replies = stores.desk.create({&patient->job, 1}, CreateMode::each_by_itself);
          patient->done(replies ? Result<CreateReply>(std::move(replies->front())) : replies.error());
        }))
      return;
    patient->done(error);
  });
}

void Database::write_cancels(PgJobDesk& desk, std::vector<Cancel> items) {
  flush<Cancel, CancelReply>(
      items,
      [&](const std::vector<Cancel>& batch) {
        std::vector<JobId> ids;
        for (const Cancel& item : batch) ids.push_back(item.job);
        return desk.cancel(ids);
      },
      [](Cancel& item, const Error& error) { item.done(error); });
}

Housekeeping::Callbacks Database::callbacks(Hooks hooks) {
  return {std::move(hooks.check),
          [this] { open(); },
          [this](const Error& why) { close(why); },
          [this, reload = std::move(hooks.reload_types)](TypeStore& store) { return reload(*this, store); },
          [this] { last_answer_ = clock_.now().time_since_epoch().count(); },
          [this](const Error& error) { note_failure(error); }};
}

Database::Database(DatabaseConfig config, const Clock& clock, Metrics& metrics, std::shared_ptr<PollQueue> polls,
                   Hooks hooks)
    : config_(std::move(config)),
      clock_(clock),
      events_(metrics, config_.is_alone ? "" : config_.name + ": "),
      housekeeping_({named(config_.session, "housekeeping"), config_.retain_days}, clock, callbacks(hooks)),
      engine_(
          config_.engine, clock, events_, std::move(hooks.find_handler), std::move(polls),
          [this] {
            if (is_home()) housekeeping_.reload_types();
          },
          [this, changed = std::move(hooks.members_changed)] {
            if (is_home()) changed();
          }),
      pool_(config_.place, named(config_.session, "api"), config_.shards, config_.db_pool, kQueue),
      creates_(named(config_.session, "api"), config_.shards, clock, kQueue, kBatch,
               [this](PgJobDesk& desk, std::vector<Create> items) { write_creates(desk, std::move(items)); }),
      cancels_(named(config_.session, "api"), config_.shards, clock, kQueue, kBatch, write_cancels),
      hints_(named(config_.session, "api"), [this](const Error& error) { events_.failed("hints", error); }) {}

Database::~Database() { stop(); }

Status Database::start() {
  // Connections that have seen their tables, for the first jobs; and open before anybody can ask.
  Status done = Error{ErrorCode::unavailable, "it did not answer", ""};
  if (config_.is_answering) done = engine_.connect();
  if (done) done = housekeeping_.start();
  if (!done && is_home()) return done;
  if (!done) housekeeping_.start_later();
  engine_.start();
  return Unit{};
}

void Database::stop() {
  engine_.stop(Duration(0), [] {});
  housekeeping_.stop();
  creates_.stop();
  cancels_.stop();
  pool_.stop();
  hints_.stop();
}

void Database::open() {
  std::lock_guard lock(mutex_);
  mirrored_.clear();  // an older state of it may have come back
  if (std::exchange(is_open_, true)) return;
  engine_.engine().set_all_shards(all_);
  engine_.engine().set_shards(mine_);
  if (!config_.is_answering || is_refused_)
    spdlog::info("database {}: answers; this node scans {} shards there", title(), mine_.size());
  is_refused_ = false;
}

// Sessions refuse it by themselves, but for those that a pooler keeps.
void Database::close(const Error& why) {
  std::lock_guard lock(mutex_);
  if (!std::exchange(is_refused_, true)) spdlog::error("database {}: {}", title(), why.message);
  is_open_ = false;
  engine_.engine().set_all_shards({});
  engine_.engine().set_shards({});
}

void Database::note_failure(const Error& error) {
  {
    std::lock_guard lock(mutex_);
    mirrored_.clear();  // it may be another server, or an older state of it, that answers next
    if (!is_open_) trouble_ = error;
  }
  events_.failed("housekeeping", error);
}

std::optional<Error> Database::why() const {
  std::lock_guard lock(mutex_);
  if (is_open_) return {};
  return Error{ErrorCode::unavailable, trouble_.message, ""};
}

bool Database::is_answering() const {
  return !why() && clock_.now() - MonoTime(Duration(last_answer_.load())) < kSilence;
}

void Database::set_shards(std::vector<Shard> mine, std::vector<Shard> all) {
  std::lock_guard lock(mutex_);
  mine_ = std::move(mine);
  all_ = std::move(all);
  if (!is_open_) return;
  engine_.engine().set_all_shards(all_);
  engine_.engine().set_shards(mine_);
}

std::size_t Database::shards() const {
  std::lock_guard lock(mutex_);
  return mine_.size();
}

bool Database::knows(TypeId type) const {
  if (is_home()) return true;
  std::lock_guard lock(mutex_);
  return mirrored_.contains(type);
}

Status Database::mirror(TypeStore& store, const TypeCatalog& catalog) {
  Versions wanted;
  std::vector<BizType> types;
  for (const auto& [id, type] : catalog.by_id) {
    wanted[id] = type->gmt_modified;
    types.push_back(*type);
  }
  {
    std::lock_guard lock(mutex_);
    if (mirrored_ == wanted) return Unit{};
  }
  if (auto done = store.mirror(types); !done) return done;
  std::lock_guard lock(mutex_);
  mirrored_ = std::move(wanted);
  return Unit{};
}

bool Database::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  return creates_.push({std::move(job), std::move(done)});
}

bool Database::cancel(JobId job, std::function<void(Result<CancelReply>)> done) {
  return cancels_.push({job, std::move(done)});
}

void Database::hint(const Candidate& job) {
  const auto now = shared().db_clock.at_least(clock_.now());
  if (now && job.fire_at >= *now + shared().config.lookahead + std::chrono::seconds(1)) return;
  if (engine_.owns(shard_of(job.job_id))) {
    engine_.engine().hint(job);
  } else {
    hints_.push(job);
  }
}

}  // namespace tocsin
