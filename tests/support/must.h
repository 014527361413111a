// must(): the value of a Result; throws std::runtime_error with code and message if it is an Error. Thread: any.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "tocsin/error.h"

namespace tocsin {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(std::string(to_string(result.error().code)) + ": " + result.error().message);
  return std::move(*result);
}

}  // namespace tocsin
