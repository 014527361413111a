// XminWatermark: no row due before this time can be committed any more. The scanner asks for it to move the floors of
// lane cursors.
//
// A writer gets its transaction id before it reads the database's clock for its row, and its row is due at that time or
// later. A scan sees the oldest id in use, and now and then (is_mark_due()) it takes an id itself. When all ids below
// that one have ended, every row committed later is due after that scan began. The watermark is the begin of the latest
// such scan; it does not advance beyond an open writer. A claim that is released may restore an older time:
// LaneCursor::return_to() is for these rows. The scanner keeps a margin for writers that read the clock a moment before
// they have an id.
//
// Reads no clock. Thread: owner only (the scanner's).
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <limits>

#include "ports/job_store.h"

namespace tocsin {

class XminWatermark {
 public:
  // Whether the scan that is sent `now` should take an id.
  bool is_mark_due(MonoTime now) const { return now >= next_mark_; }
  // Call with every reply of a scan.
  void note(const ScanReply& reply) {
    if (reply.next_writer != std::numeric_limits<std::int64_t>::max()) {
      marks_.push_back({reply.began, reply.next_writer});
      next_mark_ = reply.asked + kInterval;
    }
    if (marks_.size() > kMostMarks) marks_.pop_front();
    while (!marks_.empty() && marks_.front().next_writer <= reply.oldest_writer) {
      reached_ = marks_.front().began;
      marks_.pop_front();
    }
  }
  // The clock was set, or another server answered: the watermark is unknown again.
  void reset() { *this = {}; }

  // The watermark, by the database's clock; WallTime::min(): not known yet.
  WallTime reached() const { return reached_; }

 private:
  struct Mark {
    WallTime began;
    std::int64_t next_writer;
  };
  static constexpr Duration kInterval = std::chrono::seconds(1);
  static constexpr std::size_t kMostMarks = 4096;  // more than an hour
  std::deque<Mark> marks_;                         // the oldest first
  WallTime reached_ = WallTime::min();
  MonoTime next_mark_{};
};

}  // namespace tocsin
