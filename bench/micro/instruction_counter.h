// Counts the instructions that this thread executes, with the processor's counter.
#pragma once

#include <cstdint>
#include <string>

namespace plumbline::bench {

class InstructionCounter {
 public:
  InstructionCounter();
  ~InstructionCounter();
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  /// Empty, or why no counter is available: virtual machines often hide it, and kernels may forbid it.
  const std::string& unavailable() const { return unavailable_; }

  /// User-mode instructions of the calling thread since construction. Throws Error when the counter cannot be read.
  int64_t read() const;

 private:
  int descriptor_ = -1;
  std::string unavailable_;
};

}  // namespace plumbline::bench
