#include "node/node_backend.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/all_answers.h"
#include "node/shard_homes.h"

namespace tocsin {
namespace {

constexpr Duration kPatience = std::chrono::seconds(3);  // with a write-frozen shard: longer than its freeze

// A job of a write-frozen shard (one that is moving) is answered like a job whose row another transaction holds locked.
bool may_be_moving(const Result<CancelReply>& reply) { return reply && reply->kind == CancelReply::Kind::locked; }
bool may_be_moving(const Result<ChangeReply>& reply) { return reply && reply->kind == ChangeReply::Kind::locked; }
bool may_be_moving(const Result<KeyCancelReply>& reply) {
  return reply && !reply->locked.empty() && reply->cancelled.empty();
}

bool is_missing(const Result<CancelReply>& reply) { return reply && reply->kind == CancelReply::Kind::not_found; }
bool is_missing(const Result<ChangeReply>& reply) { return reply && reply->kind == ChangeReply::Kind::not_found; }
bool is_missing(const Result<std::optional<Job>>& reply) { return reply && !*reply; }

Error in_outbox(const std::string& database) {
  return {ErrorCode::conflict, "The job is on its way from the database " + database + " to the one of its shard",
          kInOutbox};
}

Error unknown_outbox(const std::string& database) {
  return {ErrorCode::conflict, "The database " + database + " did not tell whether the job is on its way from it",
          kInOutbox};
}

// What a database answers about entries in its outbox; nullopt: too many requests wait there.
using OutboxAnswer = std::optional<OutboxWaiter::Answer>;

// Whether no entry waits in these databases; those that were not asked are added to `unasked`.
Result<Backend::Unasked> outcome_of(const std::vector<const Database*>& asked, const std::vector<OutboxAnswer>& answers,
                                    Backend::Unasked unasked) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!answers[i]) return too_many_requests();
    switch (*answers[i]) {
      case OutboxWaiter::Answer::waits:
        return in_outbox(asked[i]->name());
      case OutboxWaiter::Answer::unknown:
        return unknown_outbox(asked[i]->name());
      case OutboxWaiter::Answer::not_asked:
        unasked.push_back(asked[i]->database_id());
        break;
      case OutboxWaiter::Answer::gone:
        break;
    }
  }
  return unasked;
}

}  // namespace

NodeBackend::NodeBackend(std::string node_name, int shards, const NodeParts& parts)
    : node_name_(std::move(node_name)), shards_(shards), parts_(parts), map_(parts.map), clock_(parts.clock) {
  if (map_.all().size() > 1) retry_queue_.emplace();
}

bool NodeBackend::queue_retry(MonoTime until, std::function<void()> attempt) {
  parts_.membership.request_heartbeat();  // the map may be a new one
  return clock_.now() < until && retry_queue_->push(std::move(attempt));
}

bool NodeBackend::create(NewJob job, std::function<void(Result<CreateReply>)> done) {
  const MonoTime until = retry_queue_ ? clock_.now() + kPatience : MonoTime::min();
  return create_until(until, std::move(job), std::move(done));
}

bool NodeBackend::create_until(MonoTime until, NewJob job, std::function<void(Result<CreateReply>)> answer) {
  std::function<void(Result<CreateReply>)> done = std::move(answer);
  if (retry_queue_) {
    done = [this, job, until, caller = std::move(done)](Result<CreateReply> reply) {
      if (!reply && reply.error().code == ErrorCode::moved && queue_retry(until, [this, job, until, caller] {
            if (!create_until(until, job, caller)) caller(too_many_requests());
          }))
        return;
      caller(std::move(reply));
    };
  }
  const DatabaseId database_id = map_.database_of(shard_of(job.biz_id, shards_));
  if (const auto why = map_.unavailable_reason(database_id)) return done(*why), true;
  Database& database = *map_.at(database_id);
  if (database.has_type(job.type_id)) return database.create(std::move(job), std::move(done));
  return database.post([this, &database, job = std::move(job), done = std::move(done)](Stores& stores) {
    if (auto known = parts_.types.mirror_to(stores); !known) return done(known.error());
    if (!database.create(job, done)) done(too_many_requests());
  });
}

template <class Request, class Reply>
bool NodeBackend::post_change(Shard shard, Request request, std::function<void(Result<Reply>)> done) {
  const MonoTime until = retry_queue_ ? clock_.now() + kPatience : MonoTime::min();
  return change_until<Request, Reply>(until, shard, std::move(request), std::move(done), false);
}

template <class Request, class Reply>
bool NodeBackend::change_until(MonoTime until, Shard shard, Request request, std::function<void(Result<Reply>)> answer,
                               bool is_retry) {
  std::function<void(Result<Reply>)> done = std::move(answer);
  if (retry_queue_) {
    done = [this, shard, request, until, caller = std::move(done)](Result<Reply> reply) {
      if (!may_be_moving(reply)) return caller(std::move(reply));
      // When the shard has moved, its old database may not even have the rows any more that were locked before.
      const auto change_again = [this, shard, request, until, caller, reply](const Status& is_home) {
        if (!is_home) return caller(is_home.error().code == ErrorCode::moved ? is_home.error() : reply);
        if (!change_until<Request, Reply>(until, shard, request, caller, true)) caller(too_many_requests());
      };
      const auto retry = [this, until, shard, change_again] { check_homes_until(until, {shard}, change_again); };
      if (!queue_retry(until, retry)) caller(std::move(reply));
    };
  }
  const DatabaseId database_id = map_.database_of(shard);
  if (const auto why = map_.unavailable_reason(database_id)) return done(*why), true;
  return map_.at(database_id)->change({PendingRequest<Request, Reply>{std::move(request), std::move(done)}}, is_retry);
}

void NodeBackend::after_outboxes(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) {
  if (!has_several_databases()) return proceed(Unasked{});
  // A request for a database that does not answer need not wait for entries that cannot be relayed to it.
  std::erase_if(
      queries, [this](const EntryQuery& query) { return !map_.is_answering(map_.database_of(shard_of_query(query))); });
  std::vector<Database*> asked;
  Unasked unasked;
  for (const auto& [database_id, shards] : map_.unknown()) unasked.push_back(database_id);
  for (const auto& database : map_.all()) {
    if (database->is_answering())
      asked.push_back(database.get());
    else
      unasked.push_back(database->database_id());
  }
  if (queries.empty() || asked.empty()) return proceed(std::move(unasked));
  const auto conclude = [databases = std::vector<const Database*>(asked.begin(), asked.end()), unasked,
                         proceed = std::move(proceed)](const std::vector<OutboxAnswer>& all) {
    proceed(outcome_of(databases, all, unasked));
  };
  const auto answers = std::make_shared<AllAnswers<OutboxAnswer>>(asked.size(), conclude);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto take = [answers, i](OutboxWaiter::Answer answer) { answers->take(i, answer); };
    if (!asked[i]->await_outbox(queries, take)) answers->take(i, std::nullopt);
  }
}

// The homes are asked last: an entry that an outbox held back may have been relayed to where its shard has moved.
void NodeBackend::when_findable(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) {
  if (!has_several_databases()) return proceed(Unasked{});
  std::vector<Shard> shards;
  shards.reserve(queries.size());
  for (const EntryQuery& query : queries) shards.push_back(shard_of_query(query));
  std::ranges::sort(shards);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  after_outboxes(std::move(queries),
                 [this, shards = std::move(shards), proceed = std::move(proceed)](const Result<Unasked>& unasked) {
                   if (!unasked) return proceed(unasked);
                   check_homes_until(clock_.now() + kPatience, shards, [proceed, unasked](const Status& are_home) {
                     proceed(are_home ? unasked : Result<Unasked>(are_home.error()));
                   });
                 });
}

void NodeBackend::check_homes_until(MonoTime until, std::vector<Shard> shards, std::function<void(Status)> done) {
  std::vector<ShardHome> homes;
  homes.reserve(shards.size());
  for (const Shard shard : shards) homes.push_back({shard, map_.database_of(shard)});
  check_homes(map_, std::move(homes),
              [this, until, shards = std::move(shards), done = std::move(done)](const Status& are_home) {
                const bool has_moved = !are_home && are_home.error().code == ErrorCode::moved;
                if (!has_moved || !queue_retry(until, [=, this] { check_homes_until(until, shards, done); }))
                  done(are_home);
              });
}

template <class Reply>
bool NodeBackend::send_and_look_again(JobId job, std::function<bool(std::function<void(Result<Reply>)>)> send,
                                      std::function<void(Result<Reply>)> done) {
  if (!has_several_databases()) return send(std::move(done));
  return send([this, job, send, done = std::move(done)](Result<Reply> reply) {
    if (!is_missing(reply)) return done(std::move(reply));
    when_findable({{job, ""}}, [this, send, done](const Result<Unasked>& unasked) {
      if (!unasked) return done(unasked.error());
      const auto answer = [this, unasked = *unasked, done](Result<Reply> again) {
        is_missing(again) && !unasked.empty() ? done(maybe_in_outbox(map_.name(unasked.front())))
                                              : done(std::move(again));
      };
      if (!send(answer)) done(too_many_requests());
    });
  });
}

bool NodeBackend::cancel(JobId job, std::function<void(Result<CancelReply>)> done) {
  const auto send = [this, job](std::function<void(Result<CancelReply>)> reply) {
    return post_change<JobId, CancelReply>(shard_of(job), job, std::move(reply));
  };
  return send_and_look_again<CancelReply>(job, send, std::move(done));
}

bool NodeBackend::cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) {
  const Shard shard = shard_of(key.biz_id, shards_);
  return post_change<KeyCancel, KeyCancelReply>(shard, std::move(key), std::move(done));
}

bool NodeBackend::change(PendingChange wanted, std::function<void(Result<ChangeReply>)> done) {
  const auto send = [this, wanted](std::function<void(Result<ChangeReply>)> reply) {
    return post_change<PendingChange, ChangeReply>(shard_of(wanted.job), wanted, std::move(reply));
  };
  return send_and_look_again<ChangeReply>(wanted.job, send, std::move(done));
}

bool NodeBackend::retry(JobId job, std::function<void(Result<ChangeReply>)> done) {
  const auto send = [this, job](std::function<void(Result<ChangeReply>)> reply) {
    const DatabaseId database_id = map_.database_of(shard_of(job));
    if (const auto why = map_.unavailable_reason(database_id)) return reply(*why), true;
    return map_.at(database_id)->change({RetryAsked{job, std::move(reply)}}, false);
  };
  return send_and_look_again<ChangeReply>(job, send, std::move(done));
}

template <class Request, class Reply>
bool NodeBackend::post_lookup(Shard shard, Request request, std::function<void(Result<Reply>)> done) {
  const DatabaseId database_id = map_.database_of(shard);
  if (const auto why = map_.unavailable_reason(database_id)) return done(*why), true;
  return map_.at(database_id)->read(PendingRequest<Request, Reply>{std::move(request), std::move(done)});
}

bool NodeBackend::get(JobId job, std::function<void(Result<std::optional<Job>>)> done) {
  const auto send = [this, job](std::function<void(Result<std::optional<Job>>)> reply) {
    return post_lookup<JobId, std::optional<Job>>(shard_of(job), job, std::move(reply));
  };
  return send_and_look_again<std::optional<Job>>(job, send, std::move(done));
}

bool NodeBackend::list_key(KeyQuery query, std::function<void(Result<KeyList>)> done) {
  const Shard shard = shard_of(query.biz_id, shards_);
  return post_lookup<KeyQuery, KeyList>(shard, std::move(query), std::move(done));
}

bool NodeBackend::lease(LeaseCall call) {
  const MonoTime now = clock_.now();
  return parts_.polls.add(std::make_shared<const Poll>(
      Poll{call.type_id, call.max, call.ttr, now, now + call.wait, std::move(call.is_gone), std::move(call.done)}));
}

void NodeBackend::note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) {
  const MonoTime ends = clock_.now() + ttr;
  for (const Lease& lease : leases) parts_.permits.flow()->leases().extend(type, lease, ends);
}

void NodeBackend::hint(JobId job, TypeId type, WallTime fire_at) {
  if (Database* database = map_.at(map_.database_of(shard_of(job)))) database->hint({job, type, fire_at});
}

Waiting NodeBackend::waiting(TypeId type) const {
  Waiting all;
  for (const auto& database : map_.all()) {
    const Waiting here = database->engine().engine().waiting(type);
    all.fresh += here.fresh;
    all.late += here.late;
  }
  const auto catalog = types();
  const BizType* known = catalog->find(type);
  return known && known->is_pull() ? parts_.polls.asked_for(type, all) : all;
}

WallTime NodeBackend::now() const {
  // Any database's clock serves while the control database's is unknown: only a rough time is needed then.
  for (const auto& database : map_.all()) {
    if (const auto now = database->shared().db_clock.at_least(clock_.now())) return *now;
  }
  return {};
}

std::string NodeBackend::hold_reason(const Job& job) const {
  const auto catalog = types();
  const BizType* known = catalog->find(job.type_id);
  if (!known) return "its type is not registered";
  if (known->is_paused(now())) return "its type is paused";
  if (!parts_.handlers.can_run(*known)) return "this node has no handler for its type";
  if (std::string reason = parts_.handlers.find(*known)->hold_reason(); !reason.empty()) return reason;
  if (known->is_pull() && parts_.polls.demand(job.type_id) == 0)
    return "no consumer asks this node for jobs of its type";
  const bool is_any = job.job_id == 0;
  const Database* database = is_any ? map_.all().front().get() : map_.at(map_.database_of(shard_of(job.job_id)));
  if (!database) return "this node was not started with its database";
  const EngineShared& shared = database->shared();
  // The engine's copy of the type, which has the pool of its handler.
  const auto runnable = shared.catalog.get();
  if (const BizType* type = runnable->find(job.type_id)) {
    const bool is_late = job.fire_at < now() - shared.config.lookahead;
    if (std::string reason = parts_.permits.hold_reason(*type, is_late); !reason.empty()) return reason;
  }
  if (known->is_instant() || (is_any && map_.all().size() > 1)) return "";
  const std::string here = map_.all().size() == 1 ? "" : " from its database";
  if (shared.limiter.running() >= shared.config.max_running)
    return "this node runs " + std::to_string(shared.config.max_running) + " jobs" + here + ", its limit";
  const std::size_t of_type = shared.limiter.running(job.type_id), share = shared.limiter.share();
  if (of_type > 0 && of_type >= share)
    return "this node runs " + std::to_string(of_type) + " jobs of its type" + here +
           ", its limit for one type while it runs " + std::to_string(shared.limiter.running()) + " in all";
  return "";
}

std::optional<int> NodeBackend::running(TypeId type) const {
  const auto catalog = types();
  const BizType* known = catalog->find(type);
  return known ? parts_.permits.running(*known) : std::nullopt;
}

}  // namespace tocsin
