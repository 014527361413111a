// UnreportedReleases: tells the scanner whether claims may have been released in the database of which the finisher has
// not told it yet (EngineShared::returned). Such rows are due at their old time, which may lie before the floor of
// their lane. An audit that finds one does not count it: the report would have made the scanner read it. Owned by
// EngineShared. Thread: the scanner's for reported() and is_none_beyond(), the finisher's for the others.
#pragma once

#include <atomic>
#include <cstdint>

namespace tocsin {

class UnreportedReleases {
 public:
  // A write that gives rows their old time is about to be sent.
  void note_write() { ++written_; }
  // All rows of such writes are in EngineShared::returned, and none of these writes is in doubt.
  void note_reported() { reported_ = written_.load(); }
  bool has_any() const { return reported_ != written_; }

  // The number of writes whose rows were reported. The scanner asks before it takes the reports.
  std::uint64_t reported() const { return reported_; }
  // Whether there was no other write than these `reported` ones until now.
  bool is_none_beyond(std::uint64_t reported) const { return written_ == reported; }

 private:
  std::atomic<std::uint64_t> written_{0}, reported_{0};
};

}  // namespace tocsin
