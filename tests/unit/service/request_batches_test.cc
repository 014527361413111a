#include "service/request_batches.h"

#include <gtest/gtest.h>

#include <future>
#include <map>

#include "service/locked_row_retries.h"
#include "support/lease_kinds.h"
#include "support/manual_clock.h"
#include "unit/service/request_jobs.h"

namespace tocsin {
namespace {

class RequestBatches : public ::testing::Test, protected RequestJobs {
 protected:
  ChangeItem cancel(JobId id, Result<CancelReply>& reply) const {
    return {CancelAsked{id, [&reply](Result<CancelReply> r) { reply = std::move(r); }}};
  }
  ChangeItem cancel_key(const std::string& key, Result<KeyCancelReply>& reply) const {
    return {KeyCancelAsked{{key, {}}, [&reply](Result<KeyCancelReply> r) { reply = std::move(r); }}};
  }
  ChangeItem retry(JobId id, Result<ChangeReply>& reply) const {
    return {RetryAsked{id, [&reply](Result<ChangeReply> r) { reply = std::move(r); }}};
  }
  ChangeItem run(JobId id, Result<ChangeReply>& reply) const {
    return {ChangeAsked{{id, {}}, [&reply](Result<ChangeReply> r) { reply = std::move(r); }}};
  }

  FakeClientStore client_store{database, nullptr, nullptr};
  const Error unasked_{ErrorCode::unavailable, "not answered", ""};
};

TEST_F(RequestBatches, EachVerbOfABatchGetsItsOwnAnswer) {
  const JobId a = create("a"), b = create("b"), c = create("c");
  Result<CancelReply> cancelled = unasked_, repeated = unasked_;
  Result<KeyCancelReply> by_key = unasked_;
  Result<ChangeReply> hastened = unasked_;
  std::vector<ChangeItem> items;
  items.push_back(run(c, hastened));
  items.push_back(cancel(a, cancelled));
  items.push_back(cancel_key("b", by_key));
  items.push_back(cancel(a, repeated));
  EXPECT_TRUE(write_changes(client_store, std::move(items), LockedRowAttempt::first).empty());
  ASSERT_TRUE(cancelled && repeated && by_key && hastened);
  EXPECT_EQ(cancelled->kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(repeated->kind, CancelReply::Kind::finished);
  EXPECT_EQ(by_key->cancelled, std::vector<JobId>{b});
  EXPECT_EQ(hastened->kind, ChangeReply::Kind::changed);
}

TEST_F(RequestBatches, LockedRowsAreReturnedUnansweredUntilTheLastTry) {
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
  auto locked = write_changes(client_store, std::move(items), LockedRowAttempt::first);
  ASSERT_EQ(locked.size(), 3u);
  ASSERT_TRUE(free) << "what is free is answered at once";
  EXPECT_FALSE(held || held_key || held_change);
  locked = write_changes(client_store, std::move(locked), LockedRowAttempt::second);
  ASSERT_EQ(locked.size(), 3u);
  EXPECT_TRUE(write_changes(client_store, std::move(locked), LockedRowAttempt::last).empty());
  ASSERT_TRUE(held && held_key && held_change);
  EXPECT_EQ(held->kind, CancelReply::Kind::locked);
  EXPECT_EQ(held_key->locked, std::vector<JobId>{a});
  EXPECT_EQ(held_change->kind, ChangeReply::Kind::locked);
}

TEST_F(RequestBatches, LeasesAreWrittenTogetherAndLockedOnesAreReturned) {
  const JobId a = create("a"), b = create("b"), c = create("c");
  const std::vector<Lease> leases = lease({a, b, c});
  database.lock(b);
  Result<std::vector<LeaseResult>> first = unasked_, second = unasked_;
  Result<std::vector<LeaseResult>> extended = unasked_;
  const auto to = [](auto& reply) { return [&reply](auto r) { reply = std::move(r); }; };
  const auto done = [](const Lease& lease) { return FinishRequest{lease.job_id, lease.token, {}, {}, {}}; };
  std::vector<LeaseItem> items;
  const MonoTime until{std::chrono::seconds(3)};
  items.push_back({OutcomesAsked{{done(leases[0]), done({a, leases[0].token + 1})}, to(first)}});
  items.push_back({ExtensionsAsked{{{leases[2], std::chrono::hours(1)}}, to(extended)}});
  items.push_back({OutcomesAsked{{done(leases[1]), done(leases[0])}, to(second)}, until});
  auto locked = write_leases(client_store, "n", std::move(items));
  ASSERT_TRUE(first && extended);
  EXPECT_EQ(kinds_of(*first), (std::vector{LeaseReply::applied, LeaseReply::stale}));
  EXPECT_EQ(extended->front().kind, LeaseReply::applied);
  EXPECT_FALSE(second);
  ASSERT_EQ(locked.size(), 1u);
  EXPECT_EQ(std::get<OutcomesAsked>(locked.front().what).request.size(), 1u) << "without the one that is told already";
  locked = write_leases(client_store, "n", std::move(locked));
  ASSERT_EQ(locked.size(), 1u) << "tried again as often as it takes";
  EXPECT_EQ(locked.front().until, until);
  EXPECT_FALSE(second);
  database.unlock(b);
  EXPECT_TRUE(write_leases(client_store, "n", std::move(locked)).empty());
  ASSERT_TRUE(second);
  EXPECT_EQ(kinds_of(*second), (std::vector{LeaseReply::applied, LeaseReply::stale})) << "of two acks one is told ok";
}

TEST_F(RequestBatches, ALeaseThatStaysLockedIsBusyAndOtherResultsStand) {
  const JobId a = create("a"), b = create("b");
  const std::vector<Lease> leases = lease({a, b});
  database.lock(b);
  Result<std::vector<LeaseResult>> reply = unasked_, alone = unasked_;
  const auto to = [](auto& r) { return [&r](Result<std::vector<LeaseResult>> result) { r = std::move(result); }; };
  std::vector<LeaseItem> items;
  items.push_back(
      {ExtensionsAsked{{{leases[0], std::chrono::hours(1)}, {leases[1], std::chrono::hours(1)}}, to(reply)}});
  items.push_back({ExtensionsAsked{{{leases[1], std::chrono::hours(1)}}, to(alone)}});
  auto locked = write_leases(client_store, "n", std::move(items));
  ASSERT_EQ(locked.size(), 2u);
  for (LeaseItem& item : locked) refuse(item, {ErrorCode::conflict, "locked", ""});
  ASSERT_TRUE(reply);
  EXPECT_EQ((*reply)[0].kind, LeaseReply::applied);
  EXPECT_EQ((*reply)[1].kind, LeaseReply::busy);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, ErrorCode::conflict);
}

TEST_F(RequestBatches, ARetriedJobIsReportedToOneCaller) {
  const JobId a = create("a"), b = create("b"), c = create("c");
  const Lease of_a = lease(a);
  const FinishRequest died{of_a.job_id, of_a.token, FinishRequest::Kind::dead, {}, "no"};
  ASSERT_TRUE(client_store.finish_leased({&died, 1}, "n"));
  Result<ChangeReply> first = unasked_, second = unasked_, pending = unasked_;
  Result<CancelReply> cancelled = unasked_;
  std::vector<ChangeItem> items;
  items.push_back(retry(a, first));
  items.push_back(cancel(b, cancelled));
  items.push_back(retry(a, second));
  items.push_back(retry(c, pending));
  EXPECT_TRUE(write_changes(client_store, std::move(items), LockedRowAttempt::first).empty());
  ASSERT_TRUE(first && second && pending && cancelled);
  EXPECT_EQ(first->kind, ChangeReply::Kind::changed);
  EXPECT_EQ(second->kind, ChangeReply::Kind::pending);
  EXPECT_EQ(pending->kind, ChangeReply::Kind::pending);
  EXPECT_EQ(cancelled->kind, CancelReply::Kind::cancelled);
}

TEST_F(RequestBatches, ARetryOfALockedJobDelaysNoOtherAndIsReturned) {
  const JobId a = create("a"), b = create("b"), c = create("c");
  for (const Lease& lease : lease({a, b})) {
    const FinishRequest died{lease.job_id, lease.token, FinishRequest::Kind::dead, {}, "no"};
    ASSERT_TRUE(client_store.finish_leased({&died, 1}, "n"));
  }
  database.lock(a);
  Result<ChangeReply> held = unasked_, free = unasked_;
  Result<CancelReply> cancelled = unasked_;
  std::vector<ChangeItem> items;
  items.push_back(retry(a, held));
  items.push_back(retry(b, free));
  items.push_back(cancel(c, cancelled));
  auto locked = write_changes(client_store, std::move(items), LockedRowAttempt::first);
  ASSERT_EQ(locked.size(), 1U);
  EXPECT_FALSE(held);
  ASSERT_TRUE(free && cancelled);
  EXPECT_EQ(free->kind, ChangeReply::Kind::changed);
  EXPECT_TRUE(write_changes(client_store, std::move(locked), LockedRowAttempt::last).empty());
  ASSERT_TRUE(held);
  EXPECT_EQ(held->kind, ChangeReply::Kind::locked);
}

// A retry may wait for a key that another transaction holds.
TEST_F(RequestBatches, RetriesComeAfterAllOtherChanges) {
  const JobId a = create("a"), b = create("b");
  std::vector<std::string> answered;
  std::vector<ChangeItem> items;
  items.push_back({RetryAsked{a, [&](const Result<ChangeReply>&) { answered.emplace_back("retry"); }}});
  items.push_back({CancelAsked{b, [&](const Result<CancelReply>&) { answered.emplace_back("cancel"); }}});
  EXPECT_TRUE(write_changes(client_store, std::move(items), LockedRowAttempt::first).empty());
  EXPECT_EQ(answered, (std::vector<std::string>{"cancel", "retry"}));
}

TEST_F(RequestBatches, EachReadGetsItsOwnAnswer) {
  const JobId a = create("a"), b = create("b");
  Result<std::optional<Job>> first = unasked_, none = unasked_;
  Result<KeyList> list = unasked_, empty = unasked_;
  std::vector<ReadItem> items;
  const auto to = [](auto& reply) { return [&reply](auto r) { reply = std::move(r); }; };
  items.emplace_back(ListAsked{{"b", {}, {}, 10}, to(list)});
  items.emplace_back(GetAsked{a, to(first)});
  items.emplace_back(GetAsked{make_job_id(4242, 1), to(none)});
  items.emplace_back(ListAsked{{"x", {}, {}, 10}, to(empty)});
  answer_reads(client_store, std::move(items));
  ASSERT_TRUE(first && none && list && empty);
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->job_id, a);
  EXPECT_FALSE(*none);
  ASSERT_EQ(list->jobs.size(), 1u);
  EXPECT_EQ(list->jobs.front().job_id, b);
  EXPECT_TRUE(empty->jobs.empty());
}

TEST_F(RequestBatches, EachReadOfLeasesGetsItsOwnJobs) {
  const std::vector<Lease> leases = lease({create("a"), create("b"), create("c")});
  using Leased = Result<std::vector<std::optional<LeasedJob>>>;
  Leased first = unasked_, second = unasked_, none = unasked_, large = unasked_;
  std::vector<LeaseItem> items;
  const auto to = [](auto& reply) { return [&reply](auto r) { reply = std::move(r); }; };
  items.push_back({LeasedAsked{{leases[0], {leases[1].job_id, leases[1].token + 1}}, to(first)}, {}});
  items.push_back({LeasedAsked{{}, to(none)}, {}});
  items.push_back({LeasedAsked{std::vector(1'000, leases[1]), to(large)}, {}});
  items.push_back({LeasedAsked{{leases[2]}, to(second)}, {}});
  EXPECT_TRUE(write_leases(client_store, "n", std::move(items)).empty());
  ASSERT_TRUE(first && second && none && large);
  ASSERT_EQ(first->size(), 2U);
  EXPECT_TRUE((*first)[0]);
  EXPECT_FALSE((*first)[1]) << "its token is another one";
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(large->size(), 1'000U);
  ASSERT_EQ(second->size(), 1U);
  EXPECT_TRUE(second->front());
}

TEST(ReadItems, AreAsLargeAsTheirAnswersMayBe) {
  EXPECT_EQ(most_rows(GetAsked{make_job_id(1, 1), {}}), 1u);
  EXPECT_EQ(most_rows(ListAsked{{"b", {}, {}, 101}, {}}), 101u);
}

// A client store on which the keys that begin with "held" are another transaction's, and which does not retry
// `refused`.
class HeldKeys final : public ClientStore {
 public:
  explicit HeldKeys(ClientStore& client_store) : client_store_(client_store) {}
  Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) override {
    ++calls;
    if (std::ranges::any_of(jobs, [](const NewJob& job) { return job.idempotency_key->starts_with("held"); }))
      return Error{ErrorCode::conflict, "lock timeout", ""};
    return client_store_.create(jobs, mode);
  }
  Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs, LockWait wait) override {
    return client_store_.cancel(jobs, wait);
  }
  Result<CancelAllReply> cancel_all(const std::string& biz_id, std::optional<TypeId> type) override {
    return client_store_.cancel_all(biz_id, type);
  }
  Result<ChangeBatchReply> change_together(const ChangeBatch& batch) override {
    return client_store_.change_together(batch);
  }
  Result<std::vector<std::optional<Job>>> find(std::span<const JobId> jobs) override {
    return client_store_.find(jobs);
  }
  Result<std::vector<KeyList>> list_keys(std::span<const KeyQuery> queries) override {
    return client_store_.list_keys(queries);
  }
  Result<std::vector<Result<ChangeReply>>> retry_each(std::span<const JobId> jobs) override {
    auto replies = client_store_.retry_each(jobs);
    for (std::size_t i = 0; replies && i < jobs.size(); ++i)
      if (jobs[i] == refused) (*replies)[i] = Error{ErrorCode::invalid, "it is refused", ""};
    return replies;
  }
  Result<int> retry_many(const RetryMany& request) override { return client_store_.retry_many(request); }
  Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) override {
    return client_store_.leased(leases);
  }
  Result<std::vector<LeaseResult>> finish_leased(std::span<const FinishRequest> requests,
                                                 const std::string& node) override {
    return client_store_.finish_leased(requests, node);
  }
  Result<std::vector<LeaseResult>> extend(std::span<const Extension> extensions) override {
    return client_store_.extend(extensions);
  }
  int calls = 0;
  JobId refused = 0;

 private:
  ClientStore& client_store_;
};

TEST_F(RequestBatches, ARefusedRetryFailsNoOther) {
  const JobId a = create("a"), b = create("b");
  HeldKeys refusing(client_store);
  refusing.refused = a;
  Result<ChangeReply> refused = unasked_, other = unasked_;
  std::vector<ChangeItem> items;
  items.push_back(retry(a, refused));
  items.push_back(retry(b, other));
  EXPECT_TRUE(write_changes(refusing, std::move(items), LockedRowAttempt::first).empty());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->kind, ChangeReply::Kind::pending);
}

TEST_F(RequestBatches, ALockedKeyFailsNoOtherCreate) {
  HeldKeys held_keys(client_store);
  std::map<std::string, Result<CreateReply>> replies;
  std::vector<CreateItem> items;
  for (int i = 0; i < 32; ++i) {
    const std::string key = i == 5 || i == 20 ? "held-" + std::to_string(i) : std::to_string(i);
    items.push_back({{job("o", key), [&replies, key](Result<CreateReply> r) { replies.emplace(key, std::move(r)); }}});
  }
  const auto held = write_creates(held_keys, std::move(items));
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

TEST_F(RequestBatches, ManyHeldKeysTakeABoundedNumberOfTries) {
  HeldKeys held_keys(client_store);
  int answered = 0;
  std::vector<CreateItem> items;
  for (int i = 0; i < 500; ++i)
    items.push_back({{job("o", "held-" + std::to_string(i)), [&answered](const auto&) { ++answered; }}});
  const auto rest = write_creates(held_keys, std::move(items));
  EXPECT_EQ(rest.size(), 500u);
  EXPECT_EQ(answered, 0);
  EXPECT_EQ(held_keys.calls, ClientStore::kMostHeldTries) << "what waits behind them waits for these tries";
  EXPECT_FALSE(rest.front().was_held) << "the first of the next time are those that were not reached";
  EXPECT_TRUE(rest.back().was_held);
}

TEST_F(RequestBatches, AFreeKeyBehindManyHeldOnesIsReachedInTurn) {
  HeldKeys held_keys(client_store);
  Result<CreateReply> reply = unasked_;
  std::vector<CreateItem> items;
  for (int i = 0; i < 500; ++i) items.push_back({{job("o", "held-" + std::to_string(i)), [](const auto&) {}}});
  items.push_back({{job("o", "free"), [&reply](Result<CreateReply> r) { reply = std::move(r); }}});
  int passes = 0;
  for (; !reply && passes < 100; ++passes) {
    const int before = held_keys.calls;
    items = write_creates(held_keys, std::move(items));
    EXPECT_LE(held_keys.calls - before, 2 * ClientStore::kMostHeldTries);
  }
  EXPECT_LE(passes, 10) << "each try of a pass excludes a key, but for the logarithm of their number";
  EXPECT_EQ(items.size(), 500u);
}

TEST_F(RequestBatches, CreatesOfOneKeyStayInTheirOrder) {
  HeldKeys held_keys(client_store);
  std::vector<CreateItem> items;
  for (const char* key : {"held-a", "held-b"})
    for (const char* biz_id : {"1", "1"}) items.push_back({{job(biz_id, key), [](const auto&) {}}});
  items[0].was_held = true;
  items[1].request.max_attempts = 7;
  const auto rest = write_creates(held_keys, std::move(items));
  ASSERT_EQ(rest.size(), 4u);
  EXPECT_EQ(rest[2].request.idempotency_key, "held-a") << "behind the key that was not known to be held";
  EXPECT_EQ(rest[3].request.max_attempts, 7);
}

struct Patient {
  int number = 0;
  MonoTime until{};
};

TEST(LockedRowRetries, TriesUntilTheItemHasWaitedLongEnough) {
  ManualClock hand;
  std::promise<void> tried_twice, ended;
  int tries = 0;
  LockedRowRetries<Patient> lane({}, 1, hand, 10, std::chrono::seconds(3),
                                 [&](PgClientStore&, std::vector<Patient> items, bool is_last) -> std::vector<Patient> {
                                   if (is_last) return ended.set_value(), std::vector<Patient>{};
                                   if (++tries == 2) tried_twice.set_value();
                                   return items;
                                 });
  EXPECT_TRUE(lane.push({Patient{1}}).empty());
  tried_twice.get_future().wait();
  hand.advance(std::chrono::seconds(3));
  ended.get_future().wait();
}

TEST(LockedRowRetries, ItemsComeAgainInTheirOrderBeforeNewOnes) {
  ManualClock hand;
  std::promise<std::vector<int>> second;
  LockedRowRetries<Patient>* pushes_to = nullptr;
  int tries = 0;
  const auto attempt = [&](PgClientStore&, std::vector<Patient> items, bool) -> std::vector<Patient> {
    if (++tries == 1) {
      pushes_to->push({Patient{3}});
      return items;
    }
    std::vector<int> numbers;
    for (const Patient& item : items) numbers.push_back(item.number);
    if (tries == 2) second.set_value(numbers);
    return {};
  };
  LockedRowRetries<Patient> lane({}, 1, hand, 10, std::chrono::seconds(3), attempt);
  pushes_to = &lane;
  EXPECT_TRUE(lane.push({Patient{1}, Patient{2}}).empty());
  EXPECT_EQ(second.get_future().get(), (std::vector{1, 2, 3}));
}

TEST(LockedRowRetries, StopTriesAllItemsOnceMoreAndAcceptsNoMore) {
  ManualClock hand;
  int last = 0;
  LockedRowRetries<Patient> lane({}, 1, hand, 2, std::chrono::seconds(3),
                                 [&](PgClientStore&, std::vector<Patient> items, bool is_last) -> std::vector<Patient> {
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
