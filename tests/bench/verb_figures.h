// The figures of the measurements that time each verb (create, find, cancel and so on).
#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"

namespace tocsin::bench {

// A state of the history, or a verb called in that state. `name`: part of the figure key_history.STATE_VERB.
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
