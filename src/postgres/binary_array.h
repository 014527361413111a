// BinaryArray: builds an array parameter in PostgreSQL's binary format, for statements of many rows: the server need
// not parse text (ADR 0002). The format: array_recv() in the server's arrayfuncs.c, and the receive function of each
// type. Thread: owner only.
#pragma once

#include <pqxx/pqxx>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

class BinaryArray {
 public:
  // The element type. REQUIRES: the statement's parameter is an array of exactly this type. Values: OIDs in pg_type.
  enum class Of { int2 = 21, int4 = 23, int8 = 20, text = 25, jsonb = 3802, timestamptz = 1184 };

  explicit BinaryArray(Of type);
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  // REQUIRES: the value fits the element type: a number in its range, a time, a text (for text or jsonb).
  void add(std::int64_t value);
  void add(WallTime value);
  void add_text(std::string_view value);
  void add_null();

  pqxx::binarystring parameter() const;

 private:
  void put(std::uint64_t value, int bytes);

  const Of type_;
  std::int32_t count_ = 0;
  bool has_null_ = false;
  std::string bytes_;  // the elements, each behind its length
};

}  // namespace tocsin
