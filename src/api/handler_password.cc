#include "api/handler_password.h"

#include <boost/url.hpp>
#include <nlohmann/json.hpp>

namespace tocsin {
namespace {

using nlohmann::json;

constexpr std::string_view kHidden = "***";

// The one password of a handler object, wherever it stands.
class Password {
 public:
  explicit Password(const std::string& handler_json) : handler_(json::parse(handler_json, nullptr, false)) {
    if (!handler_.is_object()) return;
    if (const auto it = handler_.find("password"); it != handler_.end() && it->is_string()) {
      field_ = "password";
      text_ = it->get<std::string>();
      // The mechanism decides who can read the password on its way.
      for (const char* part : {"kind", "bootstrap_servers", "security_protocol", "sasl_mechanism", "username"})
        destination_ += handler_.value(part, json()).dump() + '\n';
      return;
    }
    const auto it = handler_.find("url");
    if (it == handler_.end() || !it->is_string()) return;
    const auto url = boost::urls::parse_uri_reference(it->get_ref<const std::string&>());
    if (!url || !url->has_password()) return;
    field_ = "url";
    text_ = url->password();
    boost::urls::url shown(*url);
    shown.set_password(kHidden);
    destination_ = std::string(shown.buffer().substr(0, shown.buffer().size() - shown.encoded_resource().size()));
  }

  bool exists() const { return !field_.empty(); }
  const std::string& field() const { return field_; }
  const std::string& text() const { return text_; }
  const std::string& destination() const { return destination_; }

  // The handler object with another password.
  std::string with(std::string_view password) const {
    json changed = handler_;
    if (field_ == "password") {
      changed["password"] = password;
    } else {
      boost::urls::url url = *boost::urls::parse_uri_reference(changed["url"].get_ref<const std::string&>());
      url.set_password({password.data(), password.size()});
      changed["url"] = std::string(url.buffer());
    }
    return changed.dump();
  }

 private:
  json handler_;
  std::string field_;  // empty: there is no password
  std::string text_;
  std::string destination_;  // who would get it, and how
};

}  // namespace

std::string with_hidden_password(const std::string& handler_json) {
  const Password password(handler_json);
  return password.exists() ? password.with(kHidden) : handler_json;
}

std::optional<Problem> restore_password(BizType& type, const BizType* stored) {
  const Password given(type.handler_json);
  if (!given.exists() || given.text() != kHidden) return {};
  const std::string field = "handler." + given.field();
  const Password kept(stored != nullptr ? stored->handler_json : "{}");
  if (!kept.exists()) return Problem{400, "*** stands for a stored password, and none is stored.", field};
  if (kept.destination() != given.destination())
    return Problem{400, "*** keeps the stored password only for the same address, user and login; give the password.",
                   field};
  type.handler_json = given.with(kept.text());
  return {};
}

}  // namespace tocsin
