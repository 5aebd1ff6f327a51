// Test helper: a batch to capture a model with.
#pragma once

#include <algorithm>
#include <string>

#include "reference/models/zoo.h"
#include "runtime/error.h"

namespace plumbline::models {

/// The first batch of the model without a None input.
inline Batch whole_batch(const std::string& model, reference::Dtype dtype, int rows, uint64_t seed) {
  for (int step = 0; step < 4; ++step)
    if (Batch batch = make_batch(model, dtype, rows, seed, step);
        std::all_of(batch.inputs.begin(), batch.inputs.end(), [](const at::Tensor& x) { return x.defined(); }))
      return batch;
  throw Error(model + ": every batch lacks an input");
}

}  // namespace plumbline::models
