// Turns the events of nlohmann's parser into a value, refusing on the way what strict JSON does not allow.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/json_writer.h"

namespace tocsin {

// The value of a field named `verbatim` is not taken apart but kept as text (a string in the built value), so that the
// caller's numbers stay as written. Implements nlohmann's SAX interface. Every function answers whether parsing should
// go on.
class JsonBuilder {
 public:
  using json = nlohmann::json;

  JsonBuilder(json& root, std::optional<Problem>& problem, std::string_view verbatim)
      : root_(root), problem_(problem), verbatim_name_(verbatim) {}

  bool null() { return is_verbatim() ? wrote(text_.null()) : add(nullptr); }
  bool boolean(bool value) { return is_verbatim() ? wrote(text_.value(value)) : add(value); }
  bool number_integer(json::number_integer_t value) { return is_verbatim() ? wrote(text_.value(value)) : add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return is_verbatim() ? wrote(text_.value(value)) : add(value); }
  bool number_float(double value, const std::string& written);
  bool string(std::string& value);
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return start(json::value_t::object); }
  bool start_array(std::size_t) { return start(json::value_t::array); }
  bool end_object() { return end(true); }
  bool end_array() { return end(false); }
  bool key(std::string& name);
  bool parse_error(std::size_t position, const std::string& last_token, const json::exception& error);

 private:
  struct Level {
    json* container = nullptr;      // null inside verbatim text
    json* slot = nullptr;           // objects: where the value of the current key goes
    std::string key;                // objects: the current key
    std::vector<std::string> keys;  // objects inside verbatim text: all keys so far
  };

  bool is_verbatim() const;
  bool add(json value);
  bool wrote(JsonWriter&);
  bool start(json::value_t kind);
  bool end(bool is_object);
  bool fail(std::string detail);
  std::string path() const;

  json& root_;
  std::optional<Problem>& problem_;
  std::vector<Level> levels_;
  const std::string_view verbatim_name_;
  std::string verbatim_;
  JsonWriter text_{verbatim_};
  std::size_t verbatim_depth_ = 0;
  std::size_t expansion_ = 0;  // of the numbers in the verbatim text so far
  std::size_t values_ = 0;
};

}  // namespace tocsin
