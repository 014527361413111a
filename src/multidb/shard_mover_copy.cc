// Of a move: the copy of the shard's rows from source to target, and its end. shard_mover.cc decides when.
#include <algorithm>
#include <utility>

#include "multidb/shard_mover.h"
#include "postgres/conninfo.h"

namespace tocsin {
namespace {

constexpr auto kCopyInterval = std::chrono::milliseconds(200);
constexpr std::int64_t kClose = 1 << 20;             // bytes of log that a target applies in a moment
constexpr auto kNoWorker = std::chrono::seconds(1);  // within it a worker begins
constexpr auto kStalled = std::chrono::seconds(10);  // PostgreSQL tries again every five
constexpr auto kCalm = 3 * kStalled / 2;             // without a failure: it works again

}  // namespace

// Nodes do the same, but none need be running.
Status ShardMover::mirror_types(const ShardMove& move) {
  if (move.target == 0) return Unit{};
  const auto types = sessions_.at(0)->types().list(TypeStore::Removed::included);
  if (!types) return types.error();
  return sessions_.at(move.target)->types().mirror(*types);
}

// The connection string that the target's server uses. It is stored in that server's catalog until the move ends.
Result<std::string> ShardMover::source_of(const ShardMove& move) {
  const std::string given = options_.source_url.empty() ? database(move.source).url : options_.source_url;
  if (!options_.source_passfile.empty()) return without_password(given, options_.source_passfile);
  const auto is_shown = has_password(given);
  if (is_shown && *is_shown)
    say("the password of " + name(move.source) + " is in the catalog of " + name(move.target) +
        " until the move ends, for superusers to read; --source-passfile, or --source-url with service=, avoids it");
  return given;
}

// A subscription continues with its own slot only. A failover of the source loses the slot, and a new one begins later:
// what was committed in between would be missing in the target.
Status ShardMover::prepare_copy(const ShardMove& move) {
  if (auto done = mirror_types(move); !done) return done;
  const auto slot = copy_at(move.source).slot(move);
  if (!slot) return about(move.source, slot.error());
  auto subscription = copy_at(move.target).subscription(move);
  if (!subscription) return about(move.target, subscription.error());
  if (*subscription != ShardCopy::Subscription::none) {
    const auto has_slot = copy_at(move.source).has_slots({*slot});
    if (!has_slot) return about(move.source, has_slot.error());
    if (!*has_slot || *subscription == ShardCopy::Subscription::disabled) {
      say("the copy cannot continue, because " +
          (*has_slot ? "it was being ended" : name(move.source) + " has lost its replication slot") +
          ": copying again");
      if (auto done = delete_copy(move); !done) return done;
      *subscription = ShardCopy::Subscription::none;
    }
  }
  if (auto done = copy_at(move.source).publish(move); !done) return about(move.source, done.error());
  if (*subscription == ShardCopy::Subscription::none)
    if (auto done = copy_at(move.source).make_slot(move); !done) return about(move.source, done.error());
  const auto tables = at(move.source).tables(move.shard);
  if (!tables) return tables.error();
  if (auto done = copy_at(move.target).make_history(*tables); !done) return about(move.target, done.error());
  const auto source = source_of(move);
  if (!source) return source.error();
  if (auto done = copy_at(move.target).subscribe(move, *source, *slot); !done) return about(move.target, done.error());
  return Unit{};
}

// If the source has lost a slot, of the whole copy or of a table that must still catch up, everything is copied again.
// Checked only after a time without progress, because every table that is done lacks its slot for a moment.
Status ShardMover::mend_copy(const ShardMove& move) {
  auto slots = copy_at(move.target).slots_needed(move);
  if (!slots) return slots.error();
  const auto slot = copy_at(move.source).slot(move);
  if (!slot) return about(move.source, slot.error());
  slots->push_back(*slot);
  const auto is_well = copy_at(move.source).has_slots(*slots);
  if (!is_well) return about(move.source, is_well.error());
  if (*is_well) return Unit{};
  say("the copy cannot end, because " + name(move.source) + " has lost a replication slot: copying again");
  if (auto done = delete_copy(move); !done) return done;
  return prepare_copy(move);
}

// The subscription is removed last. As long as it exists, a repeated command finds it and deletes the copied rows.
Status ShardMover::delete_copy(const ShardMove& move) {
  if (auto done = stop_replication(move); !done) return done;
  if (auto done = clear(move, move.target); !done) return done;
  return unlink(move);
}

Status ShardMover::check_workers(const ShardMove& move) {
  const auto trouble = copy_at(move.target).why_no_worker(move);
  if (!trouble) return about(move.target, trouble.error());
  if (std::exchange(worker_trouble_, *trouble) != *trouble && !trouble->empty())
    say("waiting: database " + name(move.target) + ": " + *trouble);
  return count_failures(move);
}

Status ShardMover::count_failures(const ShardMove& move) {
  const auto count = copy_at(move.target).failures(move);
  if (!count) return about(move.target, count.error());
  const auto now = clock_.now();
  const auto before = std::exchange(failures_.count, *count);
  // A server that crashed counts from 0 again.
  if (!before || *count <= *before) {
    if (now - failures_.last > std::max<Duration>(kCalm, options_.patience)) failures_.first.reset();
    return Unit{};
  }
  failures_.last = now;
  if (!failures_.first) {
    failures_.first = now;
    say("waiting: a worker of the subscription fails in " + name(move.target) + "; the log of its server says why");
  }
  if (now - *failures_.first < options_.patience) return Unit{};
  return Error{ErrorCode::invalid,
               "the workers of the subscription fail in " + name(move.target) +
                   " repeatedly; the log of its server says why. Run this again when that is fixed, or roll back "
                   "with --abort",
               "shard"};
}

Status ShardMover::copy(const ShardMove& move) {
  if (auto done = prepare_copy(move); !done) {
    is_refused_ = is_begun_here_ && done.error().code == ErrorCode::invalid;
    return done;
  }
  is_begun_here_ = false;
  auto progress = clock_.now();
  for (int last = -1;;) {
    const auto copied = copy_at(move.target).copied(move);
    if (!copied) return copied.error();
    if (copied->first != last) {
      say("copied " + std::to_string(copied->first) + " of " + std::to_string(copied->second) + " tables");
      progress = clock_.now();
    }
    last = copied->first;
    if (copied->first == copied->second) return wait_until_close(move);
    clock_.sleep(kCopyInterval);
    if (clock_.now() - progress < kNoWorker) continue;
    if (auto done = check_workers(move); !done) return done;
    if (clock_.now() - progress < kStalled) continue;
    if (auto done = mend_copy(move); !done) return done;
    progress = clock_.now();
  }
}

Status ShardMover::wait_until_close(const ShardMove& move) {
  for (std::int64_t last = -1;;) {
    if (auto done = count_failures(move); !done) return done;
    const auto position = copy_at(move.source).position();
    if (!position) return position.error();
    const auto behind = copy_at(move.source).behind(move, *position);
    if (!behind) return about(move.source, behind.error());
    if (*behind < kClose) return Unit{};
    if (last < 0 || *behind > last * 2 || *behind < last / 2) {
      say("the target is " + std::to_string(*behind >> 20) + " MiB of log behind");
      last = *behind;
    }
    clock_.sleep(kCopyInterval);
  }
}

Status ShardMover::stop_replication(const ShardMove& move) {
  const auto slots = copy_at(move.target).stop_workers(move);
  if (!slots) return about(move.target, slots.error());
  if (auto done = copy_at(move.source).drop_slots(move, *slots); !done) return about(move.source, done.error());
  return Unit{};
}

// Replication ends before anything is deleted, or the deletions would be replicated.
Status ShardMover::unlink(const ShardMove& move) {
  if (auto done = stop_replication(move); !done) return done;
  if (auto done = copy_at(move.target).unsubscribe(move); !done) return about(move.target, done.error());
  if (auto done = copy_at(move.source).unpublish(move); !done) return about(move.source, done.error());
  return Unit{};
}

Status ShardMover::clear(const ShardMove& move, DatabaseId database_id) {
  const auto tables = at(database_id).tables(move.shard);
  if (!tables) return tables.error();
  std::int64_t n = 0;
  for (const std::string& table : *tables) {
    const auto deleted = at(database_id).delete_rows(move, table);
    if (!deleted) return about(database_id, deleted.error());
    n += *deleted;
  }
  say("deleted " + std::to_string(n) + " rows from " + name(database_id));
  return Unit{};
}

}  // namespace tocsin
