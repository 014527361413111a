// Writes one or two English sentences on why a job has, or has not, fired (GET /v1/jobs/{id}/explain).
#pragma once

#include <string>

#include "ports/biz_type.h"

namespace tocsin {

// `type` may be null (unknown here); `hold` is why this node does not run the type right now, or "".
std::string explain_reason(const Job& job, const BizType* type, WallTime now, const std::string& hold);

}  // namespace tocsin
