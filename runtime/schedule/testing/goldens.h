// For tests: PyTorch's results for some hundreds of configurations, recorded by scripts/pytorch_schedules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::testing {

struct Golden {
  std::string line;      ///< for failure messages
  std::string of_class;  ///< PyTorch's name, as in Interleaved1F1B
  schedule::ScheduleRequest request;
  std::string form;  ///< compute, or comms with options
  std::string hash;  ///< of the CSV text; "refused" if PyTorch refuses
};

/// All lines of goldens/pytorch-2.15.txt.
std::vector<Golden> pytorch_goldens();

/// The hash of runtime/fnv1a.h, in hexadecimal.
std::string fnv1a(std::string_view text);

}  // namespace plumbline::testing
