#include "cli/raw_json.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace tocsin {
namespace {

// Copies the contents of the list "items" of the outermost object while the parser reports them.
class ItemWriter : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return write("null"); }
  bool boolean(bool value) override { return write(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return write(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return write(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& written) override { return write(written); }
  bool string(string_t& value) override { return write(quoted(value)); }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open('{'); }
  bool end_object() override { return close('}'); }
  bool start_array(std::size_t) override { return open('['); }
  bool end_array() override { return close(']'); }
  bool key(string_t& name) override {
    if (is_inside())
      text += (has_items_.back() ? "," : "") + quoted(name) + ":", has_items_.back() = false;
    else if (depth_ == 1)
      is_items_ = name == "items";
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  std::string text;

 private:
  static std::string quoted(const std::string& value) {
    return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  bool is_inside() const { return is_items_ && depth_ >= 2; }
  void separate() {
    if (has_items_.back()) text += ',';
    has_items_.back() = true;
  }
  bool write(const std::string& value) {
    if (!is_inside()) return true;
    separate();
    text += value;
    return true;
  }
  bool open(char bracket) {
    if (is_inside()) {
      separate();
      text += bracket;
    }
    ++depth_;
    if (is_inside()) has_items_.push_back(false);
    return true;
  }
  bool close(char bracket) {
    if (is_inside()) has_items_.pop_back();
    --depth_;
    if (is_inside()) {
      text += bracket;
      has_items_.back() = true;
    }
    return true;
  }

  int depth_ = 0;
  bool is_items_ = false;        // the member of the outermost object that is being read
  std::vector<bool> has_items_;  // by open container: something stands before what comes next
};

}  // namespace

std::string raw_items(const std::string& page) {
  ItemWriter writer;
  nlohmann::json::sax_parse(page, &writer);
  return std::move(writer.text);
}

}  // namespace tocsin
