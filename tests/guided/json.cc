// Guided fuzzing of the reader of JSON: the input is the text.
#include "fuzz/json_check.h"
#include "guided/target.h"

namespace tocsin {

GuidedTarget guided_target() {
  return {kJsonSeeds, kJsonSpice, [](const std::string& text) { check_json(text, "input"); }};
}

}  // namespace tocsin
