#include "conformance/backend/built_models.h"

#include <torch/nn/module.h>

#include <map>
#include <tuple>
#include <utility>

#include "conformance/corpus/case_pipe.h"
#include "reference/models/zoo.h"
#include "runtime/engine/plan/plan.h"
#include "runtime/engine/stage/partitioned_stage.h"
#include "runtime/engine/stage/stage_trace.h"
#include "runtime/error.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::conformance {
namespace {

/// Empty, or why a stage cannot be partitioned.
std::string partition_stages(const reference::Case& c, int stages, uint64_t seed, const engine::RematOptions& options) {
  const models::Model model = models::make_model(c, seed);
  const split::SplitOptions split = models::case_split(c, model, stages);
  const models::Batch batch = models::make_batch(c.model, c.dtype, c.rows, seed, 0);
  const engine::PipeSource source = [&](bool training, const std::vector<at::Tensor>& inputs) {
    return split::make_pipe({model.module.get(), model.forward, model.input_names}, inputs, training, split);
  };
  engine::Plan plan =
      engine::make_plan(source, /*training=*/true,
                        microbatch::split_inputs(model.input_names, batch.inputs, model.input_chunks, c.microbatches));
  const split::Pipe& first = plan.pipes.front();
  for (int stage = 0; stage < first.num_stages(); ++stage) {
    const split::StageState state = split::make_stage_state(first, stage);
    std::vector<const graph::Graph*> graphs;
    std::vector<std::vector<char>> has_gradient;
    for (split::Pipe& pipe : plan.pipes) {
      has_gradient.push_back(engine::gradients_that_come_back(pipe, stage));
      split::bind(pipe.stages[stage].graph, state);
      graphs.push_back(&pipe.stages[stage].graph);
    }
    try {
      engine::PartitionedStage(stage, graphs, std::move(has_gradient), options);
    } catch (const InputError& error) {
      return error.what();
    }
  }
  return {};
}

class BuiltModels : public ModelFacts {
 public:
  explicit BuiltModels(uint64_t seed) : seed_(seed) {}

  int most_stages(const std::string& model, reference::Dtype dtype) override { return known(model, dtype).most_stages; }

  bool has_buffers(const reference::Case& c) override { return known(c.model, c.dtype).has_buffers; }

  void require_loss(const reference::Case& c) override {
    const Known& model = known(c.model, c.dtype);
    models::require_loss(c, model.compared_outputs, model.auxiliary_losses);
  }

  std::vector<schedule::StageEdge> edges(const reference::Case& c, int stages) override {
    return engine::stage_edges(case_pipe(c, models::make_model(c, seed_), stages, seed_));
  }

  std::string why_not_partitioned(const reference::Case& c, int stages, const engine::RematOptions& options) override {
    const std::tuple key(c.id, c.microbatches, stages, options.mode, options.policy);
    if (const auto it = not_partitioned_.find(key); it != not_partitioned_.end()) return it->second;
    return not_partitioned_.emplace(key, partition_stages(c, stages, seed_, options)).first->second;
  }

 private:
  struct Known {
    int most_stages = 1;
    bool has_buffers = false;
    int compared_outputs = 1;
    int auxiliary_losses = 0;
  };

  const Known& known(const std::string& name, reference::Dtype dtype) {
    const std::pair key(name, dtype);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    const models::Model model = models::make_model(name, dtype, seed_);
    return known_
        .emplace(key, Known{models::most_stages(model), !model.module->buffers().empty(), model.compared_outputs,
                            model.auxiliary_losses})
        .first->second;
  }

  uint64_t seed_;
  std::map<std::pair<std::string, reference::Dtype>, Known> known_;
  // By case, micro-batches, stages, and mode and policy of RematOptions.
  std::map<std::tuple<std::string, int, int, std::string, std::string>, std::string> not_partitioned_;
};

}  // namespace

std::unique_ptr<ModelFacts> built_models(uint64_t seed) { return std::make_unique<BuiltModels>(seed); }

}  // namespace plumbline::conformance
