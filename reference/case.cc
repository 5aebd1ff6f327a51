#include "reference/case.h"

#include <algorithm>

namespace plumbline::reference {

bool requires_gradients(const Case& c, int microbatch) {
  const std::vector<int>& some = c.gradient_microbatches;
  return c.input_gradients && (some.empty() || std::ranges::find(some, microbatch) != some.end());
}

}  // namespace plumbline::reference
