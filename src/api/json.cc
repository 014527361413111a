#include "api/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/json_builder.h"
#include "api/json_writer.h"
#include "api/time_text.h"

namespace tocsin {
namespace {

using nlohmann::json;

std::string between(std::int64_t min, std::int64_t max) { return std::to_string(min) + " to " + std::to_string(max); }

std::optional<std::int64_t> integer_of(const json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return {};
  if (!value.is_number_integer()) return {};
  return value.get<std::int64_t>();
}

}  // namespace

JsonObject::JsonObject(const json* object, std::string path, std::optional<Problem>* problem)
    : object_(object), path_(std::move(path)), problem_(problem) {}

const json* JsonObject::find(std::string_view name) {
  asked_.push_back(name);
  if (object_ == nullptr || !ok()) return nullptr;
  const auto it = object_->find(name);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

bool JsonObject::has(std::string_view name) { return find(name) != nullptr; }

std::optional<std::string> JsonObject::string(std::string_view name, std::size_t min_bytes, std::size_t max_bytes) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    fail(name, "Must be a string.");
    return {};
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() < min_bytes || text.size() > max_bytes) {
    fail(name, "Must have " + between(static_cast<std::int64_t>(min_bytes), static_cast<std::int64_t>(max_bytes)) +
                   " bytes.");
    return {};
  }
  return text;
}

std::optional<std::string> JsonObject::string_or_number(std::string_view name, std::size_t min_bytes,
                                                        std::size_t max_bytes) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_number_unsigned()) return std::to_string(value->get<std::uint64_t>());
  if (value->is_string()) return string(name, min_bytes, max_bytes);
  fail(name, "Must be a string or an unsigned integer of 64 bits.");
  return {};
}

std::optional<std::int64_t> JsonObject::integer(std::string_view name, JsonRange range) {
  const json* value = find(name);
  if (value == nullptr) return {};
  const auto number = integer_of(*value);
  if (number && *number >= range.min && *number <= range.max) return number;
  fail(name, "Must be an integer from " + between(range.min, range.max) + ".");
  return {};
}

std::optional<double> JsonObject::number(std::string_view name, double min, double max) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_number()) {
    if (const double number = value->get<double>(); number >= min && number <= max) return number;
  }
  std::string detail = "Must be a number from ";
  JsonWriter(detail).value(min);
  detail += " to ";
  JsonWriter(detail).value(max);
  fail(name, detail + ".");
  return {};
}

std::optional<bool> JsonObject::boolean(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_boolean()) return value->get<bool>();
  fail(name, "Must be true or false.");
  return {};
}

std::optional<WallTime> JsonObject::time(std::string_view name, bool* is_rounded) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) {
    if (const auto time = time_from_text(value->get_ref<const std::string&>(), is_rounded)) return time;
  }
  fail(name, "Must be an RFC 3339 time with an offset, like \"2026-03-01T12:00:00.250Z\".");
  return {};
}

std::optional<JsonObject> JsonObject::object(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_object()) return JsonObject(value, path_of(name) + ".", problem_);
  fail(name, "Must be an object.");
  return {};
}

const json* JsonObject::array(std::string_view name, std::size_t max_items) {
  const json* value = find(name);
  if (value == nullptr) return nullptr;
  if (value->is_array() && value->size() <= max_items) return value;
  fail(name, "Must be a list of at most " + std::to_string(max_items) + " items.");
  return nullptr;
}

std::optional<std::vector<JsonObject>> JsonObject::objects(std::string_view name, std::size_t max_items,
                                                           bool may_have_others) {
  const json* list = array(name, max_items);
  if (list == nullptr) return {};
  std::vector<JsonObject> items;
  items.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    std::string item = std::string(name) + '[' + std::to_string(i) + ']';
    const bool is_one = (*list)[i].is_object();
    if (!is_one && !may_have_others) {
      fail(item, "Must be an object.");
      return {};
    }
    items.emplace_back(is_one ? &(*list)[i] : nullptr, path_of(item) + ".", problem_);
  }
  return items;
}

std::optional<std::vector<std::string>> JsonObject::strings(std::string_view name, std::size_t max_items) {
  const json* list = array(name, max_items);
  if (list == nullptr) return {};
  std::vector<std::string> items;
  items.reserve(list->size());
  for (const json& value : *list) {
    if (!value.is_string()) {
      fail(std::string(name) + '[' + std::to_string(items.size()) + ']', "Must be a string.");
      return {};
    }
    items.push_back(value.get<std::string>());
  }
  return items;
}

std::optional<std::vector<std::int64_t>> JsonObject::integers(std::string_view name, std::size_t max_items,
                                                              JsonRange range) {
  const json* list = array(name, max_items);
  if (list == nullptr) return {};
  std::vector<std::int64_t> items;
  items.reserve(list->size());
  for (const json& value : *list) {
    const auto number = integer_of(value);
    if (!number || *number < range.min || *number > range.max) {
      fail(std::string(name) + '[' + std::to_string(items.size()) + ']',
           "Must be an integer from " + between(range.min, range.max) + ".");
      return {};
    }
    items.push_back(*number);
  }
  return items;
}

std::string JsonObject::json_text(std::string_view name) {
  const json* value = find(name);
  return value == nullptr ? std::string() : value->dump();
}

std::string JsonObject::verbatim_text(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) return {};
  const auto& text = value->get_ref<const std::string&>();
  return text == "null" ? std::string() : text;
}

JsonObject& JsonObject::require(std::string_view name) {
  if (!has(name)) fail(name, "Is missing.");
  return *this;
}

void JsonObject::end() {
  if (object_ == nullptr || !ok()) return;
  for (const auto& [name, value] : object_->items()) {
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) return fail(name, "There is no such field.");
  }
}

void JsonObject::fail(std::string_view name, std::string detail, int status) {
  refuse({status, std::move(detail), path_of(name)});
}

void JsonObject::refuse(Problem problem) {
  if (ok()) *problem_ = std::move(problem);
}

JsonDocument::JsonDocument(std::string_view text, std::string_view verbatim) : value_(std::make_unique<json>()) {
  problem_ = build_json(text, verbatim, *value_);
}

JsonDocument::JsonDocument(std::string_view text, std::string_view verbatim, std::string_view list)
    : value_(std::make_unique<json>()) {
  JsonItems items{list, {}};
  problem_ = build_json(text, verbatim, *value_, &items);
  item_problems_ = std::move(items.problems);
}

const Problem* JsonDocument::item_problem(std::size_t item) const {
  const auto found = item_problems_.find(item);
  return found == item_problems_.end() ? nullptr : &found->second;
}

JsonDocument::~JsonDocument() = default;

JsonObject JsonDocument::root() {
  if (!problem_ && !value_->is_object()) problem_ = Problem{400, "The body must be a JSON object."};
  return JsonObject(problem_ ? nullptr : value_.get(), "", &problem_);
}

}  // namespace tocsin
