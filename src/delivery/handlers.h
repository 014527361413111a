// From a type to the handler of its jobs. A new kind is one file in this folder and one line in handlers.cc.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "tocsin/biz_type.h"
#include "tocsin/error.h"
#include "tocsin/handler.h"

namespace tocsin {

class CppHandlers;
class CppRunner;
class WebhookClient;

// Settings are parsed once per (type_id, handler_json), not once per job.
// Thread: any.
class HandlerRegistry {
 public:
  // REQUIRES: all three outlive the registry.
  HandlerRegistry(WebhookClient& webhooks, CppRunner& runner, const CppHandlers& functions);
  ~HandlerRegistry();

  // Empty when the handler of the type is right; otherwise Error invalid with the field at fault, e.g. `handler.kind`.
  std::optional<Error> check(const BizType& type) const;

  // Null: its jobs cannot run here (unknown kind, wrong settings, no function of that name). Valid as long as the
  // registry; follows later changes of the type.
  Handler* find(const BizType& type);

  // A node must not claim jobs of types for which this is false.
  bool can_run(const BizType& type) { return find(type) != nullptr; }

 private:
  struct Kind {
    std::function<std::optional<Error>(const BizType&)> check;
    std::function<std::shared_ptr<Handler>(const BizType&)> make;  // null: cannot run here
  };
  class TypeHandler;

  std::map<std::string, Kind> kinds_;
  std::mutex mutex_;
  std::unordered_map<TypeId, std::unique_ptr<TypeHandler>> by_type_;
};

}  // namespace tocsin
