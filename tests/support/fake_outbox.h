// FakeOutbox: the outbox of a database in memory (jobs that SQL created here for shards that live elsewhere), and the
// record of entries that this database took over from others (ADR 0022). It follows tocsin.create_job and the
// statements of the relay, one method per transaction. Used by relay_life.h.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "multidb/outbox_relay.h"
#include "support/fake_sessions.h"

namespace tocsin {

// Mistakes that a test plants; the simulation must fail with each.
struct FakeOutboxBugs {
  bool forgets_what_it_took = false;  // take_over() does not record the entry, so it becomes a job again
  bool cancels_claimed = false;       // a cancel changes an entry that a relay has claimed
  bool changes_keyed = false;         // an entry with a key is changed, though another job may have the key
  bool drops_later_changes = false;   // take_over() ignores changes of an entry whose job was there before
  bool compares_clocks = false;       // take_over() takes the change with the later time for the later change
  bool repeats_changes = false;       // take_over() applies a change of an entry again, which the job had already
  bool settles_changed = false;       // settle() deletes an entry that was changed since it was relayed
};

// Thread: owner only.
class FakeOutbox {
 public:
  FakeOutbox(DatabaseId database_id, FakeDatabase& database, std::set<Shard> here);

  FakeDatabase& data() { return database_; }
  bool lives_here(Shard shard) const { return here_.contains(shard); }
  std::size_t waiting() const { return entries_.size(); }
  FakeOutboxBugs bugs;

  // As tocsin.create_job: creates a job if the shard lives here, else an entry. Returns its id.
  JobId create(const std::string& biz_id, Duration in, const std::optional<std::string>& key, WallTime now);
  // As tocsin.cancel_job and tocsin.reschedule_job for an entry. True: its job will be so. False: a relay has claimed
  // it, it has a key, or there is no such entry.
  bool cancel(JobId job, WallTime now);
  bool reschedule(JobId job, WallTime action_time, WallTime now);
  // Why the entry was refused, or changed too late; empty: it was not, or there is no such entry.
  std::string error_of(JobId job) const;
  bool is_refused(JobId job) const;  // it became no job
  // The standby hears no more; and it takes over: what was done to the entries that relays have claimed since is lost.
  // Returns them as they are now. Entries that are new, or that no relay has claimed, are kept.
  void stop_standby() { standby_ = entries_; }
  std::vector<OutboxEntry> fail_over();
  // As retention: deletes the job from history, long after it ended.
  void drop(JobId job) { database_.drop_copy(job); }

  std::vector<OutboxEntry> claim(const std::set<Shard>& mine, const std::set<Shard>& others, std::int64_t relay,
                                 int limit, WallTime now);
  void settle(const std::vector<TakenOver>& entries);
  std::vector<JobId> gone(const std::vector<JobId>& jobs) const;

  Result<std::vector<TakenOver>> take_over(DatabaseId source, WallTime valid_until,
                                           const std::vector<OutboxEntry>& entries, WallTime now);
  std::vector<JobId> remembered(DatabaseId source, const std::set<Shard>& shards, int limit, WallTime now);
  void note_gone(const std::vector<JobId>& jobs, WallTime now);

 private:
  struct Entry {
    OutboxEntry entry;
    std::int64_t claimed_by = 0;
    std::optional<WallTime> claimed_at;
    bool is_settled = false;
    std::string error;
    std::optional<JobId> existing;
  };
  struct Relayed {
    DatabaseId source;
    WallTime gmt_create, relayed_at;
    std::optional<WallTime> gone_at;
    std::optional<JobId> existing;
    std::optional<WallTime> changed_at;
  };
  Entry* changeable(JobId job);
  TakenOver take_one(DatabaseId source, const OutboxEntry& entry, WallTime now);
  bool has_changed(const OutboxEntry& entry, const Relayed& record) const;
  std::string change_relayed(const OutboxEntry& entry, WallTime now);

  FakeDatabase& database_;
  const std::set<Shard> here_;
  JobId last_sequence_;
  std::map<JobId, Entry> entries_, standby_;
  std::map<JobId, Relayed> relayed_;
};

// `faults` decides what happens to each call.
std::unique_ptr<RelaySession> fake_relay_end(FakeOutbox& outbox, const Clock& clock, FaultPoint& faults);

}  // namespace tocsin
