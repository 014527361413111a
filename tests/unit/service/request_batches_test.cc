#include "service/request_batches.h"

#include <gtest/gtest.h>

#include <future>
#include <map>

#include "service/locked_lane.h"
#include "support/fake_sessions.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

class Gathered : public ::testing::Test {
 protected:
  Gathered() {
    BizType type;
    type.name = "order.unpaid";
    type.handler_json = R"({"kind":"noop"})";
    type.handler_kind = "noop";
    type_id_ = database.put_type(type, now_).type.type_id;
  }

  NewJob job(const std::string& biz_id, const std::string& key = "") const {
    NewJob job;
    job.biz_id = biz_id;
    job.type_id = type_id_;
    job.when.in = std::chrono::hours(1);
    if (!key.empty()) job.idempotency_key = key;
    return job;
  }
  JobId create(const std::string& biz_id) {
    return (*database.create({job(biz_id)}, CreateMode::each_by_itself, now_)).front().job_id;
  }
  ChangeItem cancel(JobId id, Result<CancelReply>& reply) const {
    return {CancelAsked{id, [&reply](Result<CancelReply> r) { reply = std::move(r); }}};
  }
  ChangeItem cancel_key(const std::string& key, Result<KeyCancelReply>& reply) const {
    return {KeyCancelAsked{{key, {}}, [&reply](Result<KeyCancelReply> r) { reply = std::move(r); }}};
  }
  ChangeItem run(JobId id, Result<ChangeReply>& reply) const {
    return {ChangeAsked{{id, {}}, [&reply](Result<ChangeReply> r) { reply = std::move(r); }}};
  }

  const WallTime now_ = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);
  FakeDatabase database{[this] { return now_; }};
  FakeJobDesk desk{database, nullptr, nullptr};
  TypeId type_id_ = 0;
  const Error unasked_{ErrorCode::unavailable, "not answered", ""};
};

TEST_F(Gathered, EachVerbOfABatchGetsItsOwnAnswer) {
  const JobId a = create("a"), b = create("b"), c = create("c");
  Result<CancelReply> cancelled = unasked_, repeated = unasked_;
  Result<KeyCancelReply> by_key = unasked_;
  Result<ChangeReply> hastened = unasked_;
  std::vector<ChangeItem> items;
  items.push_back(run(c, hastened));
  items.push_back(cancel(a, cancelled));
  items.push_back(cancel_key("b", by_key));
  items.push_back(cancel(a, repeated));
  EXPECT_TRUE(write_changes(desk, std::move(items), Try::first).empty());
  ASSERT_TRUE(cancelled && repeated && by_key && hastened);
  EXPECT_EQ(cancelled->kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(repeated->kind, CancelReply::Kind::finished);
  EXPECT_EQ(by_key->cancelled, std::vector<JobId>{b});
  EXPECT_EQ(hastened->kind, ChangeReply::Kind::changed);
}

TEST_F(Gathered, WhatIsLockedComesBackUnansweredUntilTheLastTry) {
  const JobId a = create("a"), b = create("b");
  database.lock(a);
  Result<CancelReply> held = unasked_, free = unasked_;
  Result<KeyCancelReply> held_key = unasked_;
  Result<ChangeReply> held_change = unasked_;
  std::vector<ChangeItem> items;
  items.push_back(cancel(a, held));
  items.push_back(cancel(b, free));
  items.push_back(cancel_key("a", held_key));
  items.push_back(run(a, held_change));
  auto locked = write_changes(desk, std::move(items), Try::first);
  ASSERT_EQ(locked.size(), 3u);
  ASSERT_TRUE(free) << "what is free is answered at once";
  EXPECT_FALSE(held || held_key || held_change);
  locked = write_changes(desk, std::move(locked), Try::second);
  ASSERT_EQ(locked.size(), 3u);
  EXPECT_TRUE(write_changes(desk, std::move(locked), Try::last).empty());
  ASSERT_TRUE(held && held_key && held_change);
  EXPECT_EQ(held->kind, CancelReply::Kind::locked);
  EXPECT_EQ(held_key->locked, std::vector<JobId>{a});
  EXPECT_EQ(held_change->kind, ChangeReply::Kind::locked);
}

TEST_F(Gathered, ReadsAreAnsweredEachWithItsOwn) {
  const JobId a = create("a"), b = create("b");
  Result<std::optional<Job>> first = unasked_, none = unasked_;
  Result<std::vector<Job>> list = unasked_, empty = unasked_;
  std::vector<ReadItem> items;
  const auto to = [](auto& reply) { return [&reply](auto r) { reply = std::move(r); }; };
  items.emplace_back(ListAsked{{"b", {}, {}, 10}, to(list)});
  items.emplace_back(GetAsked{a, to(first)});
  items.emplace_back(GetAsked{make_job_id(4242, 1), to(none)});
  items.emplace_back(ListAsked{{"x", {}, {}, 10}, to(empty)});
  answer_reads(desk, std::move(items));
  ASSERT_TRUE(first && none && list && empty);
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->job_id, a);
  EXPECT_FALSE(*none);
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->front().job_id, b);
  EXPECT_TRUE(empty->empty());
}

// A desk on which the keys that begin with "held" are another transaction's.
class HeldKeys final : public JobDesk {
 public:
  explicit HeldKeys(JobDesk& desk) : desk_(desk) {}
  Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) override {
    ++calls;
    if (std::ranges::any_of(jobs, [](const NewJob& job) { return job.idempotency_key->starts_with("held"); }))
      return Error{ErrorCode::conflict, "lock timeout", ""};
    return desk_.create(jobs, mode);
  }
  Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs) override { return desk_.cancel(jobs); }
  Result<std::vector<CancelReply>> cancel_all(const std::string& biz_id, std::optional<TypeId> type) override {
    return desk_.cancel_all(biz_id, type);
  }
  Result<ChangeBatchReply> change_together(const ChangeBatch& batch) override { return desk_.change_together(batch); }
  Result<std::vector<std::optional<Job>>> find(std::span<const JobId> jobs) override { return desk_.find(jobs); }
  Result<std::vector<std::vector<Job>>> list_keys(std::span<const KeyQuery> queries) override {
    return desk_.list_keys(queries);
  }
  Result<ChangeReply> reschedule(JobId job, const When& when) override { return desk_.reschedule(job, when); }
  Result<ChangeReply> run_now(JobId job) override { return desk_.run_now(job); }
  Result<ChangeReply> retry(JobId job) override { return desk_.retry(job); }
  Result<int> retry_many(const RetryMany& request) override { return desk_.retry_many(request); }
  Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) override {
    return desk_.leased(leases);
  }
  Result<std::vector<LeaseReply>> finish_leased(std::span<const FinishRequest> requests,
                                                const std::string& node) override {
    return desk_.finish_leased(requests, node);
  }
  Result<std::vector<ExtendReply>> extend(std::span<const Lease> leases, Duration ttr) override {
    return desk_.extend(leases, ttr);
  }
  int calls = 0;

 private:
  JobDesk& desk_;
};

TEST_F(Gathered, AHeldKeyFailsNoNeighbour) {
  HeldKeys held_keys(desk);
  std::map<std::string, Result<CreateReply>> replies;
  std::vector<CreateItem> items;
  for (int i = 0; i < 32; ++i) {
    const std::string key = i == 5 || i == 20 ? "held-" + std::to_string(i) : std::to_string(i);
    items.push_back({{job("o", key), [&replies, key](Result<CreateReply> r) { replies.emplace(key, std::move(r)); }}});
  }
  const auto held = write_keyed_creates(held_keys, std::move(items));
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].request.idempotency_key, "held-5");
  EXPECT_EQ(held[1].request.idempotency_key, "held-20");
  EXPECT_EQ(replies.size(), 30u);
  for (const auto& [key, reply] : replies) {
    ASSERT_TRUE(reply) << key;
    EXPECT_EQ(reply->kind, CreateReply::Kind::created);
  }
  EXPECT_LE(held_keys.calls, 1 + 2 * 2 * 5) << "halves, not one by one";
}

struct Patient {
  int number = 0;
  MonoTime until{};
};

TEST(LockedLane, TriesUntilTheItemHasWaitedLongEnough) {
  ManualClock hand;
  std::promise<void> tried_twice, ended;
  int tries = 0;
  LockedLane<Patient> lane({}, 1, hand, 10, std::chrono::seconds(3),
                           [&](PgJobDesk&, std::vector<Patient> items, bool is_last) -> std::vector<Patient> {
                             if (is_last) return ended.set_value(), std::vector<Patient>{};
                             if (++tries == 2) tried_twice.set_value();
                             return items;
                           });
  EXPECT_TRUE(lane.push({Patient{1}}).empty());
  tried_twice.get_future().wait();
  hand.advance(std::chrono::seconds(3));
  ended.get_future().wait();
}

TEST(LockedLane, EndsWithALastTryOfAllAndTakesNoMore) {
  ManualClock hand;
  int last = 0;
  LockedLane<Patient> lane({}, 1, hand, 2, std::chrono::seconds(3),
                           [&](PgJobDesk&, std::vector<Patient> items, bool is_last) -> std::vector<Patient> {
                             if (!is_last) return items;
                             last += static_cast<int>(items.size());
                             return {};
                           });
  lane.push({Patient{1}, Patient{2}});
  lane.stop();
  EXPECT_EQ(last, 2);
  EXPECT_EQ(lane.push({Patient{3}}).size(), 1u);
}

}  // namespace
}  // namespace tocsin
