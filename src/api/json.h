// Reads the JSON of request bodies strictly: an unknown, repeated or oversized field, or one of another type, is a
// Problem (status 400) that names the field. A handler makes a JsonDocument of the body, reads the fields from its
// root() and then checks problem() once. Nothing here throws for bad input.
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
// Objects, arrays and simple values, but for those inside the verbatim field; a batch of 10,000 jobs has 90,000.
// Without a bound a body of "[],[],[]" would take twenty times its size in memory.
inline constexpr std::size_t kMaxJsonValues = 250'000;

struct JsonRange {
  std::int64_t min, max;  // both are allowed
};

// Reads the fields of one object by name. All readers of a document share one problem, which keeps the first mistake;
// after it every field reads as absent. nullopt: the field is absent, null or a mistake. The `name` of a field that is
// read must live as long as the reader, as literals do. Thread: owner only; valid as long as its JsonDocument.
class JsonObject {
 public:
  // `path`: in front of field names in problems, "" or "jobs[3]."; `object`: null if the value is no object.
  JsonObject(const nlohmann::json* object, std::string path, std::optional<Problem>* problem);

  bool has(std::string_view name);  // present and not null
  std::optional<std::string> string(std::string_view name, std::size_t min_bytes, std::size_t max_bytes);
  std::optional<std::int64_t> integer(std::string_view name, JsonRange range);
  std::optional<double> number(std::string_view name, double min, double max);
  std::optional<bool> boolean(std::string_view name);
  std::optional<WallTime> time(std::string_view name, bool* is_rounded = nullptr);  // RFC 3339: time_text.h
  std::optional<JsonObject> object(std::string_view name);
  // `may_have_others`: an item that is no object is no mistake; its reader's is_object() is false, all fields absent.
  std::optional<std::vector<JsonObject>> objects(std::string_view name, std::size_t max_items,
                                                 bool may_have_others = false);
  bool is_object() const { return object_ != nullptr; }
  std::optional<std::vector<std::string>> strings(std::string_view name, std::size_t max_items);
  std::optional<std::vector<std::int64_t>> integers(std::string_view name, std::size_t max_items, JsonRange range);
  // A string, or an unsigned integer as its digits.
  std::optional<std::string> string_or_number(std::string_view name, std::size_t min_bytes, std::size_t max_bytes);
  // The value of any type as compact JSON text; empty when absent or null.
  std::string json_text(std::string_view name);      // REQUIRES: not the document's verbatim field
  std::string verbatim_text(std::string_view name);  // numbers as the caller wrote them. REQUIRES: the verbatim field

  // A mistake if the field is absent.
  JsonObject& require(std::string_view name);
  // A mistake if the object has a field that no function above was asked for. Call last.
  void end();

  // Records a mistake of this field, unless there is an earlier one. `detail`: a sentence for the caller.
  void fail(std::string_view name, std::string detail, int status = 400);
  void refuse(Problem problem);  // the same with a ready problem
  // Takes the mistake out, so that fields can be read again.
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

// A parsed body; keeps no view of `text`. Mistakes, all with status 400: text that is not JSON in UTF-8, text after it,
// nesting over kMaxJsonDepth, more than kMaxJsonValues values, repeated keys, numbers beyond a double or of over 400
// characters, NUL characters and lone surrogates (the database refuses both).
// Thread: owner only.
class JsonDocument {
 public:
  // The value of a field named `verbatim`, at any depth, is kept as compact JSON with its numbers unchanged; read it
  // with verbatim_text(). Numbers in it that take over 64 KiB when written without exponent are a mistake.
  explicit JsonDocument(std::string_view text, std::string_view verbatim = {});
  // The same, but a mistake inside an object or array in `list`, an array of the root, goes to item_problem() and
  // leaves the other items valid. Text that is not JSON and too many values still fail the whole text.
  JsonDocument(std::string_view text, std::string_view verbatim, std::string_view list);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // The whole document; a mistake if it is no object.
  JsonObject root();
  const std::optional<Problem>& problem() const { return problem_; }
  // The first mistake in this item (from 0) of `list`; null: none. The item's value must not be used after a mistake.
  const Problem* item_problem(std::size_t item) const;

 private:
  std::unique_ptr<nlohmann::json> value_;
  std::map<std::size_t, Problem> item_problems_;
  std::optional<Problem> problem_;
};

}  // namespace tocsin
