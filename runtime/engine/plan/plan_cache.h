// PlanCache: makes the plans of steps, once for each list of micro-batch shapes.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/plan/plan.h"
#include "runtime/engine/plan/shape_key.h"
#include "runtime/engine/replicas/parameter_copies.h"
#include "runtime/engine/replicas/parameter_shards.h"

namespace plumbline::engine {

/// The state shared by all steps with the same mode (training or evaluation) and list of micro-batch shapes.
struct StepPlan {
  /// One of this rank's stages.
  struct Stage {
    std::unique_ptr<StageRunner> runner;
    const split::StageState* state = nullptr;
    /// [replica][pipe][graph output]: the number of consuming stages on this rank, plus 1 if other ranks hold
    /// consumers.
    std::vector<std::vector<std::vector<int>>> consumers;
    /// Null unless the list gathers the stage's parameters.
    std::unique_ptr<ParameterShards> shards;
  };

  Plan plan;
  std::vector<schedule::Action> actions;  ///< this rank's lowered list
  std::vector<Stage> stages;              ///< in the order of EngineContext::stages
  bool backward = false;                  ///< whether the step has a backward: training with a loss
  bool checked_losses = false;            ///< a step has checked that its losses depend on no other parameters
  std::vector<ParameterCopies> copies;
  std::unique_ptr<transport::AgreedTraffic> traffic;  ///< of boundary values and their gradients; may be null
  /// By stage (in the order of `stages`), then by micro-batch: whether the list offloads its activations; empty if it
  /// has no OFFLOAD.
  std::vector<char> offloaded;

  bool shards_parameters() const {
    return std::ranges::any_of(stages, [](const Stage& stage) { return stage.shards != nullptr; });
  }
};

class PlanCache {
 public:
  /// `context` must outlive the cache; new plans add the states of this rank's stages to `context`.
  PlanCache(EngineContext& context, PipeSource source) : context_(context), source_(std::move(source)) {}

  /// The number of plans kept; a further plan evicts the least recently used plan.
  static constexpr size_t kMaxPlans = 32;

  /// Returns the plan for `microbatches` ([micro-batch][input]), valid until the next call. Lists of micro-batches
  /// whose inputs agree in definedness, dtype, sizes and requires_grad share a plan; the look-up of a known plan
  /// allocates nothing. Every rank makes the same sequence of calls, because a new plan is compared between the ranks.
  /// Throws InputError if the schedule or the options do not fit the model or the transport has too few tags, Error if
  /// the ranks disagree, and as Transport::wait() does.
  StepPlan& plan_for(bool training, const std::vector<std::vector<at::Tensor>>& microbatches);

  /// Drops all plans; the stages' states are kept.
  void clear() { plans_.clear(); }

 private:
  std::unique_ptr<StepPlan> make(bool training, const std::vector<std::vector<at::Tensor>>& microbatches);
  void add_states(const split::Pipe& pipe);
  void refuse_written_copies(const split::Pipe& pipe) const;
  std::vector<std::string> add_stage(StepPlan& made, int stage);
  void add_shards(StepPlan& made);

  EngineContext& context_;
  PipeSource source_;
  bool has_whole_states_ = false;  // of all stages, with all their parameters and buffers
  // By parameter or buffer: the stages that have it in their states. All ranks agree on a parameter's.
  std::map<std::string, std::set<int>> stages_with_;
  struct Entry {
    std::unique_ptr<StepPlan> plan;
    uint64_t used = 0;  // the number of the plan_for() call that used the plan last
  };
  std::unordered_map<ShapeKey, Entry, ShapeKeyHash> plans_;
  uint64_t steps_ = 0;
  ShapeKey key_;  // of the last step; kept for its memory
};

}  // namespace plumbline::engine
