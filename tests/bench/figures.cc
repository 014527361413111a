#include "bench/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tocsin::bench {
namespace {

using Rounds = Figure::Rounds;

Section drain_section(const std::vector<int>& claimers) {
  Section section{"drain", "Drain: all due at one instant", {}};
  for (const int n : claimers) {
    const std::string count = std::to_string(n), noun = n == 1 ? " claimer" : " claimers";
    section.figures.push_back(
        {"drain.claimers_" + count, "fired, " + count + noun, "jobs/s", "", "floor.fire_" + std::to_string(n)});
  }
  return section;
}

Section floor_section(const std::vector<int>& claimers) {
  Section section{"floors",
                  "Floors: PostgreSQL alone, from this program",
                  {{"floor.copy", "COPY into one table of that shape", "rows/s"},
                   {"floor.insert_500", "unnest insert of 500, 4 connections", "rows/s"},
                   {"floor.update_500", "update of 500 by id, 1 connection", "rows/s"},
                   {"floor.commit_32", "1-row inserts, 32 connections", "commits/s"},
                   {"floor.commit_1", "1-row inserts, 1 connection", "commits/s"},
                   {"floor.commit_ms", "one such commit", "ms"},
                   {"floor.create_500", "Tocsin's create of 500, 4 connections", "jobs/s"},
                   {"floor.create_10000", "Tocsin's create of 10,000, 4 connections", "jobs/s"},
                   {"floor.cancel_32", "Tocsin's cancel of 32, 2 connections", "jobs/s"},
                   {"floor.claimed", "Tocsin's claim and finish of 500, 2 conn.", "jobs/s"},
                   {"floor.fire_due", "Tocsin's backlog fire of 500, 2 conn.", "jobs/s"}}};
  for (const int n : claimers)
    section.figures.push_back(
        {"floor.fire_" + std::to_string(n), "Tocsin's fire of 500 by id, " + std::to_string(n) + " conn.", "jobs/s"});
  return section;
}

}  // namespace

std::vector<Section> catalog(const std::vector<int>& claimers) {
  return {{"lateness",
           "Lateness: due at random ms over 30 s",
           {{"lateness.min", "least", "ms", ">= 0", "", Rounds::least},
            {"lateness.p50", "p50", "ms"},
            {"lateness.p90", "p90", "ms"},
            {"lateness.p99", "p99", "ms", "a few ms"},
            {"lateness.p99_9", "p99.9", "ms"},
            {"lateness.max", "most, of all rounds", "ms", "", "", Rounds::most},
            {"lateness.early", "fired early, of all rounds", "jobs", "0", "", Rounds::sum}}},
          drain_section(claimers),
          {"single",
           "Requests over 32 connections",
           {{"single.create", "creates, each 201 and durable", "jobs/s", "", "floor.commit_32"},
            {"single.create_p50", "  p50 of the answer", "ms"},
            {"single.create_p99", "  p99 of the answer", "ms"},
            {"single.healthz", "GET /healthz: the client's ceiling", "req/s"}}},
          {"cancel",
           "Cancels by id over 32 connections",
           {{"cancel.rate", "cancels, each 200 and durable", "jobs/s", "", "floor.commit_32"},
            {"cancel.p99", "  p99 of the answer", "ms"},
            {"cancel.refused", "  not answered 200, of all rounds", "jobs", "0", "", Rounds::sum}}},
          {"batch",
           "Batch creates, 4 requests in flight",
           {{"batch.create_500", "batches of 500", "jobs/s", "", "floor.create_500"},
            {"batch.create_10000", "batches of 10,000", "jobs/s", "", "floor.create_10000"}}},
          {"memory",
           "Backlog: a million overdue, then resumed",
           {{"memory.start", "resident memory of the node, idle", "MB"},
            {"memory.peak", "  at its peak, most of all rounds", "MB", "<= 150", "", Rounds::most},
            {"memory.after", "  when all have fired", "MB"},
            {"memory.drain", "fired", "jobs/s", "", "floor.fire_due"}}},
          {"webhook",
           "Webhooks to a receiver in this program",
           {{"webhook.rate", "delivered, due over 2 s", "jobs/s"},
            {"webhook.p50", "  p50 of the lateness there", "ms"},
            {"webhook.p99", "  p99 of the lateness there", "ms"},
            {"webhook.burst", "delivered, due at one instant", "jobs/s", "", "floor.claimed"}}},
          {"life",
           "A whole life, per job: batches of 500",
           {{"life.node", "created and fired by the node", "us", "", "life.hand"},
            {"life.hand", "its statements by hand", "us"},
            {"life.one_backend", "  on one connection", "us", "<= 50"},
            {"life.database", "time in the node's statements, waits and all", "us"},
            {"life.statements", "statements per 1,000 jobs", ""},
            {"life.transactions", "transactions per 1,000 jobs", ""},
            {"life.wal", "WAL", "bytes"}}},
          floor_section(claimers)};
}

std::optional<double> Results::of(const Figure& figure) const {
  const auto found = values_.find(figure.name);
  if (found == values_.end()) return std::nullopt;
  std::vector<double> values = found->second;
  std::sort(values.begin(), values.end());
  switch (figure.rounds) {
    case Rounds::least:
      return values.front();
    case Rounds::most:
      return values.back();
    case Rounds::sum:
      return std::accumulate(values.begin(), values.end(), 0.0);
    case Rounds::median:
      break;
  }
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted.empty() ? 0
                        : sorted[static_cast<std::size_t>(std::llround(q * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace tocsin::bench
