// PlanCache: prepares the plans of steps, once for each list of micro-batch shapes.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/gradients.h"
#include "runtime/engine/plan/plan.h"
#include "runtime/engine/plan/shape_key.h"

namespace plumbline::engine {

/// The state that all steps of training or evaluation with one list of micro-batch shapes share.
struct StepPlan {
  /// One of this rank's stages.
  struct Stage {
    std::unique_ptr<StageRunner> runner;
    const split::StageState* state = nullptr;
    /// By replica and graph output: its consumers on this rank, and one more for all that are on others.
    std::vector<std::vector<int>> consumers;
  };

  Plan plan;
  std::vector<schedule::Action> actions;  ///< of this rank, lowered
  std::vector<Stage> stages;              ///< as EngineContext::stages
  bool backward = false;
  std::vector<ParameterCopies> copies;
};

class PlanCache {
 public:
  /// `context` must outlive it, and receives the states of new stages.
  PlanCache(EngineContext& context, PipeSource source) : context_(context), source_(std::move(source)) {}

  /// How many plans are kept. Further shapes evict the plan that was used least recently.
  static constexpr size_t kMaxPlans = 32;

  /// The plan for these micro-batches, valid until the next call. Micro-batches whose inputs agree in defined, dtype,
  /// sizes and requires_grad share a plan; a known one allocates nothing. Every rank calls it, with the same sequence
  /// of shapes: a new plan is compared between the ranks. Throws InputError if the schedule does not fit the model,
  /// Error if ranks disagree.
  StepPlan& plan_for(bool training, const std::vector<std::vector<at::Tensor>>& microbatches);

  void clear() { plans_.clear(); }

 private:
  std::unique_ptr<StepPlan> make(bool training, const std::vector<std::vector<at::Tensor>>& microbatches);
  std::vector<std::string> add_stage(StepPlan& made, int stage);

  EngineContext& context_;
  PipeSource source_;
  struct Entry {
    std::unique_ptr<StepPlan> plan;
    uint64_t used = 0;  // the step that used it last
  };
  std::unordered_map<ShapeKey, Entry, ShapeKeyHash> plans_;
  uint64_t steps_ = 0;
  ShapeKey key_;  // of the last step; kept for its memory
};

}  // namespace plumbline::engine
