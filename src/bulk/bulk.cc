#include "bulk/bulk.h"

#include "base/names.h"

namespace tocsin {
namespace {

constexpr const char* kBulkActions[] = {"cancel", "reschedule", "run", "retry"};
constexpr const char* kBulkStates[] = {"running", "done", "stopped", "failed"};

}  // namespace

std::string_view to_string(BulkAction action) { return name_of(kBulkActions, action); }
std::string_view to_string(BulkState state) { return name_of(kBulkStates, state); }
std::optional<BulkAction> bulk_action_from(std::string_view name) {
  return value_named<BulkAction>(kBulkActions, name);
}
std::optional<BulkState> bulk_state_from(std::string_view name) { return value_named<BulkState>(kBulkStates, name); }

JobStatus status_changed_by(BulkAction action) {
  return action == BulkAction::retry ? JobStatus::dead : JobStatus::pending;
}

}  // namespace tocsin
