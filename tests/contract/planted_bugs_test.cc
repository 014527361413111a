// The contract suite notices each mistake that can be planted in the database in memory: this program runs itself.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/fake_bugs.h"
#include "support/process.h"

namespace tocsin {
namespace {

TEST(PlantedBugs, OfTheDatabaseInMemoryFailTheContract) {
  const std::string own_program = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> names = {"function_ignores_token", "function_keeps_effects"};
  for (const FakeBugName& bug : kFakeBugs) names.emplace_back(bug.name);
  const auto run_with = [&](const std::string& name) {
    return run({"/usr/bin/env", "TOCSIN_PLANT=" + name, own_program, "--gtest_filter=Fake*", "--gtest_fail_fast"});
  };
  for (const std::string& name : names) EXPECT_NE(run_with(name).exit_code, 0) << name << " went unnoticed";
  // Nothing else has made them fail.
  const Ran honest = run_with("none");
  EXPECT_EQ(honest.exit_code, 0) << honest.out;
}

}  // namespace
}  // namespace tocsin
