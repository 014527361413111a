// ByteBudget: bounds how many bytes are held at once for one purpose, such as the bodies of requests.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace tocsin {

// Thread: any.
class ByteBudget {
 public:
  // Gives its bytes back when the last copy is destroyed, which may be after the budget's end. Whatever owns the bytes
  // owns this, too.
  using Reservation = std::shared_ptr<const void>;

  explicit ByteBudget(std::size_t most) : most_(most) {}

  // nullptr: with them more than `most` would be held.
  Reservation reserve(std::size_t bytes) {
    if (held_->fetch_add(bytes) + bytes > most_) {
      *held_ -= bytes;
      return nullptr;
    }
    return std::make_shared<const Held>(held_, bytes);
  }
  // Also if too many are held: for bytes that are there already and must not be refused.
  Reservation reserve_in_any_case(std::size_t bytes) {
    *held_ += bytes;
    return std::make_shared<const Held>(held_, bytes);
  }

 private:
  using Count = std::shared_ptr<std::atomic<std::size_t>>;
  struct Held {
    Held(Count c, std::size_t n) : count(std::move(c)), bytes(n) {}
    ~Held() { *count -= bytes; }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    const Count count;
    const std::size_t bytes;
  };

  const std::size_t most_;
  const Count held_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace tocsin
