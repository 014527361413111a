#include "postgres/id_clash.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "postgres/text.h"

namespace tocsin {
namespace {

// The id in the detail "Key (job_id)=(4711) already exists.", in every language of the server.
std::optional<JobId> clashing_id(std::string_view message) {
  constexpr std::string_view kKey = "(job_id)=(";
  const std::size_t at = message.find(kKey);
  if (at == std::string_view::npos || message.find("job_history") == std::string_view::npos) return std::nullopt;
  const std::string_view digits = message.substr(at + kKey.size());
  JobId id = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  return parsed.ec == std::errc() ? std::optional(id) : std::nullopt;
}

}  // namespace

bool free_ids(Session& session, pqxx::transaction_base& tx, const pqxx::unique_violation& error,
              std::span<const JobId> jobs) {
  const auto clashing = clashing_id(error.what());
  if (!clashing) return false;
  PgArray ids;
  ids.add(*clashing);
  for (const JobId id : jobs)
    if (id != *clashing) ids.add(id);
  const auto freed = tx.exec_params("SELECT tocsin.free_ids($1::bigint[])", ids.literal());
  for (const auto& row : freed)
    if (session.config().on_id_given_twice) session.config().on_id_given_twice(row[0].as<JobId>());
  return !freed.empty();
}

}  // namespace tocsin
