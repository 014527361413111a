// Guided fuzzing of messages of entry topics: the input is the body, and after separators the id and the key.
#include "fuzz/entry_check.h"
#include "guided/target.h"

namespace tocsin {

GuidedTarget guided_target() {
  auto spice = kMessageSpice;
  spice.push_back(std::string(1, kBetweenTexts));
  return {kMessages, spice, [](const std::string& input) {
            EntryMessage message;
            std::string names;
            std::tie(message.body, names) = split_input(input);
            std::tie(message.id, message.key) = split_input(names);
            check_entry_message([&](WallTime) { return message; }, "input");
          }};
}

}  // namespace tocsin
