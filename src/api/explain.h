// Writes a few English sentences on why a job has, or has not, started (GET /v1/jobs/{id}/explain).
#pragma once

#include <string>

#include "ports/biz_type.h"

namespace tocsin {

// `job`: in any state. `type`: null when this node does not know it. `now`: Backend::now(). `hold`:
// Backend::hold_reason() of the job, used only if the job is due. Thread: any.
std::string explain_reason(const Job& job, const BizType* type, WallTime now, const std::string& hold);

}  // namespace tocsin
