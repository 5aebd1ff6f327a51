// The second oracle: the stages of a Pipe run detached on one device, after PyTorch's DetachExecutor.
//
// Every value that crosses a border is detached and made a leaf, every stage has its own copy of a shared parameter and
// one accumulator for it, and the order in which a stage adds up its micro-batches is given as plain data. So it does
// the same floating-point operations in the same order as a correct runtime, without schedule, engine or transport;
// results must agree bit for bit. It is itself held against the whole model (whole_model.h).
#pragma once

#include <vector>

#include "reference/case.h"
#include "reference/results.h"

namespace plumbline {

/// One forward or backward of one micro-batch.
struct StageAction {
  bool backward = false;
  int microbatch = 0;
};

/// For each stage, its forwards and backwards in the order in which it does them.
using StageOrders = std::vector<std::vector<StageAction>>;

/// Records everything: forward, output, loss, backward, partial, grad, buffer, param.
/// Throws InputError when the model cannot be cut into that many stages, Error when the orders wait for one another.
Results run_detached(const Case& c, uint64_t seed, const StageOrders& orders);

}  // namespace plumbline
