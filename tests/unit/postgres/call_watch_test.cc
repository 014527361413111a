#include "postgres/call_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace tocsin {
namespace {

class Wire {
 public:
  Wire() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~Wire() {
    for (int end : ends_) close(end);
  }
  int ours() const { return ends_[0]; }
  int theirs() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{};
};

TEST(WatchedCall, EndsWithoutAnAnswer) {
  Wire silent;
  WatchedCall call(silent.ours(), std::chrono::milliseconds(10));
  char byte;
  EXPECT_EQ(read(silent.ours(), &byte, 1), 0) << "else this test would never end";
}

TEST(WatchedCall, LeavesTheConnectionAloneThatWasAnsweredInTime) {
  Wire answered, silent, patient;
  { WatchedCall call(answered.ours(), std::chrono::milliseconds(0)); }
  WatchedCall longer(patient.ours(), std::chrono::hours(1));
  WatchedCall call(silent.ours(), std::chrono::milliseconds(0));
  char byte = 'x';
  EXPECT_EQ(read(silent.ours(), &byte, 1), 0) << "the watch has looked";
  for (const Wire* wire : {&answered, &patient}) {
    EXPECT_EQ(write(wire->theirs(), "a", 1), 1);
    EXPECT_EQ(read(wire->ours(), &byte, 1), 1);
  }
}

}  // namespace
}  // namespace tocsin
