#include "postgres/binary_array.h"

#include <limits>

#include "base/assert.h"

namespace tocsin {
namespace {

// Big-endian, as everything in this format.
void append(std::string& to, std::uint64_t value, int bytes) {
  char text[8];
  for (int i = 0; i < bytes; ++i) text[i] = static_cast<char>(value >> 8 * (bytes - 1 - i) & 0xff);
  to.append(text, static_cast<std::size_t>(bytes));
}

int size_of(BinaryArray::Of type) { return type == BinaryArray::Of::int2 ? 2 : type == BinaryArray::Of::int4 ? 4 : 8; }

// Microseconds since 2000 began, with the ends of the range for the infinities.
std::int64_t microseconds_of(WallTime time) {
  constexpr std::int64_t k2000 = 946'684'800'000'000;
  if (time == WallTime::min()) return std::numeric_limits<std::int64_t>::min();
  if (time == WallTime::max()) return std::numeric_limits<std::int64_t>::max();
  return time.time_since_epoch().count() - k2000;
}

}  // namespace

BinaryArray::BinaryArray(Of type) : type_(type) {}

void BinaryArray::put(std::uint64_t value, int bytes) {
  ++count_;
  append(bytes_, static_cast<std::uint64_t>(bytes), 4);
  append(bytes_, value, bytes);
}

void BinaryArray::add(std::int64_t value) {
  TOCSIN_ASSERT(type_ == Of::int2 || type_ == Of::int4 || type_ == Of::int8);
  const int bytes = size_of(type_);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - 8 * bytes);
  TOCSIN_ASSERT(value <= most && value >= -most - 1);
  put(static_cast<std::uint64_t>(value), bytes);
}

void BinaryArray::add(WallTime value) {
  TOCSIN_ASSERT(type_ == Of::timestamptz);
  put(static_cast<std::uint64_t>(microseconds_of(value)), 8);
}

void BinaryArray::add_text(std::string_view value) {
  TOCSIN_ASSERT(type_ == Of::text || type_ == Of::jsonb);
  ++count_;
  const bool is_json = type_ == Of::jsonb;
  append(bytes_, value.size() + (is_json ? 1 : 0), 4);
  if (is_json) bytes_ += '\1';  // the version of its format
  bytes_ += value;
}

void BinaryArray::add_null() {
  ++count_;
  has_null_ = true;
  append(bytes_, static_cast<std::uint64_t>(-1), 4);
}

pqxx::binarystring BinaryArray::parameter() const {
  std::string whole;
  whole.reserve(20 + bytes_.size());
  const bool is_empty = count_ == 0;
  append(whole, is_empty ? 0 : 1, 4);  // dimensions
  append(whole, has_null_ ? 1 : 0, 4);
  append(whole, static_cast<std::uint64_t>(type_), 4);
  if (!is_empty) {
    append(whole, static_cast<std::uint64_t>(count_), 4);
    append(whole, 1, 4);  // its elements count from one
  }
  whole += bytes_;
  return pqxx::binarystring(whole);
}

}  // namespace tocsin
