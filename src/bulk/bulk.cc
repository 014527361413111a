#include "bulk/bulk.h"

#include <algorithm>

namespace tocsin {
namespace {

template <class Value, std::size_t n>
std::optional<Value> value_named(const std::array<Value, n>& values, std::string_view name) {
  const auto it = std::ranges::find_if(values, [&](Value value) { return to_string(value) == name; });
  return it == values.end() ? std::nullopt : std::optional(*it);
}

}  // namespace

std::string_view to_string(BulkAction action) {
  switch (action) {
    case BulkAction::cancel:
      return "cancel";
    case BulkAction::reschedule:
      return "reschedule";
    case BulkAction::run:
      return "run";
    case BulkAction::retry:
      return "retry";
  }
  return "?";
}

std::string_view to_string(BulkState state) {
  switch (state) {
    case BulkState::running:
      return "running";
    case BulkState::done:
      return "done";
    case BulkState::stopped:
      return "stopped";
    case BulkState::failed:
      return "failed";
  }
  return "?";
}

std::optional<BulkAction> bulk_action_from(std::string_view name) { return value_named(kBulkActions, name); }
std::optional<BulkState> bulk_state_from(std::string_view name) { return value_named(kBulkStates, name); }

JobStatus status_changed_by(BulkAction action) {
  return action == BulkAction::retry ? JobStatus::dead : JobStatus::pending;
}

}  // namespace tocsin
