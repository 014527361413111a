#include "postgres/last_server_error.h"

#include <libpq-events.h>
#include <libpq-fe.h>

#include <charconv>
#include <cstdio>
#include <new>
#include <string_view>

namespace tocsin {
namespace {

// Called through libpq's C code. The results of a connection may outlive it and its LastServerError: their other events
// must not use `object`.
int note_error(PGEventId event, void* info, void* object) noexcept {
  if (event != PGEVT_RESULTCREATE) return 1;
  const PGresult* result = static_cast<const PGEventResultCreate*>(info)->result;
  if (PQresultStatus(result) == PGRES_FATAL_ERROR) static_cast<LastServerError*>(object)->note(result);
  return 1;
}

// Called through libpq's C code. The function's name tells the warning in every language; its SQLSTATE is that of all
// warnings. libpq's own notices, of results that outlive `object`, name no function.
void note_warning(void* object, const PGresult* result) {
  const char* function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
  if (function && std::string_view(function) == "SyncRepWaitForLSN")
    static_cast<LastServerError*>(object)->note_cancelled_wait();
  std::fputs(PQresultErrorMessage(result), stderr);  // as libpq does
}

}  // namespace

void LastServerError::watch(PGconn* connection) {
  PQsetNoticeReceiver(connection, note_warning, this);
  if (!PQregisterEventProc(connection, note_error, "tocsin", this)) throw std::bad_alloc();
}

void LastServerError::note(const PGresult* result) {
  const auto text = [&](int field) {
    const char* value = PQresultErrorField(result, field);
    return std::string(value ? value : "");
  };
  sql_state_ = text(PG_DIAG_SQLSTATE);
  schema_ = text(PG_DIAG_SCHEMA_NAME);
  table_ = text(PG_DIAG_TABLE_NAME);
  constraint_ = text(PG_DIAG_CONSTRAINT_NAME);
  detail_ = text(PG_DIAG_MESSAGE_DETAIL);
}

// The detail names columns and values of the index: "Key (job_id)=(4711) already exists.", translated but for the part
// in parentheses. Other indexes have other columns first. The name of the index is not asked: it differs while an index
// is built anew.
std::optional<LastServerError::DuplicateId> LastServerError::duplicate_id() const {
  const bool is_in_history = table_.starts_with("job_history_");
  if (sql_state_ != "23505" || schema_ != "tocsin" || (!is_in_history && !table_.starts_with("job_live_")))
    return std::nullopt;
  constexpr std::string_view kKey = "(job_id)=(";
  const std::size_t at = detail_.find('(');
  if (at == std::string::npos || detail_.compare(at, kKey.size(), kKey) != 0) return std::nullopt;
  DuplicateId taken{0, is_in_history};
  const char* const digits = detail_.data() + at + kKey.size();
  if (std::from_chars(digits, detail_.data() + detail_.size(), taken.job_id).ec != std::errc()) return std::nullopt;
  return taken;
}

}  // namespace tocsin
