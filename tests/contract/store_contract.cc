#include "support/contract/store_fixture.h"

namespace tocsin {

void StoreContract::SetUp() {
  db = GetParam().make();
  BizType type;
  type.name = "order.unpaid";
  type.handler_kind = "noop";
  type.handler_json = R"({"kind":"noop"})";
  type_id = must(db->types().put(type)).type.type_id;
  type.name = "ticket.untouched";
  other_type_id = must(db->types().put(type)).type.type_id;
}

void StoreContract::TearDown() {
  if (!db || HasFatalFailure()) return;
  expect_counts_agree();
  EXPECT_EQ(db->report_disagreement(), "");
}

void StoreContract::set_lateness_limit() {
  BizType type;
  type.name = "order.unpaid";
  type.handler_kind = "noop";
  type.handler_json = R"({"kind":"noop"})";
  type.drop_older_than = std::chrono::milliseconds(1);
  must(db->types().put(type));
}

NewJob StoreContract::due(const std::string& biz_id) const {
  NewJob job;
  job.biz_id = biz_id;
  job.type_id = type_id;
  job.when.in = Duration(0);
  return job;
}

NewJob StoreContract::later(const std::string& biz_id) const {
  NewJob job = due(biz_id);
  job.when.in = kLong;
  return job;
}

NewJob StoreContract::keyed(const std::string& key, const When& when, const std::string& attribute) const {
  NewJob job = due();
  job.when = when;
  job.attribute_json = attribute;
  job.idempotency_key = key;
  return job;
}

CreateReply StoreContract::create_reply(const NewJob& job) {
  const auto replies = must(db->client_store().create({&job, 1}, CreateMode::each_by_itself));
  if (replies.size() != 1) throw std::runtime_error("one reply per job");
  created_ += replies[0].kind == CreateReply::Kind::created;
  types_[replies[0].job_id] = job.type_id;
  return replies[0];
}

JobId StoreContract::create(const NewJob& job) {
  const CreateReply reply = create_reply(job);
  EXPECT_EQ(reply.kind, CreateReply::Kind::created);
  return reply.job_id;
}

std::vector<JobId> StoreContract::create(const std::vector<NewJob>& jobs) {
  std::vector<JobId> ids;
  for (const CreateReply& reply : must(db->client_store().create(jobs, CreateMode::all_or_nothing))) {
    EXPECT_EQ(reply.kind, CreateReply::Kind::created);
    types_[reply.job_id] = jobs[ids.size()].type_id;
    ids.push_back(reply.job_id);
  }
  created_ += static_cast<std::int64_t>(ids.size());
  return ids;
}

JobId StoreContract::create_in(Shard shard) {
  NewJob job = due();
  do job.biz_id = "key-" + std::to_string(++last_key_);
  while (shard_of(job.biz_id, db->shards()) != shard);
  return create(job);
}

Job StoreContract::find(JobId job) {
  const auto found = must(db->reports().find(job));
  if (!found) throw std::runtime_error("job " + std::to_string(job) + " is gone");
  return *found;
}

std::vector<ClaimedJob> StoreContract::claim(const std::vector<JobId>& jobs, Duration ttr) {
  const std::vector<Duration> ttrs(jobs.size(), ttr);
  return must(db->store().claim(seen(jobs), ttrs, ticket())).won;
}

std::vector<Candidate> StoreContract::seen(const std::vector<JobId>& jobs) const {
  std::vector<Candidate> candidates;
  for (const JobId job : jobs) {
    const auto made = types_.find(job);
    candidates.push_back({job, made == types_.end() ? type_id : made->second, {}});
  }
  return candidates;
}

ClaimedJob StoreContract::claim_one(JobId job, Duration ttr) {
  const auto won = claim({job}, ttr);
  if (won.size() != 1) throw std::runtime_error("the claim of job " + std::to_string(job) + " was lost");
  return won[0];
}

ClaimedJob StoreContract::claim_and_expire(JobId job) {
  const ClaimedJob claimed = claim_one(job, kShort);
  db->wait_until(claimed.job.fire_at);
  return claimed;
}

void StoreContract::kill(JobId job, const std::string& why) {
  const ClaimedJob claimed = claim_one(job);
  EXPECT_EQ(finish({job, claimed.token, FinishRequest::Kind::dead, {}, why}), FinishReply::applied);
}

FinishReply StoreContract::finish(const FinishRequest& request) {
  const auto replies = must(db->store().finish({&request, 1}, "node-a"));
  if (replies.size() != 1) throw std::runtime_error("one reply per request");
  return replies[0];
}

CancelReply StoreContract::cancel(JobId job) {
  const auto replies = must(db->client_store().cancel({&job, 1}, LockWait::some_seconds));
  if (replies.size() != 1) throw std::runtime_error("one reply per id");
  return replies[0];
}

ChangeReply StoreContract::retry(JobId job) { return must(must(db->client_store().retry_each({&job, 1})).at(0)); }

StoreContract::Together StoreContract::change_together(const ChangeBatch& batch) {
  const ChangeBatchReply reply = must(db->client_store().change_together(batch));
  Together all;
  for (const auto& each : reply.cancels) all.cancels.push_back(must(each));
  for (const auto& each : reply.key_cancels) all.key_cancels.push_back(must(each));
  for (const auto& each : reply.changes) all.changes.push_back(must(each));
  return all;
}

std::map<JobStatus, std::int64_t> StoreContract::counts_of(TypeId type) {
  std::map<JobStatus, std::int64_t> counts;
  for (const TypeCount& count : must(db->reports().counts()))
    if (count.type_id == type && count.n != 0) counts[count.status] += count.n;
  return counts;
}

void StoreContract::expect_counts_agree() {
  std::map<std::pair<TypeId, JobStatus>, std::int64_t> counted, listed;
  std::int64_t total = 0;
  for (const TypeCount& count : must(db->reports().counts()))
    if (count.n != 0) counted[{count.type_id, count.status}] += count.n;
  JobFilter filter;
  filter.limit = 1000;
  while (true) {
    const auto [page, is_cut] = must(db->reports().list(filter));
    for (const Job& job : page) ++listed[{job.type_id, job.status}], ++total;
    if (!is_cut && page.size() < 1000) break;
    filter.below = page.back().job_id;
  }
  EXPECT_EQ(counted, listed) << "the counts (left) are not what the rows say (right)";
  EXPECT_EQ(total, created_) << "a job was lost, or made twice";
}

}  // namespace tocsin
