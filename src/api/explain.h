// One English sentence or two on why a job has, or has not, fired.
#pragma once

#include <string>

#include "tocsin/biz_type.h"

namespace tocsin {

// `type` may be null (unknown here); `hold` is why this node does not run the type right now, or "".
std::string explain_reason(const Job& job, const BizType* type, WallTime now, const std::string& hold);

}  // namespace tocsin
