#include "base/names.h"

#include "ports/move_store.h"
#include "tocsin/error.h"
#include "tocsin/job_status.h"

namespace tocsin {
namespace {

constexpr const char* kErrorCodes[] = {"unavailable", "in doubt", "conflict", "moved", "superseded", "invalid"};
constexpr const char* kJobStatuses[] = {"pending", "running", "done", "cancelled", "dead"};
constexpr const char* kMoveStates[] = {"copying", "switching", "switched", "aborting"};

}  // namespace

const char* to_string(ErrorCode code) { return name_of(kErrorCodes, code); }
const char* to_string(ShardMove::State state) { return name_of(kMoveStates, state); }

std::string_view to_string(JobStatus status) { return name_of(kJobStatuses, status); }
std::optional<JobStatus> job_status_from(std::string_view name) { return value_named<JobStatus>(kJobStatuses, name); }

}  // namespace tocsin
