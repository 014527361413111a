#include "pipeline/membership_state.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

TEST(MembershipState, ALeaseHasNoEndUntilOneIsSet) {
  MembershipState state(true);
  EXPECT_FALSE(state.is_lease_lost(MonoTime(24h)));
  state.trust_until(MonoTime(2s));
  EXPECT_FALSE(state.is_lease_lost(MonoTime(1999ms)));
  EXPECT_TRUE(state.is_lease_lost(MonoTime(2s)));
}

TEST(MembershipState, AnExtensionReportsOnceThatAStageHasStopped) {
  MembershipState state(true);
  EXPECT_FALSE(state.trust_until(MonoTime(2s)));
  EXPECT_FALSE(state.stops_until_woken(MonoTime(1s)));
  EXPECT_FALSE(state.trust_until(MonoTime(2s))) << "no stage has stopped";
  EXPECT_TRUE(state.stops_until_woken(MonoTime(3s)));
  EXPECT_TRUE(state.trust_until(MonoTime(4s)));
  EXPECT_FALSE(state.trust_until(MonoTime(5s)));
}

TEST(MembershipState, AStageThatOnlyReadsTheLeaseIsNotWoken) {
  MembershipState state(true);
  state.trust_until(MonoTime(2s));
  EXPECT_TRUE(state.is_lease_lost(MonoTime(3s)));
  EXPECT_FALSE(state.trust_until(MonoTime(4s)));
}

TEST(MembershipState, AnEngineThatNeverStopsStillReportsTheLostLease) {
  MembershipState state(false);
  state.trust_until(MonoTime(2s));
  EXPECT_FALSE(state.is_stopped(MonoTime(3s)));
  EXPECT_FALSE(state.stops_until_woken(MonoTime(3s)));
  EXPECT_TRUE(state.is_lease_lost(MonoTime(3s)));
  EXPECT_FALSE(state.trust_until(MonoTime(4s))) << "no stage has stopped";
}

TEST(MembershipState, ANewMemberIsNeitherSoleNorListening) {
  MembershipState state(true);
  EXPECT_FALSE(state.is_sole_member());
  EXPECT_FALSE(state.is_listening());
  EXPECT_FALSE(state.is_draining());
}

TEST(MembershipState, ASetterReturnsThePreviousValue) {
  MembershipState state(true);
  EXPECT_FALSE(state.set_sole_member(true));
  EXPECT_TRUE(state.set_sole_member(false));
  EXPECT_FALSE(state.set_listening(true));
  EXPECT_TRUE(state.is_listening());
  EXPECT_FALSE(state.is_sole_member());
  state.begin_drain();
  EXPECT_TRUE(state.is_draining());
}

}  // namespace
}  // namespace tocsin
