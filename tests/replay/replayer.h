// Drives a node through a plan: creates every job when its request opens, cancels it when the request closes.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/rest_client.h"
#include "replay/channel.h"
#include "replay/plan.h"
#include "replay/receiver.h"

namespace tocsin::replay {

// Thread: run() on the owner; the lanes are its own.
class Replayer {
 public:
  enum class CancelBy { key, id };
  // `jobs` gets the node's answers and must outlive the replayer.
  Replayer(std::vector<Job>& jobs, const Connection& connection, int lanes, CancelBy cancel_by,
           const Receiver& receiver);

  // Returns when `end` has passed and everything asked for is answered; jobs due later are cancelled then. Throws what
  // stopped a lane.
  void run(WallTime end);

 private:
  using Slice = std::vector<Job*>;  // created with one request

  void pace(WallTime end);
  void lane(void (Replayer::*work)(RestClient&));
  void create_slices(RestClient& client);
  void cancel_jobs(RestClient& client);
  void create(RestClient& client, const Slice& slice);
  void cancel_key(RestClient& client, Job& job);
  void cancel_one(RestClient& client, Job& job);
  void cancel_many(RestClient& client, const Slice& jobs);
  void request_cancel(Job& job);
  void record(Job& job, CancelAnswer answer);

  std::vector<Job>& jobs_;
  const Connection connection_;
  const int lanes_;
  const CancelBy cancel_by_;
  const Receiver& receiver_;

  Channel<Slice> creates_;
  Channel<Job*> cancels_;
  std::mutex mutex_;  // guards what lanes write into jobs, and failure_
  std::exception_ptr failure_;
  std::atomic<bool> has_failed_{false};
  std::atomic<std::int64_t> created_{0}, answered_{0};
};

}  // namespace tocsin::replay
