// EngineConfig: the settings of one engine (the stages that fire the jobs of one database), made by the node
// (node/node_parts.cc). A lane is the jobs of one type in one shard. Plain values; EngineShared keeps a const copy.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "admission/flow_control.h"
#include "ports/job_store.h"

namespace tocsin {

struct EngineConfig {
  std::string node = "node";                              // name of this node: kept with claims and errors
  Duration lookahead = std::chrono::seconds(5);           // how far ahead of now scans read
  Duration scan_interval = std::chrono::seconds(1);       // time between two reads of a lane from its low-water mark
  Duration sweep_interval = std::chrono::seconds(30);     // between two from its floor, before which no commit can come
  Duration audit_interval = std::chrono::minutes(5);      // between two from the beginning of time
  Duration late_commit_margin = std::chrono::seconds(5);  // how far the low-water mark stays behind now
  // How long the previous owner of a gained shard may still write there, as a rule: until its membership lease ends and
  // its last statement is answered. Twice the heartbeat time-out. The audit finds what that owner writes later.
  Duration handover_time = std::chrono::seconds(10);
  Duration tick = std::chrono::microseconds(500);          // resolution of the time wheel
  Duration retry_pause = std::chrono::milliseconds(200);   // after a store error
  Duration lease_margin = std::chrono::milliseconds(100);  // a lease is trusted until this long before its end
  // True: a claim does not wait until its commit is on disk, so attempts start one flush sooner. Claims of pull types,
  // and a claim after a slow one, wait in any case. The price: if the database crashes and is back within start_window,
  // a handler may start a job whose cancel was acknowledged.
  bool async_claims = false;
  // Longest time from a claim to the start of the handler, unless the claim before was slow. Shorter than a failover,
  // after which a standby may lack the claim.
  Duration start_window = std::chrono::milliseconds(500);
  std::size_t capacity = 100'000;     // candidates in memory, of this engine
  std::size_t window_page = 512;      // rows of one lane per window read
  std::size_t overdue_page = 64;      // rows of one lane per overdue read
  std::size_t many_rows = 512;        // after a cycle that read this many rows, a scan reads a quarter of the shards
  std::size_t claim_batch = 500;      // jobs per claim statement; with more, the last job waits longer than that saves
  std::size_t finish_batch = 500;     // outcomes per statement, or jobs to make dead
  std::size_t hot_above = 64;         // a type with more due jobs in memory is hot; claiming this many takes about 1 ms
  std::size_t max_running = 4096;     // claimed jobs of this engine, of all types; not BizType::max_running
  std::size_t max_polls = 3000;       // waiting consumers; fewer than the connections that the HTTP server takes
  std::shared_ptr<FlowControl> flow;  // shared by the engines of a node; null: the engine makes one
  // Whether scanning and claiming stop while the membership lease is lost. False for databases other than the control
  // database: if this node cannot reach the control database, other nodes scan its shards too, and the claims decide.
  bool stops_without_lease = true;
  // Called with a job that this node has made due again in a shard that another node may own; hints the job to that
  // node. Also hints it to this engine if the engine continues without the lease. Empty: the owner's scan finds the
  // job.
  std::function<void(const Candidate&)> tell_owner;

  // Jobs due within this time are hinted. It is a second longer than the lookahead, because a hint may reach further
  // than the last scan did. tocsin.hint_window() in SQL returns the same time, for the default lookahead.
  Duration hint_window() const { return lookahead + std::chrono::seconds(1); }
};

}  // namespace tocsin
