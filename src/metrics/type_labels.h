// TypeLabels: bounds how many values the label biz_type has in the families of metrics that share one object of this
// class. Without a bound each type would add a series to every scrape of every node. Used by Metrics, Permits and
// node/gauges.cc.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace tocsin {

// Thread: owner only (its user serialises the calls).
class TypeLabels {
 public:
  static constexpr std::size_t kMost = 200;  // types with a label of their own; all further ones share kOther
  static constexpr const char* kOther = "other";

  // Returns `type` if it is one of the first kMost different types asked for, otherwise kOther. A type that is itself
  // named "other" shares that value.
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
