#include "postgres/last_refusal.h"

#include <libpq-events.h>
#include <libpq-fe.h>

#include <new>

namespace tocsin {
namespace {

// Called through libpq's C code. The results of a connection may outlive it and its LastRefusal: their other events
// must not use `object`.
int note_refusal(PGEventId event, void* info, void* object) {
  if (event != PGEVT_RESULTCREATE) return 1;
  const PGresult* result = static_cast<const PGEventResultCreate*>(info)->result;
  if (PQresultStatus(result) == PGRES_FATAL_ERROR) static_cast<LastRefusal*>(object)->note(result);
  return 1;
}

}  // namespace

void LastRefusal::watch(PGconn* connection) {
  if (!PQregisterEventProc(connection, note_refusal, "tocsin", this)) throw std::bad_alloc();
}

void LastRefusal::note(const PGresult* result) {
  const auto has = [&](int field) { return PQresultErrorField(result, field) != nullptr; };
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  sql_state_ = state ? state : "";
  names_table_ = has(PG_DIAG_TABLE_NAME);
  names_constraint_ = has(PG_DIAG_CONSTRAINT_NAME);
}

}  // namespace tocsin
