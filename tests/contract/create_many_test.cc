// ClientStore: many creates in one call.
#include <map>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using CreateKind = CreateReply::Kind;

TEST_P(StoreContract, AllOrNothingUndoesTheCallAndNamesTheRefusedItem) {
  const JobId kept = create(keyed("used", in(kLong), R"("first")"));
  const JobId replaced = create(keyed("movable", in(kLong), R"("stays")"));
  NewJob move = keyed("movable", in(kLong * 2), R"("moved")");
  move.on_conflict = OnConflict::replace;
  const std::vector<NewJob> wanted = {due("a"), move, keyed("fresh", in(kLong)),
                                      keyed("used", in(kLong), R"("second")"), due("b")};
  const auto replies = must(db->client_store().create(wanted, CreateMode::all_or_nothing));
  ASSERT_EQ(replies.size(), 5u);
  EXPECT_EQ(replies[3].kind, CreateKind::key_reused);
  EXPECT_EQ(replies[3].job_id, kept);
  for (const std::size_t i : {0u, 1u, 2u, 4u}) EXPECT_FALSE(replies[i].is_refused());
  EXPECT_EQ(must(db->reports().list({})).jobs.size(), 2u) << "nothing was created";
  EXPECT_EQ(find(replaced).attribute_json, R"("stays")");
  EXPECT_EQ(create_reply(keyed("fresh", in(kLong))).kind, CreateKind::created) << "the key is free";
}

TEST_P(StoreContract, ABatchFollowsTheRuleOfEachItem) {
  const WallTime base = db->now() + kLong;
  struct Item {
    std::string key;
    OnConflict rule;
    Duration moved;
    CreateKind kind;
  };
  const std::vector<Item> items = {{"a", OnConflict::replace, Duration(5), CreateKind::updated},
                                   {"b", OnConflict::earliest, Duration(-1), CreateKind::updated},
                                   {"c", OnConflict::earliest, Duration(1), CreateKind::existing},
                                   {"d", OnConflict::latest, Duration(1), CreateKind::updated},
                                   {"e", OnConflict::latest, Duration(-1), CreateKind::existing},
                                   {"f", OnConflict::keep, Duration(1), CreateKind::key_reused},
                                   {"g", OnConflict::reject, Duration(1), CreateKind::rejected},
                                   {"h", OnConflict::replace, Duration(1), CreateKind::not_pending},
                                   {"i", OnConflict::latest, Duration(1), CreateKind::not_pending},
                                   {"new", OnConflict::replace, Duration(1), CreateKind::created}};
  std::map<std::string, JobId> ids;
  for (const Item& item : items) {
    if (item.kind == CreateKind::created) continue;
    NewJob job = keyed(item.key, item.key == "h" ? in(Duration(0)) : at(base), R"("old")");
    job.biz_id = "order-" + item.key;  // of several shards
    ids[item.key] = create(job);
  }
  claim_one(ids.at("h"));
  cancel(ids.at("i"));
  std::vector<NewJob> wanted;
  for (const Item& item : items) {
    NewJob& job = wanted.emplace_back(keyed(item.key, at(base + item.moved), '"' + item.key + '"'));
    job.biz_id = "order-" + item.key;
    job.on_conflict = item.rule;
    job.max_attempts = 7;
  }
  const auto replies = must(db->client_store().create(wanted, CreateMode::each_by_itself));
  created_ += 1;
  ASSERT_EQ(replies.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    EXPECT_EQ(replies[i].kind, item.kind) << item.key;
    if (item.kind == CreateKind::created) continue;
    EXPECT_EQ(replies[i].job_id, ids.at(item.key)) << item.key;
    ASSERT_TRUE(replies[i].existing) << item.key;
    const Job job = find(ids.at(item.key));
    const bool is_changed = item.kind == CreateKind::updated;
    EXPECT_EQ(job.attribute_json, is_changed ? '"' + item.key + '"' : R"("old")") << item.key;
    EXPECT_EQ(replies[i].existing->attribute_json, job.attribute_json) << item.key;
    EXPECT_EQ(replies[i].action_time, job.action_time) << item.key;
    EXPECT_EQ(job.max_attempts, is_changed ? 7 : replies[i].existing->max_attempts) << item.key;
    if (!is_changed) continue;
    EXPECT_EQ(job.action_time, base + item.moved) << item.key;
  }
}

TEST_P(StoreContract, ItemsOfOneKeyAreAppliedInOrder) {
  const WallTime base = db->now() + kLong;
  const JobId id = create(keyed("k", at(base), R"("old")"));
  std::vector<NewJob> wanted;
  for (const auto& [rule, moved] : {std::pair(OnConflict::replace, Duration(10)),
                                    {OnConflict::earliest, Duration(5)},
                                    {OnConflict::earliest, Duration(7)},
                                    {OnConflict::latest, Duration(6)}}) {
    NewJob& job = wanted.emplace_back(keyed("k", at(base + moved), std::to_string(moved.count())));
    job.on_conflict = rule;
  }
  const auto replies = must(db->client_store().create(wanted, CreateMode::all_or_nothing));
  ASSERT_EQ(replies.size(), 4U);
  EXPECT_EQ(replies[0].kind, CreateKind::updated);
  EXPECT_EQ(replies[1].kind, CreateKind::updated);
  EXPECT_EQ(replies[2].kind, CreateKind::existing);
  EXPECT_EQ(replies[3].kind, CreateKind::updated);
  EXPECT_EQ(find(id).action_time, base + Duration(6));
  EXPECT_EQ(find(id).attribute_json, "6");
}

TEST_P(StoreContract, AllOrNothingWithoutARefusalDoesAll) {
  const NewJob known = keyed("known", in(kLong));
  const JobId id = create(known);
  const std::vector<NewJob> wanted = {due("a"), known, due("b")};
  const auto replies = must(db->client_store().create(wanted, CreateMode::all_or_nothing));
  created_ += 2;
  EXPECT_EQ(replies[0].kind, CreateKind::created);
  EXPECT_EQ(replies[1].kind, CreateKind::existing);
  EXPECT_EQ(replies[1].job_id, id);
  EXPECT_EQ(replies[2].kind, CreateKind::created);
}

TEST_P(StoreContract, EachByItselfKeepsTheAcceptedItems) {
  const JobId kept = create(keyed("used", in(kLong), R"("first")"));
  const std::vector<NewJob> wanted = {due("a"), keyed("used", in(kLong), R"("second")"), keyed("fresh", in(kLong)),
                                      due("b")};
  const auto replies = must(db->client_store().create(wanted, CreateMode::each_by_itself));
  created_ += 3;
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_EQ(replies[1].kind, CreateKind::key_reused);
  for (const std::size_t i : {0u, 2u, 3u}) {
    EXPECT_EQ(replies[i].kind, CreateKind::created);
    EXPECT_EQ(find(replies[i].job_id).biz_id, wanted[i].biz_id);
  }
  EXPECT_EQ(find(kept).attribute_json, R"("first")");
}

TEST_P(StoreContract, TheSameKeyTwiceInOneCallIsOneJob) {
  const NewJob job = keyed("k", in(kLong));
  NewJob other = job;
  other.attribute_json = R"("other")";
  const std::vector<NewJob> wanted = {job, job, other};
  const auto replies = must(db->client_store().create(wanted, CreateMode::each_by_itself));
  created_ += 1;
  EXPECT_EQ(replies[0].kind, CreateKind::created);
  EXPECT_EQ(replies[1].kind, CreateKind::existing);
  EXPECT_EQ(replies[1].job_id, replies[0].job_id);
  EXPECT_EQ(replies[2].kind, CreateKind::key_reused);
}

// Coalesced creates are such calls, too.
TEST_P(StoreContract, TheKeyOfAnEndedJobTwiceInOneCallCreatesNothing) {
  for (const OnConflict rule : {OnConflict::keep, OnConflict::replace, OnConflict::earliest, OnConflict::latest}) {
    NewJob job = keyed("k-" + std::to_string(static_cast<int>(rule)), at(db->now() + kLong));
    const JobId id = create(job);
    cancel(id);
    NewJob earlier = job;
    *earlier.when.at -= kLong / 2;
    job.on_conflict = earlier.on_conflict = rule;
    const std::vector<NewJob> wanted = {job, earlier, job};
    const auto replies = must(db->client_store().create(wanted, CreateMode::each_by_itself));
    ASSERT_EQ(replies.size(), 3u);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const CreateKind of_kept = i == 1 ? CreateKind::key_reused : CreateKind::existing;
      EXPECT_EQ(replies[i].kind, rule == OnConflict::keep ? of_kept : CreateKind::not_pending) << i;
      EXPECT_EQ(replies[i].job_id, id) << i;
    }
    EXPECT_EQ(find(id).status, JobStatus::cancelled);
  }
  EXPECT_EQ(must(db->reports().list({})).jobs.size(), 4u);
}

TEST_P(StoreContract, TheSameKeyThroughTwoSessionsIsOneJob) {
  const NewJob job = keyed("k", in(kLong));
  const JobId id = create(job);
  const auto replies = must(db->other_client_store().create({&job, 1}, CreateMode::all_or_nothing));
  EXPECT_EQ(replies[0].kind, CreateKind::existing);
  EXPECT_EQ(replies[0].job_id, id);
}

}  // namespace
}  // namespace tocsin
