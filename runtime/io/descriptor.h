// A file descriptor with an owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace plumbline {

/// Owns an open descriptor, or none: -1, as open() returns on failure. The destructor and reset() close it. Move-only.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  /// Returns the descriptor and owns none from then on: the caller closes it.
  int release() { return std::exchange(number_, -1); }
  void reset(int number = -1) {
    if (const int old = std::exchange(number_, number); old >= 0) close(old);
  }

 private:
  int number_;
};

}  // namespace plumbline
