// InstructionCounter: counts the instructions that a thread executes, with the processor's counter (Linux perf events).
#pragma once

#include <cstdint>
#include <string>

#include "runtime/io/descriptor.h"

namespace plumbline::bench {

/// Counts the thread that constructs it, from construction on, whichever thread calls read(). Construction never
/// throws.
class InstructionCounter {
 public:
  InstructionCounter();

  /// The reason why there is no counter; empty if there is one. Virtual machines often hide it, and kernels may forbid
  /// it.
  const std::string& unavailable() const { return unavailable_; }

  /// The user-mode instructions that the constructing thread has executed since construction. Throws Error if the
  /// counter cannot be read, also if it is unavailable.
  int64_t read() const;

 private:
  Descriptor descriptor_;
  std::string unavailable_;
};

}  // namespace plumbline::bench
