// ClientStore: create, idempotency keys, on_conflict.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using CreateKind = CreateReply::Kind;
using Ids = std::vector<JobId>;

TEST_P(StoreContract, CreateStoresEveryField) {
  NewJob wanted;
  wanted.biz_id = "order-1";
  wanted.type_id = type_id;
  wanted.when = at(db->now() + kLong);
  wanted.max_attempts = 3;
  wanted.has_own_max_attempts = true;
  wanted.attribute_json = R"({"b": [1, null, "x"], "a": 1.5})";
  wanted.idempotency_key = "key-1";
  wanted.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const WallTime before = db->now();
  const CreateReply reply = create_reply(wanted);
  const WallTime after = db->now();
  EXPECT_EQ(reply.kind, CreateKind::created);
  EXPECT_FALSE(reply.existing);
  EXPECT_EQ(reply.action_time, *wanted.when.at);
  EXPECT_EQ(reply.fire_at, *wanted.when.at);
  EXPECT_GE(reply.gmt_create, before);
  EXPECT_LE(reply.gmt_create, after);
  const Job job = find(reply.job_id);
  EXPECT_EQ(job.biz_id, "order-1");
  EXPECT_EQ(job.type_id, type_id);
  EXPECT_EQ(job.status, JobStatus::pending);
  EXPECT_EQ(job.action_time, *wanted.when.at);
  EXPECT_EQ(job.fire_at, *wanted.when.at);
  EXPECT_EQ(job.attempts, 0);
  EXPECT_EQ(job.max_attempts, 3);
  EXPECT_EQ(nlohmann::json::parse(job.attribute_json), nlohmann::json::parse(wanted.attribute_json));
  EXPECT_EQ(job.idempotency_key, "key-1");
  EXPECT_EQ(job.traceparent, wanted.traceparent);
  EXPECT_EQ(job.gmt_create, reply.gmt_create);
  EXPECT_FALSE(job.node || job.started_at || job.finished_at);
  EXPECT_TRUE(job.errors.empty());
}

TEST_P(StoreContract, CreatePutsTheShardOfTheKeyIntoTheId) {
  for (const std::string biz_id : {"order-1", "18446744073709551615", "\xe6\xbc\xa2\xe5\xad\x97", "a b'c\"d\\e", "x"}) {
    const JobId id = create(later(biz_id));
    EXPECT_EQ(shard_of(id), shard_of(biz_id, db->shards()));
    EXPECT_EQ(find(id).biz_id, biz_id);
  }
}

TEST_P(StoreContract, CreateWithARelativeTimeCountsFromTheDatabaseClock) {
  NewJob wanted = due();
  wanted.when = in(std::chrono::minutes(15));
  const WallTime before = db->now();
  const CreateReply reply = create_reply(wanted);
  EXPECT_GE(reply.action_time, before + std::chrono::minutes(15));
  EXPECT_LE(reply.action_time, db->now() + std::chrono::minutes(15));
  EXPECT_EQ(reply.fire_at, reply.action_time);
}

TEST_P(StoreContract, CreateOfAPastTimeIsDueNowAndKeepsTheRequestedTime) {
  NewJob wanted = due();
  wanted.when = at(WallTime{std::chrono::sys_days(std::chrono::year(2001) / 2 / 3)});
  const WallTime before = db->now();
  const CreateReply reply = create_reply(wanted);
  EXPECT_EQ(reply.action_time, *wanted.when.at);
  EXPECT_GE(reply.fire_at, before);
  EXPECT_LE(reply.fire_at, db->now());
  EXPECT_EQ(find(reply.job_id).action_time, *wanted.when.at);
  EXPECT_EQ(claim({reply.job_id}).size(), 1u);
}

TEST_P(StoreContract, CreateKeepsMicrosecondsAndFarTimes) {
  NewJob wanted = due();
  wanted.when = at(WallTime{std::chrono::sys_days(std::chrono::year(2070) / 12 / 31)} + Duration(86'399'999'999));
  const CreateReply reply = create_reply(wanted);
  EXPECT_EQ(reply.action_time, *wanted.when.at);
  EXPECT_EQ(find(reply.job_id).fire_at, *wanted.when.at);
}

TEST_P(StoreContract, CreateWithoutAttributeHasNone) { EXPECT_EQ(find(create(due())).attribute_json, ""); }

const std::vector<std::string> kStrangeTexts = {
    "NULL",        "null",  "",      " ",      "\"",    "'",   "\\",  "\\\\n",
    "a\nb\r\nc\t", "{a,b}", "{}",    ",",      "$1",    "%s",  "--",  "\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x94\x94",
    "\x01\x7f",    "(1,2)", "\\x41", "[null]", ";DROP", "\\.", "\\N", "\t",
    "\\t"};

TEST_P(StoreContract, CreateStoresUnusualTextUnchanged) {
  std::vector<NewJob> wanted;
  for (const std::string& text : kStrangeTexts) {
    NewJob job = later(text.empty() ? "\xc2\xa0" : text);
    job.attribute_json = nlohmann::json{{"text", text}, {text + "_", {text, nullptr, 0}}}.dump();
    if (!text.empty()) job.idempotency_key = job.traceparent = text;
    wanted.push_back(job);
  }
  for (const char* json : {"null", "\"\"", "\"NULL\"", "{}", "[]", "0", "-1.5e10", "true", "\"{a,b}\""}) {
    wanted.push_back(later("bare"));
    wanted.back().attribute_json = json;
  }
  const Ids jobs = create(wanted);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job job = find(jobs[i]);
    EXPECT_EQ(job.biz_id, wanted[i].biz_id);
    EXPECT_EQ(job.idempotency_key, wanted[i].idempotency_key);
    EXPECT_EQ(job.traceparent, wanted[i].traceparent);
    ASSERT_FALSE(job.attribute_json.empty());
    EXPECT_EQ(nlohmann::json::parse(job.attribute_json), nlohmann::json::parse(wanted[i].attribute_json));
  }
  for (std::size_t i = 0; i < kStrangeTexts.size(); ++i) {  // the key is found again, whatever it is made of
    if (kStrangeTexts[i].empty()) continue;
    EXPECT_EQ(create_reply(wanted[i]).kind, CreateKind::existing) << kStrangeTexts[i];
  }
  for (const JobId id : jobs) run_now(id);
  for (const ClaimedJob& claimed : claim(jobs)) {
    const auto i = static_cast<std::size_t>(std::ranges::find(jobs, claimed.job.job_id) - jobs.begin());
    EXPECT_EQ(claimed.job.biz_id, wanted[i].biz_id);
    EXPECT_EQ(claimed.job.idempotency_key, wanted[i].idempotency_key);
    EXPECT_EQ(nlohmann::json::parse(claimed.job.attribute_json), nlohmann::json::parse(wanted[i].attribute_json));
  }
}

TEST_P(StoreContract, CreateOfManyKeepsEveryField) {
  const WallTime far = db->now() + kLong;
  std::vector<NewJob> wanted;
  for (int i = 0; i < 300; ++i) {
    const std::string& text = kStrangeTexts[static_cast<std::size_t>(i) % kStrangeTexts.size()];
    NewJob job = later(text.empty() ? "-" : text);
    job.max_attempts = 1 + i % 7;
    if (i % 3 == 0) job.when = at(far + Duration(i));
    if (i % 3 == 1) job.when = in(std::chrono::hours(1) + Duration(i));
    if (i % 3 == 2) job.when = at(far - std::chrono::years(20));
    if (i % 2) job.attribute_json = nlohmann::json{{"text", text}}.dump();
    if (i % 4 && !text.empty()) job.traceparent = text;
    wanted.push_back(job);
  }
  const WallTime before = db->now();
  const auto replies = must(db->client_store().create(wanted, CreateMode::all_or_nothing));
  const WallTime after = db->now();
  created_ += static_cast<int>(replies.size());
  ASSERT_EQ(replies.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const CreateReply& reply = replies[i];
    ASSERT_EQ(reply.kind, CreateKind::created);
    EXPECT_GE(reply.gmt_create, before);
    EXPECT_LE(reply.gmt_create, after);
    EXPECT_EQ(reply.action_time,
              wanted[i].when.at.value_or(reply.gmt_create + wanted[i].when.in.value_or(Duration(0))));
    EXPECT_EQ(reply.fire_at, std::max(reply.action_time, reply.gmt_create));
    const Job job = find(reply.job_id);
    EXPECT_EQ(job.biz_id, wanted[i].biz_id);
    EXPECT_EQ(job.status, JobStatus::pending);
    EXPECT_EQ(job.action_time, reply.action_time);
    EXPECT_EQ(job.fire_at, reply.fire_at);
    EXPECT_EQ(job.gmt_create, reply.gmt_create);
    EXPECT_EQ(job.max_attempts, wanted[i].max_attempts);
    EXPECT_EQ(job.traceparent, wanted[i].traceparent);
    EXPECT_EQ(job.attribute_json.empty(), wanted[i].attribute_json.empty());
    if (job.attribute_json.empty() || wanted[i].attribute_json.empty()) continue;
    EXPECT_EQ(nlohmann::json::parse(job.attribute_json), nlohmann::json::parse(wanted[i].attribute_json));
  }
}

TEST_P(StoreContract, CreateTakesKeysOfTheLongestLength) {
  NewJob job = later(std::string(128, 'b'));
  job.idempotency_key = std::string(256, 'k');
  job.attribute_json = '"' + std::string(60'000, 'a') + '"';
  EXPECT_EQ(find(create(job)).biz_id.size(), 128u);
}

TEST_P(StoreContract, CreateAnswersTenThousandJobsInOrder) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 10'000; ++i) wanted.push_back(later("order-" + std::to_string(i)));
  const auto replies = must(db->client_store().create(wanted, CreateMode::all_or_nothing));
  ASSERT_EQ(replies.size(), 10'000u);
  created_ += 10'000;
  std::set<JobId> ids;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    ids.insert(replies[i].job_id);
    ASSERT_EQ(shard_of(replies[i].job_id), shard_of(wanted[i].biz_id, db->shards()));
  }
  EXPECT_EQ(ids.size(), 10'000u);
  for (const std::size_t i : {0u, 1u, 4'999u, 9'999u}) EXPECT_EQ(find(replies[i].job_id).biz_id, wanted[i].biz_id);
}

TEST_P(StoreContract, CreateOfNothingIsNothing) {
  EXPECT_TRUE(must(db->client_store().create({}, CreateMode::all_or_nothing)).empty());
  EXPECT_TRUE(must(db->client_store().create({}, CreateMode::each_by_itself)).empty());
}

// Keys ---------------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, CreateWithTheSameKeyAndBodyAnswersTheFirstJob) {
  const NewJob wanted = keyed("k", in(kLong));
  const JobId id = create(wanted);
  const CreateReply again = create_reply(wanted);
  EXPECT_EQ(again.kind, CreateKind::existing);
  EXPECT_EQ(again.job_id, id);
  ASSERT_TRUE(again.existing);
  EXPECT_EQ(again.existing->job_id, id);
  EXPECT_EQ(again.action_time, again.existing->action_time);
  EXPECT_EQ(again.existing->status, JobStatus::pending);
  EXPECT_FALSE(again.is_refused());
}

TEST_P(StoreContract, CreateComparesRequestedDelaysNotResultingTimes) {
  NewJob job = keyed("k", at(db->now() + kLong));
  job.when.asked_in = kLong;
  create(job);
  *job.when.at += std::chrono::milliseconds(7);
  EXPECT_EQ(create_reply(job).kind, CreateKind::existing);
  job.when.asked_in = kLong * 2;
  EXPECT_EQ(create_reply(job).kind, CreateKind::key_reused);
}

TEST_P(StoreContract, CreateComparesTheBodyAsJson) {
  create(keyed("k", in(kLong), R"({"a":1,"b":[2]})"));
  EXPECT_EQ(create_reply(keyed("k", in(kLong), "{ \"b\" : [2],\n\"a\" : 1 }")).kind, CreateKind::existing);
}

TEST_P(StoreContract, CreateWithTheSameKeyAndAnotherBodyIsRefused) {
  const NewJob first = keyed("k", in(kLong));
  const JobId id = create(first);
  NewJob other_attempts = first;
  other_attempts.max_attempts = 5;
  other_attempts.has_own_max_attempts = true;
  for (const NewJob& other : {keyed("k", in(kLong), R"({"n":2})"), keyed("k", in(kLong), ""), keyed("k", in(kLong * 2)),
                              keyed("k", at(db->now() + kLong)), other_attempts}) {
    const CreateReply reply = create_reply(other);
    EXPECT_EQ(reply.kind, CreateKind::key_reused);
    EXPECT_TRUE(reply.is_refused());
    EXPECT_EQ(reply.job_id, id);
    ASSERT_TRUE(reply.existing);
    EXPECT_EQ(reply.existing->job_id, id);
  }
  EXPECT_EQ(nlohmann::json::parse(find(id).attribute_json), nlohmann::json::parse(first.attribute_json));
}

TEST_P(StoreContract, AMaxAttemptsOfTheTypeIsNotPartOfTheBody) {
  NewJob job = keyed("k", in(kLong));
  create(job);
  job.max_attempts = 3;  // the type has changed in between; the caller said the same
  EXPECT_EQ(create_reply(job).kind, CreateKind::existing);
}

TEST_P(StoreContract, KeysAreUniquePerBusinessKeyAndType) {
  const NewJob first = keyed("k", in(kLong));
  NewJob other_biz = first, other_type = first, no_key = first, other_key = first;
  other_biz.biz_id = "order-2";
  other_type.type_id = other_type_id;
  no_key.idempotency_key.reset();
  other_key.idempotency_key = "K";
  for (const NewJob& job : {first, other_biz, other_type, no_key, no_key, other_key})
    EXPECT_EQ(create_reply(job).kind, CreateKind::created);
}

TEST_P(StoreContract, KeysHoldOverTheWholeLifeOfAJob) {
  for (const std::string end : {"running", "done", "cancelled", "dead"}) {
    const NewJob wanted = keyed("k-" + end, in(Duration(0)));
    const JobId id = create(wanted);
    if (end == "running") claim_one(id);
    if (end == "done") must(db->store().fire(seen(Ids{id}), "node-a"));
    if (end == "cancelled") cancel(id);
    if (end == "dead") kill(id);
    const CreateReply same = create_reply(wanted);
    EXPECT_EQ(same.kind, CreateKind::existing) << end;
    EXPECT_EQ(same.job_id, id);
    ASSERT_TRUE(same.existing);
    EXPECT_EQ(to_string(same.existing->status), end);
    NewJob other = wanted;
    other.attribute_json = R"("another")";
    EXPECT_EQ(create_reply(other).kind, CreateKind::key_reused) << end;
    other.on_conflict = OnConflict::reject;
    EXPECT_EQ(create_reply(other).kind, CreateKind::rejected) << end;
    for (const OnConflict rule : {OnConflict::replace, OnConflict::earliest, OnConflict::latest}) {
      other.on_conflict = rule;
      const CreateReply reply = create_reply(other);
      EXPECT_EQ(reply.kind, CreateKind::not_pending) << end;
      EXPECT_TRUE(reply.is_refused());
      EXPECT_TRUE(reply.existing);
    }
    EXPECT_EQ(to_string(find(id).status), end);
  }
}

TEST_P(StoreContract, KeysHoldThroughARetryOfTheDead) {
  const NewJob wanted = keyed("k", in(Duration(0)));
  const JobId id = create(wanted);
  kill(id);
  retry(id);
  EXPECT_EQ(create_reply(wanted).kind, CreateKind::existing);
  EXPECT_EQ(create_reply(wanted).job_id, id);
}

TEST_P(StoreContract, OnConflictIsReadOnlyWithAKey) {
  NewJob job = later();
  for (const OnConflict rule : {OnConflict::reject, OnConflict::replace, OnConflict::earliest, OnConflict::latest}) {
    job.on_conflict = rule;
    EXPECT_EQ(create_reply(job).kind, CreateKind::created);
  }
}

TEST_P(StoreContract, OnConflictRejectRefusesEvenTheSameBody) {
  NewJob job = keyed("k", in(kLong));
  job.on_conflict = OnConflict::reject;
  const JobId id = create(job);
  const CreateReply reply = create_reply(job);
  EXPECT_EQ(reply.kind, CreateKind::rejected);
  EXPECT_EQ(reply.job_id, id);
  EXPECT_TRUE(reply.is_refused());
}

TEST_P(StoreContract, OnConflictReplaceGivesThePendingJobANewTimeAndAttribute) {
  const JobId id = create(keyed("k", in(kLong), R"("old")"));
  NewJob second = keyed("k", at(db->now() + 2 * kLong), R"("new")");
  second.on_conflict = OnConflict::replace;
  const CreateReply reply = create_reply(second);
  EXPECT_EQ(reply.kind, CreateKind::updated);
  EXPECT_EQ(reply.job_id, id);
  EXPECT_EQ(reply.action_time, *second.when.at);
  EXPECT_EQ(reply.fire_at, *second.when.at);
  ASSERT_TRUE(reply.existing);
  EXPECT_EQ(reply.existing->attribute_json, R"("new")");
  const Job job = find(id);
  EXPECT_EQ(job.action_time, *second.when.at);
  EXPECT_EQ(job.fire_at, *second.when.at);
  EXPECT_EQ(job.attribute_json, R"("new")");
  second.on_conflict = OnConflict::keep;
  EXPECT_EQ(create_reply(second).kind, CreateKind::existing) << "the new body is the body now";
  EXPECT_EQ(create_reply(keyed("k", in(kLong), R"("old")")).kind, CreateKind::key_reused);
}

TEST_P(StoreContract, OnConflictReplaceBeginsItsAttemptsAnew) {
  NewJob job = keyed("k", in(Duration(0)));
  job.max_attempts = 5;
  const JobId id = create(job);
  for (int i = 0; i < 3; ++i) {
    const auto claimed = claim_one(id);
    EXPECT_EQ(finish({id, claimed.token, FinishRequest::Kind::retry, Duration(0), "no"}), FinishReply::applied);
  }
  job.max_attempts = 2;  // fewer than have been made
  job.on_conflict = OnConflict::replace;
  EXPECT_EQ(create_reply(job).kind, CreateKind::updated);
  EXPECT_EQ(find(id).attempts, 0);
  EXPECT_EQ(find(id).max_attempts, 2);
  EXPECT_EQ(claim_one(id).job.attempts, 1);
}

TEST_P(StoreContract, OnConflictReplaceWithAPastTimeIsDueAtOnce) {
  const JobId id = create(keyed("k", in(kLong)));
  NewJob now = keyed("k", at(db->now() - kLong));
  now.on_conflict = OnConflict::replace;
  EXPECT_EQ(create_reply(now).kind, CreateKind::updated);
  EXPECT_EQ(claim({id}).size(), 1u);
  EXPECT_EQ(find(id).action_time, *now.when.at);
}

TEST_P(StoreContract, OnConflictEarliestTakesOnlyAnEarlierTime) {
  const WallTime base = db->now() + kLong;
  NewJob job = keyed("k", at(base), R"("first")");
  job.on_conflict = OnConflict::earliest;
  const JobId id = create(job);
  job.attribute_json = R"("later")";
  job.when = at(base + kLong);
  EXPECT_EQ(create_reply(job).kind, CreateKind::existing);
  job.when = at(base);
  EXPECT_EQ(create_reply(job).kind, CreateKind::existing);
  EXPECT_EQ(find(id).attribute_json, R"("first")");
  job.when = at(base - Duration(1));
  job.attribute_json = R"("earlier")";
  EXPECT_EQ(create_reply(job).kind, CreateKind::updated);
  EXPECT_EQ(find(id).action_time, base - Duration(1));
  EXPECT_EQ(find(id).attribute_json, R"("earlier")");
}

TEST_P(StoreContract, OnConflictLatestTakesOnlyALaterTime) {
  const WallTime base = db->now() + kLong;
  NewJob job = keyed("k", at(base), R"("first")");
  job.on_conflict = OnConflict::latest;
  const JobId id = create(job);
  job.attribute_json = R"("other")";
  job.when = at(base - Duration(1));
  EXPECT_EQ(create_reply(job).kind, CreateKind::existing);
  job.when = at(base);
  EXPECT_EQ(create_reply(job).kind, CreateKind::existing);
  EXPECT_EQ(find(id).attribute_json, R"("first")");
  job.when = at(base + Duration(1));
  EXPECT_EQ(create_reply(job).kind, CreateKind::updated);
  EXPECT_EQ(find(id).fire_at, base + Duration(1));
}

TEST_P(StoreContract, OnConflictWaitsForNoOtherTransaction) {
  const JobId id = create(keyed("k", in(kLong)));
  NewJob replacing = keyed("k", in(kLong * 2));
  replacing.on_conflict = OnConflict::replace;
  db->lock(id);
  for (const CreateMode mode :
       {CreateMode::all_or_nothing, CreateMode::all_if_free, CreateMode::each_by_itself, CreateMode::each_if_free}) {
    const auto reply = db->client_store().create({&replacing, 1}, mode);
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().code, ErrorCode::conflict);
  }
  EXPECT_EQ(must(db->client_store().create({&replacing, 1}, CreateMode::each_but_held))[0].kind, CreateKind::locked);
  db->unlock();
  EXPECT_EQ(must(db->client_store().create({&replacing, 1}, CreateMode::each_if_free))[0].kind, CreateKind::updated);
}

TEST_P(StoreContract, CreateEachByItselfFailsOnlyTheItemOfALockedKey) {
  const JobId id = create(keyed("held", in(kLong), R"({"n":1})"));
  const JobId other = create(keyed("free", in(kLong), R"({"n":1})"));
  db->lock(id);
  std::vector<NewJob> jobs = {keyed("new-1", in(kLong), ""), keyed("held", in(kLong * 2), ""), later("o-2"),
                              keyed("free", in(kLong * 2), ""), keyed("new-2", in(kLong), "")};
  for (NewJob& job : jobs) job.on_conflict = OnConflict::replace;
  const auto replies = must(db->client_store().create(jobs, CreateMode::each_by_itself));
  db->unlock();
  using Kind = CreateReply::Kind;
  const std::vector<Kind> expected = {Kind::created, Kind::locked, Kind::created, Kind::updated, Kind::created};
  ASSERT_EQ(replies.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(replies[i].kind, expected[i]) << i;
  EXPECT_TRUE(replies[1].is_refused());
  EXPECT_EQ(replies[3].job_id, other);
  created_ += 3;
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::pending, 5}}));
}

TEST_P(StoreContract, IdsFollowTheOrderOfCreationAcrossSessions) {
  const auto made_by = [&](ClientStore& client_store) {
    return must(client_store.create(std::vector{later()}, CreateMode::all_or_nothing)).at(0).job_id;
  };
  const JobId first = made_by(db->client_store());
  const JobId other = made_by(db->other_client_store());
  let_pass(std::chrono::milliseconds(600));  // lists are in order to within half a second
  const JobId last = made_by(db->client_store());
  EXPECT_GT(last / 1024, first / 1024);
  EXPECT_GT(last / 1024, other / 1024);
  created_ += 3;
}

}  // namespace
}  // namespace tocsin
