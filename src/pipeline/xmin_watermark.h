// XminWatermark: a time of the database's clock; no row that is due before it can be committed any more. The Scanner
// owns it, and asks for it to move the floors of lane cursors (LaneCursor).
//
// A writer gets its transaction id before it reads the database's clock for its row, and its row is due at that time or
// later. Each scan reports the oldest id in use. Now and then (is_mark_due()) a scan also takes an id itself: a mark.
// Once all ids below a mark have ended, every row that is committed later is due after the begin of the scan that set
// the mark. The watermark is the begin of the latest such scan. It does not pass an open writer.
//
// Two exceptions: a claim that is released may restore an older time (LaneCursor::return_to() is for such rows), and a
// writer may read the clock a moment before it has an id (the scanner keeps a margin for that).
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
  // Whether the scan that is sent at `now` should set a mark (WriterMark::set).
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
  // Makes the watermark unknown again, because the clock was set or another server answered.
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
