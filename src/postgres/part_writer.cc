#include "postgres/part_writer.h"

#include <algorithm>

#include "base/part_size.h"

namespace tocsin {

Result<std::size_t> PartWriter::write(std::size_t n, const Write& write, const LeaveOut& leave_out) {
  PartSize part_size;
  std::size_t begin = 0;
  while (begin < n && waits_ > 0 && !has_given_up()) {
    const std::size_t size = std::min(part_size.most(), n - begin);
    const Result<bool> has_changed = write(begin, size);
    if (has_changed) {
      begin += size;
      part_size.note_success();
      refused_in_a_row_ = 0;
      has_changed_ |= *has_changed;
      continue;
    }
    const Error& error = has_changed.error();
    if (!may_be_one_(error)) return failure(error);
    if (error.field == kLocked) --waits_;
    part_size.note_refused(size);
    if (size > 1) continue;
    if (counts_(error)) {
      ++refused_in_a_row_;
      last_refusal_ = error;
    }
    leave_out(begin++, error);
  }
  return begin;
}

Error PartWriter::failure(const Error& error) const {
  return has_changed_ ? Error{ErrorCode::in_doubt, error.message, ""} : error;
}

}  // namespace tocsin
