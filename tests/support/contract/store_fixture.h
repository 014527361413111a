// What the contract suite needs of a database: its sessions, its clock, and a way to hold a row locked.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "bulk/bulk_store.h"
#include "ports/client_store.h"
#include "ports/function_store.h"
#include "ports/job_store.h"
#include "ports/member_store.h"
#include "ports/permit_store.h"
#include "ports/report_store.h"
#include "ports/type_store.h"
#include "support/must.h"

namespace tocsin {

inline When in(Duration time) { return {{}, time}; }
inline When at(WallTime time) { return {time, {}}; }

// A transaction of a business, in SQL. Undone unless committed.
class Business {
 public:
  virtual ~Business() = default;
  virtual WallTime read_clock() = 0;  // the database's; writes nothing
  virtual JobId create(const NewJob& job) = 0;
  virtual std::string cancel(JobId job) = 0;
  virtual void commit() = 0;
};

// How the database refuses a row: it does not take the values (Error invalid), or cannot write it now (Error
// unavailable, kRefused).
enum class Refusal { of_values, for_now };

// A fresh, empty database with one session of each kind and a second one of the kinds that race.
class StoreFixture {
 public:
  virtual ~StoreFixture() = default;
  virtual JobStore& store() = 0;
  virtual JobStore& other_store() = 0;
  virtual ClientStore& client_store() = 0;
  virtual ClientStore& other_client_store() = 0;
  virtual ReportStore& reports() = 0;
  virtual TypeStore& types() = 0;
  virtual BulkStore& bulks() = 0;
  virtual MemberStore& members() = 0;
  virtual MemberStore& other_members() = 0;
  virtual PermitStore& permits() = 0;
  virtual PermitStore& other_permits() = 0;
  // Knows these functions of the schema shop, each of which notes the biz_id of its job first: `done`; `later` asks for
  // another attempt in an hour; `dead` says "gone"; `picky` fails for a biz_id that begins with bad; `odd` answers 7.
  virtual FunctionStore& functions() = 0;
  virtual int noted(const std::string& biz_id) = 0;  // how often, in what is committed
  // The session behind members() ends; the next call makes another.
  virtual void end_members_session(NodeId last_beat) = 0;
  // As a migration with several databases does.
  virtual void set_database_ids(const std::vector<DatabaseId>& database_ids) = 0;
  virtual int shards() const = 0;
  virtual WallTime now() = 0;
  // The clock shows `by` less from now on, or, what is the same, the times of all live rows are that much later.
  virtual void set_clock_back(Duration by) = 0;
  // Returns when the database's clock shows `time` or later; at most a few milliseconds away.
  virtual void wait_until(WallTime time) = 0;
  // Where the events that were counted for the reports are not what the counts by status say; empty: nowhere.
  virtual std::string report_disagreement() { return ""; }
  virtual std::unique_ptr<Business> begin_business() = 0;
  // A third session locks the row and keeps its transaction open until unlock().
  virtual void lock(JobId job) = 0;
  virtual void unlock() = 0;
  // The shard does not live here any more, or not yet, although its rows are here; until all shards live here again.
  virtual void leave(Shard shard) = 0;
  virtual void come_home() = 0;
  // What a restore can do: the finished job's record has the id of another job of its shard.
  virtual void give_id(JobId finished, JobId id) = 0;
  // What ends, changes or revives this job is refused, with all that the statement would write; claims of it are not.
  virtual void refuse(JobId job, Refusal how = Refusal::of_values) = 0;
  virtual void refuse_claim(JobId job) = 0;  // a claim of this job is refused
  // What creates a job of this business key is refused, too.
  virtual void refuse_new(const std::string& biz_id, Refusal how) = 0;
  virtual void refuse_nothing() = 0;
  // The standby hears no more; and it takes over: the jobs created meanwhile are lost, the sequence of job ids is where
  // it was, and every session has ended. REQUIRES: there was no job when it heard no more.
  virtual void stop_standby() = 0;
  virtual void fail_over() = 0;
  // The sequence of job ids begins anew, and every session has ended.
  virtual void begin_ids_anew() = 0;
};

struct StoreKind {
  std::string name;
  std::unique_ptr<StoreFixture> (*make)();
};
inline std::ostream& operator<<(std::ostream& out, const StoreKind& kind) { return out << kind.name; }

// The base of every contract test; after each test the counts must still agree with the rows.
class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  static constexpr Duration kLong = std::chrono::hours(1);
  static constexpr Duration kShort = std::chrono::milliseconds(1);

  void SetUp() override;
  void TearDown() override;

  NewJob due(const std::string& biz_id = "order-1") const;    // due when it is created
  NewJob later(const std::string& biz_id = "order-1") const;  // due in an hour
  NewJob keyed(const std::string& key, const When& when, const std::string& attribute = R"({"n":1})") const;

  JobId create(const NewJob& job);
  std::vector<JobId> create(const std::vector<NewJob>& jobs);
  JobId create_in(Shard shard);  // a due job of that shard
  CreateReply create_reply(const NewJob& job);
  Job find(JobId job);
  // Changes of one pending job, as a batch of one.
  ChangeReply reschedule(JobId job, const When& when) { return change({job, when}); }
  ChangeReply run_now(JobId job) { return change({job, {}}); }
  Lane lane_of(JobId job) const { return {shard_of(job), type_id}; }

  // A fresh ticket for every call.
  ClaimTicket ticket(const std::string& node = "node-a") { return {++last_seed_ * 7919, node}; }
  std::vector<ClaimedJob> claim(const std::vector<JobId>& jobs, Duration ttr = kLong);
  // As a scan has seen them; those that this test did not make as of `type_id`.
  std::vector<Candidate> seen(const std::vector<JobId>& jobs) const;
  ClaimedJob claim_one(JobId job, Duration ttr = kLong);
  // Claimed, and its lease has ended.
  ClaimedJob claim_and_expire(JobId job);
  // Claimed and finished as dead.
  void kill(JobId job, const std::string& why = "broken");
  FinishReply finish(const FinishRequest& request);
  CancelReply cancel(JobId job);
  ChangeReply retry(JobId job);
  // The replies to a batch of which the database refuses nothing.
  struct Together {
    std::vector<CancelReply> cancels;
    std::vector<KeyCancelReply> key_cancels;
    std::vector<ChangeReply> changes;
  };
  Together change_together(const ChangeBatch& batch);
  // From now on jobs of the type are too late a millisecond after their time.
  void set_lateness_limit();
  void let_pass(Duration time) { db->wait_until(db->now() + time); }

  // created = pending + running + done + cancelled + dead, and each is what the rows say.
  void expect_counts_agree();
  std::map<JobStatus, std::int64_t> counts_of(TypeId type);

  std::unique_ptr<StoreFixture> db;
  TypeId type_id = 0;
  TypeId other_type_id = 0;
  std::int64_t created_ = 0;

 private:
  ChangeReply change(const PendingChange& change) {
    ChangeBatch batch;
    batch.changes = {change};
    return change_together(batch).changes.front();
  }

  std::int64_t last_seed_ = 0;
  int last_key_ = 0;
  std::map<JobId, TypeId> types_;  // of the jobs that were made
};

}  // namespace tocsin
