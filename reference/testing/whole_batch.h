// Test helper: a batch with which to capture a model.
#pragma once

#include <algorithm>
#include <string>

#include "reference/models/zoo.h"
#include "runtime/error.h"

namespace plumbline::testing {

/// The first of batches 0 to 3 of the model without a None input; throws Error if there is none, InputError as
/// make_batch() does.
inline models::Batch whole_batch(const std::string& model, reference::Dtype dtype, int rows, uint64_t seed) {
  for (int step = 0; step < 4; ++step)
    if (models::Batch batch = models::make_batch(model, dtype, rows, seed, step);
        std::all_of(batch.inputs.begin(), batch.inputs.end(), [](const at::Tensor& x) { return x.defined(); }))
      return batch;
  throw Error(model + ": every batch lacks an input");
}

}  // namespace plumbline::testing
