#include "postgres/queries.h"

#include <cstdio>

#include "postgres/sql_text.h"

namespace tocsin::sql {

std::string live_table(int table) {
  char name[32];
  std::snprintf(name, sizeof name, "tocsin.job_live_%04d", table);
  return name;
}

std::string over(const char* name, const std::string& table) { return statement(name, {{"table", table}}); }

std::string locking(const char* name, bool is_waiting) {
  return statement(name, {{"lock", is_waiting ? "" : "SKIP LOCKED"}});
}

std::string cancel(LockPolicy policy) {
  return policy == LockPolicy::together ? statement("cancel_together")
                                        : locking("cancel", policy == LockPolicy::waiting);
}

std::string change_pending(LockPolicy policy) {
  if (policy == LockPolicy::together) return statement("change_pending_together");
  return locking("change_pending", policy == LockPolicy::waiting);
}

}  // namespace tocsin::sql
