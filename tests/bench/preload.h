// Jobs written straight into the tables, in the shape the node writes them: millions of them within minutes, so that a
// database which has been in use for long can be measured.
#pragma once

#include <cstddef>
#include <string>

namespace tocsin::bench {

// Without their indexes the tables are filled several times faster; they are made again from their own definitions.
enum class Indexes { kept, rebuilt };  // rebuilt: REQUIRES: no node is running

// Jobs of several types are of kType, kType.1, kType.2, ... in turn, which must be known.

// Pending jobs of kType, which must be known, with their counts. `due` is SQL for the time that job number i is due.
void write_pending(const std::string& database, std::size_t n, const std::string& due, Indexes indexes, int types = 1);

// Jobs of kType that were done on the days before today, as many on each. Days are kept or dropped as a whole.
void write_finished(const std::string& database, std::size_t n, int days, int types = 1);

// Jobs of kType that were done today, in the order of their numbers, with their counts: four of each key `finished-i`.
// They leave what the planner knows of their table as it is.
void write_finished_today(const std::string& database, std::size_t n);

// Statistics and the visibility map of all tables, and the checkpoint out of the way, over several connections.
void settle(const std::string& database);

}  // namespace tocsin::bench
