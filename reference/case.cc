#include "reference/case.h"

#include <algorithm>

namespace plumbline::reference {

int least_rows(const Case& c) {
  int least = c.rows;
  for (const std::vector<Step>* steps : {&c.steps, &c.steps_before})
    for (const Step& step : *steps) least = std::min(least, rows_of(c, step));
  return least;
}

bool requires_gradients(const Case& c, int microbatch) {
  const std::vector<int>& some = c.gradient_microbatches;
  return c.input_gradients && (some.empty() || std::ranges::find(some, microbatch) != some.end());
}

}  // namespace plumbline::reference
