#include "postgres/id_clash.h"

#include "postgres/text.h"

namespace tocsin {

bool free_ids(Session& session, pqxx::transaction_base& tx, std::span<const JobId> jobs) {
  const auto taken = session.last_refusal().taken_id();
  if (!taken || !taken->is_in_history) return false;
  PgArray ids;
  ids.add(taken->job_id);
  for (const JobId id : jobs)
    if (id != taken->job_id) ids.add(id);
  const auto freed = tx.exec_params("SELECT tocsin.free_ids($1::bigint[])", ids.literal());
  for (const auto& row : freed)
    if (session.config().on_id_given_twice) session.config().on_id_given_twice(row[0].as<JobId>());
  return !freed.empty();
}

}  // namespace tocsin
