// TypeLabels: limits how many values the label biz_type has in the families of metrics that share this object. Without
// a bound, each type would add a series to every scrape of every node. A type named `other` shares that value.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace tocsin {

// Thread: owner only.
class TypeLabels {
 public:
  static constexpr std::size_t kMost = 200;  // types with a label of their own; the others share kOther
  static constexpr const char* kOther = "other";

  // `type` if it is one of the first kMost that were asked for, else kOther.
  std::string of(const std::string& type) {
    if (named_.contains(type)) return type;
    if (named_.size() >= kMost) return kOther;
    named_.insert(type);
    return type;
  }

 private:
  std::set<std::string> named_;
};

}  // namespace tocsin
