// The figures of measurements that time every verb.
#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"

namespace tocsin::bench {

// A state of the history, and a verb that a lone caller calls in it: `name` as in the figure key_history.STATE_VERB.
struct Named {
  const char* name;
  const char* title;
};
const std::vector<Named>& past_states();
const std::vector<Named>& past_verbs();

Section verbs_section();
Section past_section();
Section leases_section();

}  // namespace tocsin::bench
