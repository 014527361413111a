// Writes jobs into the tables directly, as nodes would have left them: millions within minutes. So the bench can
// measure a database that has been in use for long. `types`: jobs belong in turn to kType, kType.1, kType.2 and so on.
// REQUIRES: these types exist.
#pragma once

#include <cstddef>
#include <string>

namespace tocsin::bench {

// rebuilt: drops the indexes, fills the tables several times faster, and creates the indexes again. REQUIRES: no node
// runs.
enum class Indexes { kept, rebuilt };

// Writes `n` pending jobs and their counts. `due`: SQL for the due time of job number i.
void write_pending(const std::string& database, std::size_t n, const std::string& due, Indexes indexes, int types = 1);

// Writes `n` jobs that were done on the `days` days before today, as many on each day.
void write_finished(const std::string& database, std::size_t n, int days, int types = 1);

// Writes `n` jobs of kType that were done today, with their counts: four per biz_id `finished-i`. The planner's
// statistics of the table stay as they are.
void write_finished_today(const std::string& database, std::size_t n);

// Vacuums and analyses all tables, over several connections, and writes a checkpoint.
void settle(const std::string& database);

}  // namespace tocsin::bench
