// ReportStore and TypeStore.
#include <algorithm>
#include <set>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using Ids = std::vector<JobId>;

std::vector<JobId> ids_of(const std::vector<Job>& jobs) {
  std::vector<JobId> ids;
  for (const Job& job : jobs) ids.push_back(job.job_id);
  return ids;
}

std::vector<JobId> falling(std::vector<JobId> ids) {
  std::ranges::sort(ids, std::greater{});
  return ids;
}

TEST_P(StoreContract, FindOfAnUnknownJobReturnsNothing) {
  for (const JobId id :
       {make_job_id(1, 0), make_job_id(99, 1023), JobId{0}, JobId{-1}, std::numeric_limits<JobId>::max()})
    EXPECT_FALSE(must(db->reports().find(id)));
}

TEST_P(StoreContract, FindSeesAJobInEveryState) {
  const JobId id = create(due());
  EXPECT_EQ(find(id).status, JobStatus::pending);
  const ClaimedJob claimed = claim_one(id);
  EXPECT_EQ(find(id).status, JobStatus::running);
  finish({id, claimed.token, FinishRequest::Kind::dead, {}, "over"});
  EXPECT_EQ(find(id).status, JobStatus::dead);
  retry(id);
  EXPECT_EQ(find(id).status, JobStatus::pending);
  cancel(id);
  EXPECT_EQ(find(id).status, JobStatus::cancelled);
}

TEST_P(StoreContract, ListIsNewestFirstAndPagesByTheLastIdSeen) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 25; ++i)
    wanted.push_back(i % 2 ? later("order-" + std::to_string(i)) : due("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  must(db->store().fire(seen(Ids(jobs.begin(), jobs.begin() + 10)), "node-a"));
  JobFilter filter;
  filter.limit = 10;
  Ids seen;
  for (const std::size_t expected : {10u, 10u, 5u}) {
    const auto page = must(db->reports().list(filter)).jobs;
    ASSERT_EQ(page.size(), expected);
    for (const Job& job : page) seen.push_back(job.job_id);
    filter.below = page.back().job_id;
  }
  EXPECT_EQ(seen, falling(jobs));
  EXPECT_TRUE(must(db->reports().list(filter)).jobs.empty());
}

// A list by status looks at the newest 2,000 jobs first.
TEST_P(StoreContract, ListFillsItsPageWithJobsBehindManyNewerOnes) {
  const Ids old = create({later("a"), later("b"), later("c")});
  std::vector<NewJob> flood(2'100, later("flood"));
  for (NewJob& job : flood) job.type_id = other_type_id;
  create(flood);
  const Ids young = create({later("d"), later("e")});
  JobFilter filter;
  filter.type_id = type_id;
  filter.status = JobStatus::pending;
  filter.limit = 4;
  EXPECT_EQ(ids_of(must(db->reports().list(filter)).jobs), (Ids{young[1], young[0], old[2], old[1]}));
  filter.below = old[1];
  EXPECT_EQ(ids_of(must(db->reports().list(filter)).jobs), Ids{old[0]});
}

TEST_P(StoreContract, ListEndsALongPageOfLargeAttributesEarly) {
  NewJob large = later("large");
  large.attribute_json = R"({"text":")" + std::string(60'000, 'x') + R"("})";
  const Ids jobs = create(std::vector<NewJob>(30, large));
  for (std::size_t i = 20; i < jobs.size(); ++i) cancel(jobs[i]);  // of both tables
  for (const auto& [biz_id, status, expected] :
       {std::tuple<std::optional<std::string>, std::optional<JobStatus>, std::size_t>{{}, {}, 18},
        {"large", {}, 18},
        {"large", JobStatus::pending, 18},
        {{}, JobStatus::pending, 18}}) {
    JobFilter filter;
    filter.biz_id = biz_id;
    filter.status = status;
    const JobList page = must(db->reports().list(filter));
    ASSERT_EQ(page.jobs.size(), expected);
    EXPECT_TRUE(page.is_cut);
    filter.below = page.jobs.back().job_id;
    const JobList rest = must(db->reports().list(filter));
    EXPECT_EQ(rest.jobs.size(), (status ? 20 : 30) - expected);
    EXPECT_FALSE(rest.is_cut);
    filter.limit = 2;
    EXPECT_FALSE(must(db->reports().list(filter)).is_cut) << "the limit ended it";
  }
}

TEST_P(StoreContract, ListFiltersByEveryField) {
  const WallTime base = db->now();
  NewJob foreign = later("a");
  foreign.type_id = other_type_id;
  const Ids jobs = create({later("a"), due("a"), foreign, later("b"), due("b")});
  must(db->store().fire(seen(Ids{jobs[1]}), "node-a"));
  cancel(jobs[3]);
  const auto list = [&](auto set) {
    JobFilter filter;
    set(filter);
    return ids_of(must(db->reports().list(filter)).jobs);
  };
  EXPECT_EQ(list([](JobFilter&) {}), falling(jobs));
  EXPECT_EQ(list([](JobFilter& f) { f.biz_id = "a"; }), falling({jobs[0], jobs[1], jobs[2]}));
  EXPECT_EQ(list([&](JobFilter& f) { f.type_id = other_type_id; }), Ids{jobs[2]});
  EXPECT_EQ(list([&](JobFilter& f) { f.biz_id = "a", f.type_id = type_id; }), falling({jobs[0], jobs[1]}));
  EXPECT_EQ(list([](JobFilter& f) { f.status = JobStatus::pending; }), falling({jobs[0], jobs[2], jobs[4]}));
  EXPECT_EQ(list([](JobFilter& f) { f.status = JobStatus::done; }), Ids{jobs[1]});
  EXPECT_EQ(list([](JobFilter& f) { f.status = JobStatus::cancelled, f.biz_id = "b"; }), Ids{jobs[3]});
  EXPECT_TRUE(list([](JobFilter& f) { f.status = JobStatus::running; }).empty());
  EXPECT_TRUE(list([](JobFilter& f) { f.biz_id = "nobody"; }).empty());
  EXPECT_EQ(list([&](JobFilter& f) { f.from = base + kLong / 2; }), falling({jobs[0], jobs[2], jobs[3]}));
  EXPECT_EQ(list([&](JobFilter& f) { f.to = base + kLong / 2; }), falling({jobs[1], jobs[4]}));
  const WallTime exact = find(jobs[0]).action_time;
  EXPECT_EQ(
      list([&](JobFilter& f) { f.biz_id = "a", f.type_id = type_id, f.from = exact, f.to = exact + Duration(1); }),
      Ids{jobs[0]});
  EXPECT_TRUE(list([&](JobFilter& f) { f.biz_id = "a", f.type_id = type_id, f.from = exact + Duration(1); }).empty());
  EXPECT_EQ(list([&](JobFilter& f) { f.biz_id = "a", f.type_id = type_id, f.to = exact; }), Ids{jobs[1]});
  EXPECT_EQ(list([](JobFilter& f) { f.limit = 1; }), Ids{falling(jobs)[0]});
}

TEST_P(StoreContract, CountsFollowEveryChange) {
  const auto expect = [&](std::map<JobStatus, std::int64_t> expected) {
    EXPECT_EQ(counts_of(type_id), expected);
    expect_counts_agree();
  };
  using S = JobStatus;
  const Ids jobs = create({due("a"), due("b"), later("c"), due("d"), due("e")});
  expect({{S::pending, 5}});
  const ClaimedJob first = claim_one(jobs[0]);
  expect({{S::pending, 4}, {S::running, 1}});
  must(db->store().fire(seen(Ids{jobs[1]}), "node-a"));
  expect({{S::pending, 3}, {S::running, 1}, {S::done, 1}});
  cancel(jobs[2]);
  expect({{S::pending, 2}, {S::running, 1}, {S::done, 1}, {S::cancelled, 1}});
  finish({jobs[0], first.token, FinishRequest::Kind::retry, kLong, "no"});
  expect({{S::pending, 3}, {S::done, 1}, {S::cancelled, 1}});
  claim_and_expire(jobs[3]);
  const ClaimedJob again = claim_one(jobs[3]);  // running to running
  expect({{S::pending, 2}, {S::running, 1}, {S::done, 1}, {S::cancelled, 1}});
  finish({jobs[3], again.token, FinishRequest::Kind::release_claim, {}, ""});
  expect({{S::pending, 3}, {S::done, 1}, {S::cancelled, 1}});
  kill(jobs[4]);
  expect({{S::pending, 2}, {S::done, 1}, {S::cancelled, 1}, {S::dead, 1}});
  retry(jobs[4]);
  expect({{S::pending, 3}, {S::done, 1}, {S::cancelled, 1}});
  must(db->store().fire_due(lane_of(jobs[4]), WallTime{}, 100, "node-a"));
  expect_counts_agree();
  reschedule(jobs[0], When{{}, kLong});
  run_now(jobs[0]);
  expect_counts_agree();
  NewJob once = due("once");
  once.max_attempts = 1;
  const JobId last = create(once);
  claim_and_expire(last);
  must(db->store().mark_dead(Ids{last}));
  expect_counts_agree();
  ClientStore::RetryMany all;
  all.type_id = type_id;
  must(db->client_store().retry_many(all));
  expect_counts_agree();
  must(db->client_store().cancel_all("once", std::nullopt));
  expect_counts_agree();
}

TEST_P(StoreContract, OverdueCountsLiveJobsWhoseTimeHasPassed) {
  EXPECT_EQ(must(db->reports().overdue(10)), 0);
  const Ids jobs = create({due("a"), due("b"), due("c"), later("d"), due("e")});
  must(db->store().fire(seen(Ids{jobs[4]}), "node-a"));
  EXPECT_EQ(must(db->reports().overdue(10)), 3);
  EXPECT_EQ(must(db->reports().overdue(2)), 2);
  claim_one(jobs[0], kLong);
  EXPECT_EQ(must(db->reports().overdue(10)), 2);
  claim_and_expire(jobs[1]);
  EXPECT_EQ(must(db->reports().overdue(10)), 2);
}

TEST_P(StoreContract, InfoReturnsShardsAndTimeWithoutSecrets) {
  const WallTime before = db->now();
  const DatabaseInfo info = must(db->reports().info());
  EXPECT_EQ(info.shards, db->shards());
  EXPECT_GE(info.schema_version, 1);
  EXPECT_GE(info.now, before);
  EXPECT_LE(info.now, db->now());
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.name.find('@'), std::string::npos);
  EXPECT_EQ(info.name.find("://"), std::string::npos);
}

// Types --------------------------------------------------------------------------------------------------------------

BizType rich_type(const std::string& name) {
  BizType type;
  type.name = name;
  type.handler_kind = "webhook";
  type.handler_json = R"({"kind":"webhook","url":"http://127.0.0.1:9000/hook?a='b'","headers":{"x":"{\"y\"}"}})";
  type.ttr = std::chrono::milliseconds(12'345);
  type.max_attempts = 5;
  type.backoff = {std::chrono::milliseconds(250), 1.5, std::chrono::seconds(90), 0.1, {}};
  type.max_running = 17;
  type.rate_per_s = 12.5;
  type.drop_older_than = std::chrono::hours(3);
  type.catch_up_rate_per_s = 100;
  type.slo = Slo{std::chrono::seconds(2), 0.999};
  return type;
}

BizType stored(TypeStore& types, const std::string& name) {
  const std::vector<BizType> all = types.list().value();
  for (const BizType& type : all)
    if (type.name == name) return type;
  throw std::runtime_error("no type " + name);
}

TEST_P(StoreContract, PutTypeStoresEveryField) {
  const BizType wanted = rich_type("shop.order/unpaid 'x'");
  const auto reply = must(db->types().put(wanted));
  EXPECT_TRUE(reply.is_new);
  for (const BizType& type : {reply.type, stored(db->types(), wanted.name)}) {
    EXPECT_GT(type.type_id, 0);
    EXPECT_EQ(type.name, wanted.name);
    EXPECT_EQ(type.handler_kind, "webhook");
    EXPECT_NE(type.handler_json.find("9000/hook?a='b'"), std::string::npos);
    EXPECT_EQ(type.ttr, wanted.ttr);
    EXPECT_EQ(type.max_attempts, 5);
    EXPECT_EQ(type.backoff.base, wanted.backoff.base);
    EXPECT_EQ(type.backoff.factor, 1.5);
    EXPECT_EQ(type.backoff.max, wanted.backoff.max);
    EXPECT_EQ(type.backoff.jitter, 0.1);
    EXPECT_TRUE(type.backoff.delays.empty());
    EXPECT_EQ(type.max_running, 17);
    EXPECT_EQ(type.rate_per_s, 12.5);
    EXPECT_EQ(type.drop_older_than, wanted.drop_older_than);
    EXPECT_EQ(type.catch_up_rate_per_s, 100);
    EXPECT_EQ(type.slo, wanted.slo);
    EXPECT_FALSE(type.paused);
    EXPECT_NE(type.gmt_create, WallTime{});
  }
}

TEST_P(StoreContract, PutTypeKeepsAListOfDelaysAndAbsentLimits) {
  BizType type = rich_type("delays");
  type.backoff.delays = {std::chrono::milliseconds(100), std::chrono::seconds(5), std::chrono::hours(2)};
  type.max_running.reset();
  type.rate_per_s.reset();
  type.drop_older_than.reset();
  type.catch_up_rate_per_s.reset();
  must(db->types().put(type));
  const BizType read = stored(db->types(), "delays");
  EXPECT_EQ(read.backoff.delays, type.backoff.delays);
  EXPECT_FALSE(read.max_running || read.rate_per_s || read.drop_older_than || read.catch_up_rate_per_s);
}

TEST_P(StoreContract, PutTypeAgainReplacesItUnderTheSameId) {
  const auto first = must(db->types().put(rich_type("t")));
  BizType second = rich_type("t");
  second.ttr = std::chrono::seconds(1);
  second.max_running.reset();
  const auto reply = must(db->types().put(second));
  EXPECT_FALSE(reply.is_new);
  EXPECT_EQ(reply.type.type_id, first.type.type_id);
  EXPECT_EQ(reply.type.ttr, second.ttr);
  EXPECT_EQ(reply.type.gmt_create, first.type.gmt_create);
  EXPECT_FALSE(stored(db->types(), "t").max_running);
  EXPECT_EQ(must(db->types().list()).size(), 3u);
}

TEST_P(StoreContract, PauseStaysWhenATypeIsReplaced) {
  must(db->types().put(rich_type("t")));
  const WallTime until = db->now() + kLong;
  const auto paused = must(db->types().set_paused("t", true, until));
  ASSERT_TRUE(paused);
  EXPECT_TRUE(paused->paused);
  EXPECT_EQ(paused->paused_until, until);
  const auto replaced = must(db->types().put(rich_type("t")));
  EXPECT_TRUE(replaced.type.paused);
  EXPECT_EQ(replaced.type.paused_until, until);
  const auto resumed = must(db->types().set_paused("t", false, std::nullopt));
  ASSERT_TRUE(resumed);
  EXPECT_FALSE(resumed->paused);
  EXPECT_FALSE(stored(db->types(), "t").is_paused(db->now()));
  EXPECT_FALSE(must(db->types().set_paused("nobody", true, std::nullopt)));
}

TEST_P(StoreContract, AMirrorTakesTypesAsTheyAreAndNeverAnOlderVersion) {
  BizType type = must(db->types().put(rich_type("t"))).type;
  BizType foreign = rich_type("foreign");
  foreign.type_id = 4711;
  foreign.gmt_create = foreign.gmt_modified = std::chrono::floor<Duration>(db->now());
  foreign.paused = true;
  type.ttr = std::chrono::seconds(1);  // an older picture of it: no later gmt_modified
  ASSERT_TRUE(db->types().mirror(std::vector{foreign, type}));
  EXPECT_EQ(stored(db->types(), "t").ttr, rich_type("t").ttr);
  const BizType mirrored = stored(db->types(), "foreign");
  EXPECT_EQ(mirrored.type_id, 4711);
  EXPECT_EQ(mirrored.gmt_modified, foreign.gmt_modified);
  EXPECT_EQ(mirrored.max_running, foreign.max_running);
  EXPECT_EQ(mirrored.slo, foreign.slo);
  EXPECT_EQ(mirrored.backoff.base, foreign.backoff.base);
  EXPECT_TRUE(mirrored.paused);
  foreign.ttr = std::chrono::seconds(2);
  foreign.gmt_modified += Duration(1);
  ASSERT_TRUE(db->types().mirror(std::vector{foreign}));
  EXPECT_EQ(stored(db->types(), "foreign").ttr, std::chrono::seconds(2));
}

TEST_P(StoreContract, AMirrorTakesANameThatHasAnotherIdInTheControlDatabase) {
  BizType foreign = rich_type("foreign");
  foreign.type_id = 4000;
  foreign.gmt_create = foreign.gmt_modified = db->now();
  ASSERT_TRUE(db->types().mirror(std::vector{foreign}));
  foreign.type_id = 4001;  // removed, forgotten and made anew, while this database was away
  foreign.gmt_create = foreign.gmt_modified = db->now() + std::chrono::seconds(1);
  ASSERT_TRUE(db->types().mirror(std::vector{foreign}));
  EXPECT_EQ(stored(db->types(), "foreign").type_id, 4001);
}

TEST_P(StoreContract, EveryChangeOfATypeMovesItsVersionForward) {
  WallTime last = must(db->types().put(rich_type("t"))).type.gmt_modified;
  for (int i = 0; i < 3; ++i) {
    const WallTime replaced = must(db->types().put(rich_type("t"))).type.gmt_modified;
    EXPECT_GT(replaced, last);
    last = must(db->types().set_paused("t", i % 2 == 0, std::nullopt))->gmt_modified;
    EXPECT_GT(last, replaced);
  }
}

TEST_P(StoreContract, TheRegistryHasAnotherVersionAfterEveryChange) {
  std::vector<RegistryVersion> versions;
  const auto changes = [&] {
    const RegistryVersion version = must(db->types().changed_since(WallTime::min())).version;
    if (std::ranges::find(versions, version) != versions.end()) return false;
    versions.push_back(version);
    return true;
  };
  EXPECT_TRUE(changes());
  EXPECT_FALSE(changes());
  must(db->types().put(rich_type("t")));
  EXPECT_TRUE(changes());
  must(db->types().put(rich_type("t")));
  EXPECT_TRUE(changes());
  must(db->types().set_paused("t", true, std::nullopt));
  EXPECT_TRUE(changes());
  must(db->types().remove("t"));
  EXPECT_TRUE(changes());
}

TEST_P(StoreContract, ChangesOfTheRegistryAreThoseAfterATime) {
  must(db->types().put(rich_type("a")));
  must(db->types().put(rich_type("b")));
  const TypeCatalog before(must(db->types().list(TypeStore::Removed::included)));
  const auto none = must(db->types().changed_since(before.newest));
  EXPECT_TRUE(none.types.empty());
  EXPECT_EQ(none.version, before.version) << "the catalog counts as the registry does";

  must(db->types().set_paused("a", true, std::nullopt));
  must(db->types().remove("b"));
  const auto some = must(db->types().changed_since(before.newest));
  ASSERT_EQ(some.types.size(), 2u);
  for (const BizType& type : some.types) EXPECT_EQ(type.name == "a" ? type.paused : type.is_removed, true) << type.name;
  EXPECT_EQ(some.version, TypeCatalog(must(db->types().list(TypeStore::Removed::included))).version);
  EXPECT_EQ(must(db->types().changed_since(WallTime::min())).types.size(),
            static_cast<std::size_t>(some.version.types));
}

TEST_P(StoreContract, ATypeIsFoundByNameUntilItIsRemoved) {
  EXPECT_EQ(must(db->types().find("t")), std::nullopt);
  const BizType put = must(db->types().put(rich_type("t"))).type;
  EXPECT_EQ(must(db->types().find("t")), put);
  must(db->types().remove("t"));
  EXPECT_EQ(must(db->types().find("t")), std::nullopt);
}

TEST_P(StoreContract, RemoveTypeOnlyWithoutLiveJobs) {
  EXPECT_EQ(must(db->types().remove("nobody")), TypeStore::RemoveReply::not_found);
  const JobId pending = create(later());
  EXPECT_EQ(must(db->types().remove("order.unpaid")), TypeStore::RemoveReply::has_live_jobs);
  cancel(pending);
  const JobId running = create(due());
  const ClaimedJob claimed = claim_one(running);
  EXPECT_EQ(must(db->types().remove("order.unpaid")), TypeStore::RemoveReply::has_live_jobs);
  finish({running, claimed.token, FinishRequest::Kind::done, {}, ""});
  must(db->types().put(rich_type("unused")));
  EXPECT_EQ(must(db->types().remove("unused")), TypeStore::RemoveReply::removed);
  EXPECT_EQ(must(db->types().remove("unused")), TypeStore::RemoveReply::not_found);
  EXPECT_EQ(must(db->types().list()).size(), 2u);
  EXPECT_EQ(must(db->types().list(TypeStore::Removed::included)).size(), 3u);
  EXPECT_EQ(find(running).status, JobStatus::done);
}

TEST_P(StoreContract, ARemovedTypeIsNewWhenItIsPutAgainAndKeepsItsId) {
  const TypeStore::PutReply first = must(db->types().put(rich_type("t")));
  EXPECT_TRUE(first.is_new);
  EXPECT_FALSE(must(db->types().put(rich_type("t"))).is_new);
  must(db->types().remove("t"));
  const TypeStore::PutReply again = must(db->types().put(rich_type("t")));
  EXPECT_TRUE(again.is_new);
  EXPECT_EQ(again.type.type_id, first.type.type_id);
  EXPECT_FALSE(must(db->types().put(rich_type("t"))).is_new);
  EXPECT_EQ(must(db->types().set_paused("gone", true, {})), std::nullopt);
}

TEST_P(StoreContract, APutOfAVersionChangesOnlyThatVersion) {
  const BizType first = must(db->types().put(rich_type("t"))).type;
  BizType wanted = rich_type("t");
  wanted.max_attempts = 7;
  const TypeStore::PutReply changed = must(db->types().put(wanted, first.gmt_modified));
  EXPECT_FALSE(changed.is_other_version);
  EXPECT_EQ(changed.type.max_attempts, 7);
  wanted.max_attempts = 9;
  EXPECT_TRUE(must(db->types().put(wanted, first.gmt_modified)).is_other_version);
  EXPECT_EQ(must(db->types().find("t"))->max_attempts, 7) << "nothing was written";
  must(db->types().remove("t"));
  const auto removed = must(db->types().list(TypeStore::Removed::included));
  const auto gone = std::ranges::find(removed, "t", &BizType::name);
  EXPECT_TRUE(must(db->types().put(wanted, gone->gmt_modified)).is_other_version) << "no version of it is there";
}

TEST_P(StoreContract, APutOfAVersionRefusesATypeThatNeverExisted) {
  EXPECT_TRUE(must(db->types().put(rich_type("t"), db->now())).is_other_version);
  EXPECT_EQ(must(db->types().find("t")), std::nullopt);
}

// Copies in other databases were marked at that version, and are written again with the next.
TEST_P(StoreContract, RemoveTypeChecksTheVersion) {
  const BizType first = must(db->types().put(rich_type("t"))).type;
  must(db->types().set_paused("t", true, std::nullopt));
  using Registry = TypeStore::Registry;
  EXPECT_EQ(must(db->types().remove("t", Registry::original, first.gmt_modified)),
            TypeStore::RemoveReply::jobs_may_come);
  const BizType now = must(db->types().find("t")).value();
  must(db->types().renew("t"));
  EXPECT_GT(must(db->types().find("t"))->gmt_modified, now.gmt_modified);
  EXPECT_EQ(must(db->types().remove("t", Registry::copy, std::nullopt)), TypeStore::RemoveReply::removed);
  const auto all = must(db->types().list(TypeStore::Removed::included));
  EXPECT_EQ(must(db->types().remove("t")), TypeStore::RemoveReply::not_found);
  EXPECT_TRUE(std::ranges::find(all, "t", &BizType::name)->is_removed);
}

TEST_P(StoreContract, HasAnyTypeLooksNamesUp) {
  const auto has = [&](std::vector<std::string> names, TypeStore::Removed removed = TypeStore::Removed::left_out) {
    return must(db->types().has_any(names, removed));
  };
  EXPECT_FALSE(has({"t", "{\"odd\", name}"}));
  must(db->types().put(rich_type("t")));
  EXPECT_TRUE(has({"t"}));
  EXPECT_TRUE(has({"no.such", "t"}));
  EXPECT_FALSE(has({"no.such"}));
  EXPECT_FALSE(has({}));
  must(db->types().remove("t"));
  EXPECT_FALSE(has({"t"}));
  EXPECT_TRUE(has({"t"}, TypeStore::Removed::included));
}

TEST_P(StoreContract, DeadJobsOfARemovedTypeStayDead) {
  const TypeId id = must(db->types().put(rich_type("t"))).type.type_id;
  NewJob job = due();
  job.type_id = id;
  job.max_attempts = 1;
  const JobId dead = create(job);
  const ClaimedJob claimed = claim_one(dead);
  finish({dead, claimed.token, FinishRequest::Kind::dead, {}, "no"});
  must(db->types().remove("t"));
  const ChangeReply refused = retry(dead);
  EXPECT_EQ(refused.kind, ChangeReply::Kind::type_removed);
  ASSERT_TRUE(refused.job);
  EXPECT_EQ(refused.job->status, JobStatus::dead);
  EXPECT_EQ(must(db->client_store().retry_many({.type_id = id, .from = {}, .to = {}, .limit = 10, .rate_per_s = {}})),
            0);
  EXPECT_EQ(find(dead).status, JobStatus::dead);
  must(db->types().put(rich_type("t")));
  EXPECT_EQ(retry(dead).kind, ChangeReply::Kind::changed);
}

}  // namespace
}  // namespace tocsin
