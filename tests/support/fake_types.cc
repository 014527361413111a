// FakeDatabase: the type registry.
#include <algorithm>

#include "support/fake_database.h"

namespace tocsin {
namespace {

void renew(BizType& type, WallTime now) { type.gmt_modified = std::max(now, type.gmt_modified + Duration(1)); }

}  // namespace

std::vector<BizType> FakeDatabase::list_types(TypeStore::Removed removed) const {
  std::vector<BizType> types;
  for (const auto& [name, type] : types_)
    if (!type.is_removed || removed == TypeStore::Removed::included) types.push_back(type);
  return types;
}

bool FakeDatabase::has_any_type(const std::vector<std::string>& names, TypeStore::Removed removed) const {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const auto it = types_.find(name);
    return it != types_.end() && (!it->second.is_removed || removed == TypeStore::Removed::included);
  });
}

bool FakeDatabase::is_removed(TypeId type) const {
  return std::ranges::any_of(types_,
                             [&](const auto& each) { return each.second.type_id == type && each.second.is_removed; });
}

bool FakeDatabase::has_version(const std::string& type, WallTime version) const {
  const auto it = types_.find(type);
  return it != types_.end() && !it->second.is_removed && it->second.gmt_modified == version;
}

TypeStore::PutReply FakeDatabase::put_type(const BizType& type, WallTime now) {
  const auto [it, has_no_row] = types_.try_emplace(type.name);
  const bool is_new = has_no_row || it->second.is_removed;
  BizType stored = type;
  stored.type_id = has_no_row ? ++last_type_ : it->second.type_id;
  stored.paused = is_new ? false : it->second.paused;
  stored.paused_until = is_new ? std::nullopt : it->second.paused_until;
  stored.gmt_create = is_new ? now : it->second.gmt_create;
  stored.gmt_modified = std::max(now, it->second.gmt_modified + Duration(1));
  it->second = stored;
  return {stored, is_new};
}

TypeStore::RemoveReply FakeDatabase::remove_type(const std::string& name, TypeStore::Registry registry, WallTime now) {
  const auto it = types_.find(name);
  if (it == types_.end() || it->second.is_removed) return TypeStore::RemoveReply::not_found;
  const TypeId id = it->second.type_id;
  if (std::ranges::any_of(live_, [&](const auto& entry) { return entry.second.job.type_id == id; }))
    return TypeStore::RemoveReply::has_live_jobs;
  if (held_types_.contains(id)) return TypeStore::RemoveReply::jobs_may_come;
  it->second.is_removed = true;
  it->second.paused = false;
  if (registry == TypeStore::Registry::original) renew(it->second, now);
  return TypeStore::RemoveReply::removed;
}

void FakeDatabase::renew_type(const std::string& name, WallTime now) {
  if (const auto it = types_.find(name); it != types_.end() && !it->second.is_removed) renew(it->second, now);
}

std::optional<BizType> FakeDatabase::pause_type(const std::string& name, bool paused, std::optional<WallTime> until,
                                                WallTime now) {
  const auto it = types_.find(name);
  if (it == types_.end() || it->second.is_removed) return std::nullopt;
  it->second.paused = paused;
  it->second.paused_until = paused ? until : std::nullopt;
  renew(it->second, now);
  return it->second;
}

void FakeDatabase::mirror_types(const std::vector<BizType>& types) {
  for (const BizType& type : types) {
    const auto [it, is_new] = types_.try_emplace(type.name, type);
    if (!is_new && it->second.gmt_modified < type.gmt_modified) it->second = type;
    last_type_ = std::max(last_type_, type.type_id);
  }
}

}  // namespace tocsin
