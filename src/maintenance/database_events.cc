#include "maintenance/database_events.h"

namespace tocsin {

void DatabaseEvents::note_failure(std::string_view stage, const Error& error) {
  metrics_.failed(stage, {error.code, prefix_ + error.message, error.field});
}

void DatabaseEvents::failed(std::string_view stage, const Error& error) {
  note_failure(stage, error);
  if (error.code == ErrorCode::unavailable && watch_.wants_check()) check_();
}

}  // namespace tocsin
