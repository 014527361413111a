#include "core/registry_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

BizType registered(TypeId id, const std::string& name, WallTime modified) {
  BizType type;
  type.type_id = id;
  type.name = name;
  type.gmt_modified = modified;
  return type;
}

// A registry whose answers a test can hold up or change.
class ScriptedRegistry final : public TypeStore {
 public:
  std::vector<BizType> types;
  int lists = 0;
  std::function<void()> after_changes;  // called once, between an answer and its arrival

  Result<std::vector<BizType>> list(Removed) override {
    ++lists;
    return types;
  }
  Result<Changes> changed_since(WallTime time) override {
    Changes changes{types, TypeCatalog(types).version};
    std::erase_if(changes.types, [time](const BizType& type) { return type.gmt_modified <= time; });
    if (const auto hook = std::exchange(after_changes, nullptr)) hook();
    return changes;
  }
  Result<std::optional<BizType>> find(const std::string&) override { return std::optional<BizType>(); }
  Result<bool> has_any(std::span<const std::string>, Removed) override { return false; }
  Result<PutReply> put(const BizType&, std::optional<WallTime>) override {
    return Error{ErrorCode::invalid, "not here", ""};
  }
  Result<RemoveReply> remove(const std::string&, Registry, std::optional<WallTime>) override {
    return RemoveReply::not_found;
  }
  Status renew(const std::string&) override { return Unit{}; }
  Result<std::optional<BizType>> set_paused(const std::string&, bool, std::optional<WallTime>) override {
    return std::optional<BizType>();
  }
  Status mirror(std::span<const BizType>) override { return Unit{}; }
};

class RegistryReaderTest : public testing::Test {
 protected:
  RegistryReaderTest() {
    registry.types = {registered(1, "a", at(1)), registered(2, "b", at(2))};
    EXPECT_TRUE(reader.refresh(registry));
  }
  static WallTime at(int second) { return WallTime(std::chrono::hours(500'000)) + std::chrono::seconds(second); }

  ScriptedRegistry registry;
  RegistryReader reader;
};

TEST_F(RegistryReaderTest, KeepsItsCopyWhileNothingChanges) {
  const auto before = reader.latest();
  ASSERT_TRUE(reader.refresh(registry));
  EXPECT_EQ(reader.latest(), before);
  EXPECT_EQ(registry.lists, 0);
}

TEST_F(RegistryReaderTest, ReadsOnlyWhatChanged) {
  const auto before = reader.latest();
  registry.types[1].paused = true;
  registry.types[1].gmt_modified = at(3);
  registry.types.push_back(registered(3, "0", at(4)));
  ASSERT_TRUE(reader.refresh(registry));
  const auto now = reader.latest();
  EXPECT_EQ(now->by_id.at(1), before->by_id.at(1));
  EXPECT_TRUE(now->find("b")->paused);
  ASSERT_EQ(now->types.size(), 3U);
  EXPECT_EQ(now->types[0]->name, "0") << "by name";
  EXPECT_EQ(registry.lists, 0);
}

TEST_F(RegistryReaderTest, FindsAChangeThatIsOlderThanWhatItHasSeen) {
  registry.types.push_back(registered(3, "c", at(0)));  // committed later than "b"
  ASSERT_TRUE(reader.refresh(registry));
  EXPECT_NE(reader.latest()->find("c"), nullptr);
}

TEST_F(RegistryReaderTest, DropsTypesThatTheRegistryHasDeleted) {
  registry.types.erase(registry.types.begin());
  ASSERT_TRUE(reader.refresh(registry));
  EXPECT_EQ(reader.latest()->find("a"), nullptr);
  EXPECT_EQ(reader.latest()->types.size(), 1U);
}

TEST_F(RegistryReaderTest, AnEarlierReadDoesNotReplaceALaterOne) {
  registry.after_changes = [this] {
    registry.types[0].paused = true;
    registry.types[0].gmt_modified = at(9);
    ASSERT_TRUE(reader.refresh(registry));
  };
  registry.types[1].gmt_modified = at(5);
  ASSERT_TRUE(reader.refresh(registry));
  EXPECT_TRUE(reader.latest()->find("a")->paused);
}

}  // namespace
}  // namespace tocsin
