// Writes a few English sentences on why a job has, or has not, started. Used by the handler of GET
// /v1/jobs/{id}/explain.
#pragma once

#include <string>

#include "ports/biz_type.h"

namespace tocsin {

// `job`: in any state. `type`: nullptr if this node does not know the type. `now`: Backend::now(). `hold`:
// Backend::hold_reason() of the job; ignored if the job is not due. Thread: any.
std::string explain_reason(const Job& job, const BizType* type, WallTime now, const std::string& hold);

}  // namespace tocsin
