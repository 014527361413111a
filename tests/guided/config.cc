// Guided fuzzing of the configuration: the input is the file, and after a separator the value of the variables.
#include "fuzz/config_check.h"
#include "guided/target.h"

namespace tocsin {

GuidedTarget guided_target() {
  auto seeds = kConfigFiles;
  for (const std::string& variable : kConfigVariables) seeds.push_back(kConfigFiles.front() + kBetweenTexts + variable);
  return {seeds, kConfigSpice, [](const std::string& input) {
            const auto [file, variable] = split_input(input);
            check_config(file, variable, "input");
          }};
}

}  // namespace tocsin
