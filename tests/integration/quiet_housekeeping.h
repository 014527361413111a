// quiet_callbacks(): callbacks for Housekeeping without a node. An Error that it reports fails the test.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "maintenance/housekeeping.h"

namespace tocsin {

inline Housekeeping::Callbacks quiet_callbacks() {
  Housekeeping::Callbacks callbacks;
  callbacks.check = [] { return Status(Unit{}); };
  callbacks.checked = [] {};
  callbacks.reload_types = [](TypeStore&) { return Status(Unit{}); };
  callbacks.answered = [] {};
  callbacks.failed = [](const Error& error) { ADD_FAILURE() << error.message; };
  callbacks.take_histograms = [] { return std::vector<ReportHistogram>(); };
  callbacks.counted = [](const std::vector<TypeState>&) {};
  return callbacks;
}

}  // namespace tocsin
