#include "replay/replayer.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "base/progress.h"
#include "cli/pause.h"

namespace tocsin::replay {
namespace {

constexpr std::chrono::milliseconds kSlice(20);  // what opens within it is created with one request
constexpr std::size_t kMostCreates = 10'000;     // the server's limit for a batch
constexpr std::size_t kMostCancels = 200;        // in one request, when a lane has fallen behind

WallTime now() { return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now()); }

// "2026-03-01T12:00:00.250Z"
std::string rfc3339(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int(date.year()), unsigned(date.month()),
                unsigned(date.day()), int(clock.hours().count()), int(clock.minutes().count()),
                int(clock.seconds().count()), int(clock.subseconds().count()));
  return text;
}

}  // namespace

Replayer::Replayer(std::vector<Job>& jobs, const Connection& connection, int lanes, CancelBy cancel_by,
                   const Receiver& receiver)
    : jobs_(jobs), connection_(connection), lanes_(lanes), cancel_by_(cancel_by), receiver_(receiver) {}

void Replayer::run(WallTime end) {
  std::vector<std::jthread> creators, cancellers;
  for (int i = 0; i < std::max(1, lanes_ / 2); ++i) {
    creators.emplace_back([this] { lane(&Replayer::create_slices); });
    cancellers.emplace_back([this] { lane(&Replayer::cancel_jobs); });
  }
  pace(end);
  creates_.close();
  creators.clear();  // joins: now every job has its id
  // Soonest first: each of these fires unless its cancel comes before its time.
  Slice later;
  for (Job& job : jobs_)
    if (job.due > end && !job.wants_cancel) later.push_back(&job);
  std::sort(later.begin(), later.end(), [](const Job* a, const Job* b) { return a->due < b->due; });
  for (Job* job : later) request_cancel(*job);
  cancels_.close();
  cancellers.clear();
  if (failure_) std::rethrow_exception(failure_);
}

void Replayer::pace(WallTime end) {
  Slice closing;
  for (Job& job : jobs_)
    if (job.closes) closing.push_back(&job);
  std::stable_sort(closing.begin(), closing.end(), [](const Job* a, const Job* b) { return *a->closes < *b->closes; });

  const WallTime start = now();
  auto opens = jobs_.begin();
  auto closes = closing.begin();
  const auto ask_until = [&](WallTime time) {
    Slice slice;
    for (; opens != jobs_.end() && opens->opens <= time; ++opens) {
      slice.push_back(&*opens);
      if (slice.size() == kMostCreates) creates_.push(std::exchange(slice, {}));
    }
    if (!slice.empty()) creates_.push(std::move(slice));
    for (; closes != closing.end() && *(*closes)->closes <= time; ++closes) request_cancel(**closes);
  };
  Progress progress("replaying");
  for (WallTime time = start; time < end && !has_failed_; time = now()) {
    ask_until(time);
    progress.show((time - start).count(), (end - start).count(),
                  "created " + std::to_string(created_) + "  cancels " + std::to_string(answered_) + "  fired " +
                      std::to_string(receiver_.count()));
    pause_for(kSlice);
  }
  if (!has_failed_) ask_until(end);
}

void Replayer::lane(void (Replayer::*work)(RestClient&)) {
  try {
    RestClient client(connection_);
    (this->*work)(client);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    has_failed_ = true;
  }
}

void Replayer::create_slices(RestClient& client) {
  for (auto slices = creates_.take(1); !slices.empty() && !has_failed_; slices = creates_.take(1))
    create(client, slices.front());
}

void Replayer::create(RestClient& client, const Slice& slice) {
  Json body = {{"jobs", Json::array()}};
  for (const Job* job : slice)
    body["jobs"].push_back(
        {{"biz_type", job->biz_type}, {"biz_id", job->request.id}, {"action_time", rfc3339(job->due)}});
  const Json reply = client.post_patiently("/v1/jobs/batch", body);
  const Json& items = reply.at("items");
  if (items.size() != slice.size())
    throw Failure("asked for " + std::to_string(slice.size()) + " jobs, got " + std::to_string(items.size()));
  const WallTime answered = now();
  for (std::size_t i = 0; i < slice.size(); ++i) {
    const std::scoped_lock lock(mutex_);
    Job& job = *slice[i];
    job.job_id = std::stoll(items[i].at("job_id").get<std::string>());
    job.created = answered;
    if (job.wants_cancel) cancels_.push(&job);
  }
  created_ += static_cast<std::int64_t>(slice.size());
}

// A job without an id yet is cancelled as soon as its creation is acknowledged.
void Replayer::request_cancel(Job& job) {
  const std::scoped_lock lock(mutex_);
  job.wants_cancel = true;
  if (job.job_id != 0) cancels_.push(&job);
}

void Replayer::cancel_jobs(RestClient& client) {
  const std::size_t most = cancel_by_ == CancelBy::key ? 1 : kMostCancels;
  for (auto jobs = cancels_.take(most); !jobs.empty() && !has_failed_; jobs = cancels_.take(most)) {
    if (cancel_by_ == CancelBy::key)
      cancel_key(client, *jobs.front());
    else if (jobs.size() == 1)
      cancel_one(client, *jobs.front());
    else
      cancel_many(client, jobs);
  }
}

// As a business does, which remembers no ids.
void Replayer::cancel_key(RestClient& client, Job& job) {
  const Json reply = client.post_patiently("/v1/jobs/cancel", {{"biz_id", job.request.id}, {"biz_type", job.biz_type}});
  const std::string id = std::to_string(job.job_id);
  const auto has = [&](const char* list) {
    return std::ranges::any_of(reply.at(list), [&](const Json& each) { return each.get<std::string>() == id; });
  };
  record(job, has("cancelled")  ? CancelAnswer::cancelled
              : has("running")  ? CancelAnswer::running
              : has("finished") ? CancelAnswer::finished
                                : CancelAnswer::not_found);
}

void Replayer::cancel_one(RestClient& client, Job& job) {
  const RestReply reply = client.call("POST", "/v1/jobs/" + std::to_string(job.job_id) + "/cancel");
  if (reply.status == 429) return cancel_many(client, {&job});
  const std::string result = reply.body.is_object() ? reply.body.value("result", "") : "";
  if (reply.ok() && result == "cancelled")
    record(job, CancelAnswer::cancelled);
  else if (reply.status == 409 && result == "running")
    record(job, CancelAnswer::running);
  else if (reply.status == 409 && result == "finished")
    record(job, CancelAnswer::finished);
  else if (reply.status == 404)
    record(job, CancelAnswer::not_found);
  else
    throw Failure(problem_text(reply));
}

void Replayer::cancel_many(RestClient& client, const Slice& jobs) {
  std::unordered_map<std::string, Job*> by_id;
  Json body = {{"job_ids", Json::array()}};
  for (Job* job : jobs) {
    by_id[std::to_string(job->job_id)] = job;
    body["job_ids"].push_back(std::to_string(job->job_id));
  }
  const Json reply = client.post_patiently("/v1/jobs/cancel", body);
  const auto take = [&](const char* key, CancelAnswer answer) {
    for (const Json& id : reply.at(key)) record(*by_id.at(id.get<std::string>()), answer);
  };
  take("cancelled", CancelAnswer::cancelled);
  take("running", CancelAnswer::running);
  take("finished", CancelAnswer::finished);
  take("not_found", CancelAnswer::not_found);
}

void Replayer::record(Job& job, CancelAnswer answer) {
  const std::scoped_lock lock(mutex_);
  job.answer = answer;
  job.answered = now();
  ++answered_;
}

}  // namespace tocsin::replay
