// must(): the value of a Result; throws std::runtime_error with its message if it is an Error. Thread: any.
#pragma once

#include <stdexcept>
#include <utility>

#include "tocsin/error.h"

namespace tocsin {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace tocsin
