// EngineConfig: the settings of one engine, made by the node for each of its databases.
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
  Duration scan_interval = std::chrono::seconds(1);       // a lane is read this often, from its low-water mark
  Duration sweep_interval = std::chrono::seconds(30);     // a lane is read this often from its floor (LaneCursor)
  Duration audit_interval = std::chrono::minutes(5);      // a lane is read this often from the beginning of time
  Duration late_commit_margin = std::chrono::seconds(5);  // how far the low-water mark stays behind now
  // How long the previous owner of a gained shard may still write there, as a rule: until its membership lease ends,
  // and then a statement. Twice the heartbeat time-out. What it writes later is found by the audit.
  Duration handover_time = std::chrono::seconds(10);
  Duration tick = std::chrono::microseconds(500);          // of the time wheel
  Duration retry_pause = std::chrono::milliseconds(200);   // after a store error
  Duration lease_margin = std::chrono::milliseconds(100);  // a lease is trusted until this long before its end
  // True: claims do not wait until their commit is on disk (pull types and claims after a slow one still do), so
  // attempts start one flush sooner. The price: if the database crashes and is back within start_window, a handler may
  // start a job whose cancel was acknowledged.
  bool async_claims = false;
  // Longest time from the claim to the start of the handler. Less than a failover takes, because a standby may lack the
  // claim.
  Duration start_window = std::chrono::milliseconds(500);
  std::size_t capacity = 100'000;  // candidates in memory, of this engine
  std::size_t window_page = 512;   // rows of one lane per window read
  std::size_t overdue_page = 64;   // rows of one lane per overdue read
  std::size_t many_rows = 512;     // after a cycle that read so many rows, a scan reads a quarter of the shards
  std::size_t claim_batch = 500;   // jobs per claim statement; more makes the last of a batch wait longer than it saves
  std::size_t finish_batch = 500;  // outcomes, or jobs to make dead, per statement
  std::size_t hot_above = 64;  // a type with more jobs due at once is hot; a statement for that many takes about 1 ms
  std::size_t max_running = 4096;     // claimed jobs of this engine, of all types; not BizType::max_running
  std::size_t max_polls = 3000;       // waiting consumers; fewer than the connections that the HTTP server takes
  std::shared_ptr<FlowControl> flow;  // shared by the engines of a node; null: one of its own
  // False: scanning and claiming continue without the membership lease. For databases other than the control database:
  // if only this node cannot reach that one, other nodes scan its shards too, and the claims decide.
  bool stops_without_lease = true;
  // Called with a job that this node has made due again in a shard that another node may own, to hint it to that node
  // (and to this engine, if it continues without the lease). Empty: the owner's scan finds it.
  std::function<void(const Candidate&)> tell_owner;

  // Jobs due within this are hinted: a second more than the lookahead, because a hint may reach further than the last
  // scan did. tocsin.hint_window() in SQL is the same time, for the default lookahead.
  Duration hint_window() const { return lookahead + std::chrono::seconds(1); }
};

}  // namespace tocsin
