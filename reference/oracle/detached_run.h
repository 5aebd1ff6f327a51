// The second oracle: the stages of a Pipe run detached on one device, after PyTorch's DetachExecutor.
//
// Every boundary value is detached and made a leaf. Every stage has a separate copy of a shared parameter and one
// accumulator for it, and sums its micro-batches in a given order. So this oracle executes the same floating-point
// operations in the same order as a correct runtime, without schedule, engine or transport, and results must agree bit
// for bit. The oracle itself is checked against the whole model (whole_model.h).
#pragma once

#include <optional>
#include <vector>

#include "reference/case.h"
#include "reference/models/zoo.h"
#include "reference/results.h"

namespace plumbline::split {
struct StageState;
}

namespace plumbline::reference {

/// The micro-batches of one copy of a stage, in the order of their forwards (which affects buffers) and of their
/// backwards (in which gradients are accumulated). Both lists contain the same micro-batches.
struct StageOrder {
  std::vector<int> forwards, backwards;
};

/// Indexed by stage, then by copy. Usually each stage has one copy, which takes every micro-batch. If several replicas
/// of the model share the micro-batches, each copy of a stage has separate accumulators, which are summed by ascending
/// stage and within a stage by ascending copy. The copies of a stage together contain every micro-batch once.
using StageOrders = std::vector<std::vector<StageOrder>>;

/// Watches a detached run from outside.
class DetachedObserver {
 public:
  virtual ~DetachedObserver() = default;
  /// The batch of a step, before anything reads it. `step` is the position in Case::steps.
  virtual void begins(int step, const models::Batch& batch) = 0;
  /// The parameters and buffers of a stage, before its first forward.
  virtual void holds(const split::StageState& state) = 0;
};

/// Runs the case with orders.size() stages and records every kind of result; if !keeps_details(c), only those that
/// keeps_details() names. `dtype`: the precision, instead of the case's (for bounded truth, with rounding errors
/// injected by an interposer). Throws InputError if the model cannot be cut into so many stages, and Error for orders
/// that omit or repeat a micro-batch or contain one that does not exist. `device`: where the stages compute; the model
/// is captured on the host. Backwards may be missing if the case has no Train step. With several copies no forward may
/// write a buffer, since the copies' buffers would differ. `observer` may be null.
///
/// Each step runs all forwards, stage after stage, then all backwards from the last stage to the first. A runtime
/// interleaves them to hold less memory, but a stage's forwards depend only on its own earlier forwards, and its
/// backwards likewise, so the numbers are the same. Since values flow only to later stages, every value is computed
/// before its use, for any orders. (With split backwards, the runtime's order of sums is that of its W. Whole backwards
/// at the positions of the W among the forwards could deadlock: an earlier stage needs the gradient long before the W.)
Results run_detached(const Case& c, uint64_t seed, const StageOrders& orders, std::optional<Dtype> dtype = {},
                     c10::Device device = c10::kCPU, DetachedObserver* observer = nullptr);

}  // namespace plumbline::reference
