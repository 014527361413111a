// The contract, on the database in memory. TOCSIN_PLANT=NAME plants one of its mistakes (kFakeBugs): then tests must
// fail.
#include <cstdlib>
#include <stdexcept>

#include "support/contract/bulk_contract.h"
#include "support/fake_bulk_store.h"
#include "support/fake_functions.h"
#include "support/fake_sessions.h"
#include "support/fake_transaction.h"

namespace tocsin {
namespace {

class FakeBusinessTransaction final : public Business {
 public:
  explicit FakeBusinessTransaction(FakeDatabase& database) : database_(database), transaction_(database) {}
  WallTime read_clock() override { return database_.now(); }
  JobId create(const NewJob& job) override {
    const auto reply = transaction_.create(job, database_.now());
    if (!reply) throw std::runtime_error("another transaction holds the key");
    return reply->job_id;
  }
  std::string cancel(JobId job) override {
    const CancelReply reply = transaction_.cancel(job, database_.now());
    return reply.kind == CancelReply::Kind::cancelled  ? "cancelled"
           : reply.kind == CancelReply::Kind::running  ? "running"
           : reply.kind == CancelReply::Kind::finished ? "finished"
                                                       : "not found";
  }
  void commit() override { transaction_.commit(); }

 private:
  FakeDatabase& database_;
  FakeDatabase::Transaction transaction_;
};

// Its data members are the database and its sessions, one of each kind.
class FakeFixture final : public StoreFixture {
 public:
  FakeFixture() {
    database_.writer_lag = Duration(0);
    const char* planted = std::getenv("TOCSIN_PLANT");
    for (const auto& [name, bug] : kFakeBugs) database_.bugs.*bug = planted && std::string(planted) == name;
    business_.bugs.ignores_token = planted && std::string(planted) == "function_ignores_token";
    business_.bugs.keeps_effects = planted && std::string(planted) == "function_keeps_effects";
    const auto define = [this](const char* name, std::optional<std::string> answer) {
      business_.functions[name] = [=](const Job& job, FakeBusiness::Effects& effects) {
        ++effects[job.biz_id];
        if (std::string(name) == "picky" && job.biz_id.starts_with("bad"))
          throw std::runtime_error("not " + job.biz_id);
        if (std::string(name) == "raises" && std::isdigit(job.biz_id.front())) throw std::runtime_error("raised");
        if (std::string(name) == "read_only") throw std::runtime_error("the end of the job: read-only");
        return answer;
      };
    };
    define("done", {});
    for (const char* name : {"picky", "raises", "read_only"}) define(name, {});
    define("later", R"({"retry_ms": 3600000})");
    define("dead", R"({"dead": "gone"})");
    define("odd", "7");
  }
  JobStore& store() override { return store_; }
  JobStore& other_store() override { return other_store_; }
  ClientStore& client_store() override { return client_store_; }
  ClientStore& other_client_store() override { return other_client_store_; }
  ReportStore& reports() override { return reports_; }
  TypeStore& types() override { return types_; }
  BulkStore& bulks() override {
    bulks_.now = now();
    return bulks_;
  }
  MemberStore& members() override { return members_; }
  MemberStore& other_members() override { return other_members_; }
  PermitStore& permits() override { return permits_; }
  PermitStore& other_permits() override { return other_permits_; }
  FunctionStore& functions() override { return functions_; }
  int noted(const std::string& biz_id) override { return business_.effects[biz_id]; }
  void end_members_session(NodeId last_beat) override { database_.members.end_session(last_beat); }
  void set_database_ids(const std::vector<DatabaseId>& database_ids) override {
    database_.members.set_database_ids(database_ids);
  }
  int shards() const override { return database_.shards(); }
  WallTime now() override { return now_ += Duration(1); }  // time passes, as on a real database
  void set_clock_back(Duration by) override { now_ -= by; }
  void wait_until(WallTime time) override { now_ = std::max(now_, time); }
  std::unique_ptr<Business> begin_business() override { return std::make_unique<FakeBusinessTransaction>(database_); }
  void lock(JobId job) override { database_.lock(locked_ = job); }
  void unlock() override { database_.unlock(locked_); }
  void leave(Shard shard) override {
    database_.lives_here = [shard](Shard each) { return each != shard; };
  }
  void come_home() override { database_.lives_here = nullptr; }
  void give_id(JobId finished, JobId id) override { database_.give_id(finished, id); }
  void refuse(JobId job, Refusal how) override { database_.refuse(job, error_of(how)); }
  void refuse_claim(JobId job) override { database_.refuse_claim(job); }
  void refuse_new(const std::string& biz_id, Refusal how) override { database_.refuse_new(biz_id, error_of(how)); }
  void refuse_nothing() override { database_.refuse_nothing(); }
  void stop_standby() override { standby_ = database_.snapshot(); }
  void fail_over() override { database_.restore(standby_); }
  void begin_ids_anew() override { database_.begin_ids_anew(); }

 private:
  static Error error_of(Refusal how) {
    return how == Refusal::of_values ? FakeDatabase::refused_row() : FakeDatabase::unwritable_row();
  }

  WallTime now_{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  FakeDatabase database_{[this] { return now(); }, 4};
  FakeJobStore store_{database_}, other_store_{database_};
  FakeClientStore client_store_{database_}, other_client_store_{database_};
  FakeReportStore reports_{database_};
  FakeTypeStore types_{database_};
  FakeBulkStore bulks_{database_};
  FakeMemberStore members_{database_}, other_members_{database_};
  FakePermitStore permits_{database_}, other_permits_{database_};
  FakeBusiness business_;
  FakeFunctionStore functions_{database_, business_};
  JobId locked_ = 0;
  FakeDatabase::Snapshot standby_;
};

const auto kFake = testing::Values(StoreKind{"Fake", [] { return std::unique_ptr<StoreFixture>(new FakeFixture); }});
INSTANTIATE_TEST_SUITE_P(Fake, StoreContract, kFake);
INSTANTIATE_TEST_SUITE_P(Fake, BulkContract, kFake);

}  // namespace
}  // namespace tocsin
