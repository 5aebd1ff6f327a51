// A case with another number of micro-batches.
#pragma once

#include "reference/case.h"

namespace plumbline::proof {

/// The case with `microbatches` micro-batches (0: its own) and at least as many rows in each as before. A proof needs
/// no expected numbers, and data are functions of the row, so that any number will do.
inline reference::Case scaled(reference::Case c, int microbatches) {
  if (microbatches == 0) return c;
  const int times = (microbatches + c.microbatches - 1) / c.microbatches;
  c.microbatches = microbatches;
  c.rows *= times;
  for (reference::Step& step : c.steps) step.rows *= times;
  return c;
}

}  // namespace plumbline::proof
