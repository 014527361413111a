// Reads the JSON of request bodies strictly. A field that is unknown, repeated, too large or of another type is a
// Problem (status 400) that names the field. A handler makes a JsonDocument of the body, reads the fields from its
// root(), and then checks problem() once. Bad input never throws.
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
// How many objects, arrays and simple values a body may have, not counting those inside the verbatim field. A batch of
// 10,000 jobs has 90,000. Without a bound a body of "[],[],[]" would take twenty times its size in memory.
inline constexpr std::size_t kMaxJsonValues = 250'000;

struct JsonRange {
  std::int64_t min, max;  // both are allowed
};

// Reads the fields of one object by name. nullopt: the field is absent, null or a mistake. All readers of a document
// share one problem, which keeps the first mistake; after a mistake every field reads as absent. REQUIRES: the
// JsonDocument outlives the reader, and so does the `name` of each field that is read (use literals). Thread: owner
// only.
class JsonObject {
 public:
  // `object`: nullptr if the value is not an object; then all fields are absent. `path`: put before field names in
  // problems, "" or "jobs[3].".
  JsonObject(const nlohmann::json* object, std::string path, std::optional<Problem>* problem);

  bool has(std::string_view name);  // true: present and not null
  std::optional<std::string> string(std::string_view name, std::size_t min_bytes, std::size_t max_bytes);
  std::optional<std::int64_t> integer(std::string_view name, JsonRange range);
  std::optional<double> number(std::string_view name, double min, double max);
  std::optional<bool> boolean(std::string_view name);
  std::optional<WallTime> time(std::string_view name, bool* is_rounded = nullptr);  // RFC 3339: time_text.h
  std::optional<JsonObject> object(std::string_view name);
  // `may_have_others`: an item that is not an object is not a mistake; its reader has is_object() false.
  std::optional<std::vector<JsonObject>> objects(std::string_view name, std::size_t max_items,
                                                 bool may_have_others = false);
  bool is_object() const { return object_ != nullptr; }
  std::optional<std::vector<std::string>> strings(std::string_view name, std::size_t max_items);
  std::optional<std::vector<std::int64_t>> integers(std::string_view name, std::size_t max_items, JsonRange range);
  // A string, or the digits of an unsigned integer.
  std::optional<std::string> string_or_number(std::string_view name, std::size_t min_bytes, std::size_t max_bytes);
  // The value, of any type, as compact JSON text; empty if absent or null.
  std::string json_text(std::string_view name);  // REQUIRES: not the document's verbatim field
  // As json_text(), with numbers as the caller wrote them. REQUIRES: the document's verbatim field.
  std::string verbatim_text(std::string_view name);

  // Records a mistake if the field is absent.
  JsonObject& require(std::string_view name);
  // Records a mistake if the object has a field that was not read. Call last.
  void end();

  // Records a mistake of this field, unless there is an earlier mistake. `detail`: a sentence for the caller.
  void fail(std::string_view name, std::string detail, int status = 400);
  void refuse(Problem problem);  // as fail(), with a complete problem
  // Removes and returns the mistake, so that fields can be read again.
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
  std::vector<std::string_view> asked_;  // names of the fields that were read
};

// A parsed body; does not need `text` after the constructor. Mistakes, all with status 400:
// - text that is not JSON in UTF-8, or has other text after the JSON
// - nesting over kMaxJsonDepth, more than kMaxJsonValues values
// - repeated keys; numbers outside the range of a double, or of over 400 characters
// - NUL characters and lone surrogates, which the database refuses
//
// Thread: owner only.
class JsonDocument {
 public:
  // `verbatim`: name of a field. Its value, at any depth, is kept as compact JSON with the numbers unchanged; read it
  // with verbatim_text(). Numbers in it that take over 64 KiB when written without exponent are a mistake.
  explicit JsonDocument(std::string_view text, std::string_view verbatim = {});
  // As above, for a batch. `list`: name of an array of the root. A mistake in one of its items goes to item_problem()
  // and leaves the other items valid. Text that is not JSON, and too many values, still fail the whole text.
  JsonDocument(std::string_view text, std::string_view verbatim, std::string_view list);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // The outermost object; a value that is not an object is a mistake.
  JsonObject root();
  const std::optional<Problem>& problem() const { return problem_; }
  // The first mistake in the item of `list` with this index (from 0); nullptr: none. After a mistake the item's value
  // must not be used.
  const Problem* item_problem(std::size_t item) const;

 private:
  std::unique_ptr<nlohmann::json> value_;
  std::map<std::size_t, Problem> item_problems_;
  std::optional<Problem> problem_;
};

}  // namespace tocsin
