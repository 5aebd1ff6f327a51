// The second oracle: the stages of a Pipe run detached on one device, after PyTorch's DetachExecutor.
//
// Every value that crosses a border is detached and made a leaf, every stage has a separate copy of a shared parameter
// and one accumulator for it, and the order in which a stage sums its micro-batches is given as plain data. So it
// executes the same floating-point operations in the same order as a correct runtime, without schedule, engine or
// transport; results must agree bit for bit. It is itself checked against the whole model (whole_model.h).
#pragma once

#include <vector>

#include "reference/case.h"
#include "reference/results.h"

namespace plumbline::reference {

/// The micro-batches of one copy of a stage in the order in which it takes them forward (which its buffers depend on)
/// and backward (in which it adds up their gradients); both name the same ones.
struct StageOrder {
  std::vector<int> forwards, backwards;
};

/// [stage][copy]: mostly one copy of each stage, which takes every micro-batch. Where several replicas of the model
/// share the micro-batches, each copy of a stage has separate accumulators, which are summed by ascending stage and
/// within a stage by ascending copy. The copies of a stage together name every micro-batch once.
using StageOrders = std::vector<std::vector<StageOrder>>;

/// Records everything: forward, output, loss, backward, partial, grad, buffer, param.
/// Throws InputError when the model cannot be cut into that many stages, Error for orders that leave a micro-batch out,
/// repeat one, or name one that does not exist; backwards may be missing where the case has no Train step. With several
/// copies no forward may write a buffer, since the copies' buffers would differ.
///
/// It does all forwards, stage after stage, then all backwards from the last stage to the first. A runtime mixes them
/// to hold less, but a stage's forwards see only its own earlier ones, and its backwards likewise, so that the numbers
/// are the same; and since values flow only to later stages, every value is computed before its use, for any orders.
/// (With backwards in halves the runtime's order of sums is that of its W; executing whole backwards at the places of
/// the W among the forwards could deadlock: an earlier stage needs the gradient long before the W.)
Results run_detached(const Case& c, uint64_t seed, const StageOrders& orders);

}  // namespace plumbline::reference
