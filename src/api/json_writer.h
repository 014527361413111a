// Writes JSON text, one value after the other, straight into a string.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin {

// Appends `text` to `out`, quoted and escaped. Bytes that are not UTF-8 become U+FFFD, so the result is always JSON.
void append_json_string(std::string& out, std::string_view text);

// Appends values to a string, with the commas between them. The caller must balance begin and end, and give a key to
// every value of an object. Thread: owner only.
class JsonWriter {
 public:
  // REQUIRES: `out` outlives the writer.
  explicit JsonWriter(std::string& out) : out_(&out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool yes) { return raw(yes ? "true" : "false"); }
  JsonWriter& value(double number);  // writes null if the number is not finite
  template <std::integral T>
  JsonWriter& value(T number) {
    return raw(std::to_string(number));
  }
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  JsonWriter& null() { return raw("null"); }
  JsonWriter& raw(std::string_view json);      // `json`: one whole value
  JsonWriter& members(std::string_view json);  // `json`: one or more "key":value pairs without the braces
  JsonWriter& raw_or_null(std::string_view json) { return json.empty() ? null() : raw(json); }

  template <class T>
  JsonWriter& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void comma();

  std::string* out_;
  bool needs_comma_ = false;
};

}  // namespace tocsin
