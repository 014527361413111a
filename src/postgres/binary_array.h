// BinaryArray: builds an array parameter of a statement in PostgreSQL's binary format, so that the server parses no
// text. PgCreate inserts many rows by one statement with such arrays. The format is a header, then each element after
// its length; numbers are big-endian. Thread: owner only (the session's).
#pragma once

#include <pqxx/pqxx>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

class BinaryArray {
 public:
  // The element type, by its OID in pg_type. REQUIRES: the statement's parameter is an array of exactly this type.
  enum class Of { int2 = 21, int4 = 23, int8 = 20, text = 25, jsonb = 3802, timestamptz = 1184 };

  explicit BinaryArray(Of type);
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  // Appends an element. REQUIRES, or the process ends: the array's type takes this kind of value, and a number is in
  // its range.
  void add(std::int64_t value);
  void add(WallTime value);               // WallTime::min() and max() are -infinity and infinity
  void add_text(std::string_view value);  // text or jsonb; the server refuses invalid UTF-8 or JSON
  void add_null();

  pqxx::binarystring parameter() const;  // a copy of the array so far

 private:
  void put(std::uint64_t value, int bytes);  // appends an element of that many bytes

  const Of type_;
  std::int32_t count_ = 0;
  bool has_null_ = false;
  std::string bytes_;  // the elements, each after its length
};

}  // namespace tocsin
