// Reads JSON from callers strictly: what a caller misspells, repeats or overdoes is an error that names the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/problem.h"
#include "tocsin/clock.h"

namespace tocsin {

inline constexpr std::size_t kMaxJsonDepth = 32;
// A batch of 10,000 jobs has 90,000. Without a bound a body of "[],[],[]" would take twenty times its size in memory.
inline constexpr std::size_t kMaxJsonValues = 250'000;

struct JsonRange {
  std::int64_t min, max;
};

// Reads the fields of one object, by name, once each. The first mistake is kept in the problem that all readers of a
// document share; after it everything reads as absent, so a caller reads all it wants and looks at the problem once.
// Null counts as absent. Thread: owner only; valid as long as its JsonDocument.
class JsonObject {
 public:
  JsonObject(const nlohmann::json* object, std::string path, std::optional<Problem>* problem);

  bool has(std::string_view name);  // present and not null
  std::optional<std::string> string(std::string_view name, std::size_t min_bytes, std::size_t max_bytes);
  std::optional<std::int64_t> integer(std::string_view name, JsonRange range);
  std::optional<double> number(std::string_view name, double min, double max);
  std::optional<bool> boolean(std::string_view name);
  std::optional<WallTime> time(std::string_view name, bool* is_rounded = nullptr);
  std::optional<JsonObject> object(std::string_view name);
  // `may_differ`: an item that is no object is an absent one, whose is_object() is false.
  std::optional<std::vector<JsonObject>> objects(std::string_view name, std::size_t max_items, bool may_differ = false);
  bool is_object() const { return object_ != nullptr; }
  std::optional<std::vector<std::string>> strings(std::string_view name, std::size_t max_items);
  std::optional<std::vector<std::int64_t>> integers(std::string_view name, std::size_t max_items, JsonRange range);
  // A string, or an unsigned integer as its digits.
  std::optional<std::string> string_or_number(std::string_view name, std::size_t min_bytes, std::size_t max_bytes);
  // The value as JSON text, whatever it is; empty when absent or null. For the document's verbatim field use
  // verbatim_text.
  std::string json_text(std::string_view name);
  std::string verbatim_text(std::string_view name);

  // The field must be there.
  JsonObject& require(std::string_view name);
  // Every field must have been asked for by now. Call last.
  void end();

  void fail(std::string_view name, std::string detail, int status = 400);
  void refuse(Problem problem);  // the same with a problem of one's own
  std::optional<Problem> take_problem() { return std::exchange(*problem_, std::nullopt); }
  bool ok() const { return !problem_->has_value(); }
  const std::optional<Problem>& problem() const { return *problem_; }
  std::string path_of(std::string_view name) const { return path_ + std::string(name); }

 private:
  const nlohmann::json* find(std::string_view name);
  const nlohmann::json* array(std::string_view name, std::size_t max_items);

  const nlohmann::json* object_;
  std::string path_;  // "" or "jobs[3]."
  std::optional<Problem>* problem_;
  std::vector<std::string_view> asked_;
};

// A parsed body. Refused with 400: text that is not JSON in UTF-8, text after it, nesting over kMaxJsonDepth, more than
// kMaxJsonValues values, repeated keys, numbers
// that no double holds, NUL characters and lone surrogates (the database takes neither).
// Thread: owner only.
class JsonDocument {
 public:
  // The value of a field named `verbatim` is kept as its text, with each number as it was written; read it with
  // verbatim_text.
  explicit JsonDocument(std::string_view text, std::string_view verbatim = {});
  // The same, but mistakes inside the items of `list` are theirs: see item_problem().
  JsonDocument(std::string_view text, std::string_view verbatim, std::string_view list);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // The whole document, which must be an object.
  JsonObject root();
  const std::optional<Problem>& problem() const { return problem_; }
  // Null: the item was built.
  const Problem* item_problem(std::size_t item) const;

 private:
  std::unique_ptr<nlohmann::json> value_;
  std::map<std::size_t, Problem> item_problems_;
  std::optional<Problem> problem_;
};

}  // namespace tocsin
