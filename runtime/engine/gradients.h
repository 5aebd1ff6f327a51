// The end of a step: this step's gradients are finished, and only then added to what was there before.
#pragma once

#include <map>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/split/pipe.h"
#include "runtime/transport/transport.h"

namespace plumbline {

/// Moves the .grad of every parameter aside for as long as a step runs, so that the step begins with none. A step that
/// fails leaves the gradients as they were before it.
class GradientStash {
 public:
  explicit GradientStash(const std::map<int, StageState>& states);
  ~GradientStash();
  GradientStash(const GradientStash&) = delete;
  GradientStash& operator=(const GradientStash&) = delete;

  /// Adds what the step left in .grad to what was moved aside. Called once, after the step's gradients are final.
  void add_back();

 private:
  struct Entry {
    at::Tensor parameter, before;
  };
  std::vector<Entry> entries_;
};

/// How many tags sum_shared_gradients takes: two for each copy beyond the first, there and back.
int64_t shared_tag_count(const std::vector<SharedParameter>& shared);

/// Sums the copies of each shared parameter's gradient in ascending stage order and gives every copy the sum. A copy
/// without a gradient takes no part; if none has one, none gets one. Tags start at `first_tag`; every rank calls it.
void sum_shared_gradients(const std::map<int, StageState>& states, const std::vector<SharedParameter>& shared,
                          const std::vector<int>& rank_of_stage, Transport& transport, int64_t first_tag,
                          const Deadline& deadline);

/// Divides every gradient of the step.
void divide_gradients(const std::map<int, StageState>& states, double divisor);

}  // namespace plumbline
