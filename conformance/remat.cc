#include "conformance/remat.h"

#include <torch/nn/module.h>

#include "reference/models/zoo.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/stage_trace.h"
#include "runtime/error.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/split/module_pipe.h"

namespace plumbline {

std::string why_not_partitioned(const Case& c, int stages, uint64_t seed, const RematOptions& options) {
  const Model model = make_model(c.model, c.dtype, seed);
  SplitOptions split;
  split.points = stage_points(model, stages);
  split.loss_outputs = std::vector<int>{0};
  const Batch batch = make_batch(c.model, c.dtype, c.rows, seed, 0);
  const PipeSource source = [&](bool training, const std::vector<at::Tensor>& inputs) {
    return make_pipe({model.module.get(), model.forward, model.input_names}, inputs, training, split);
  };
  Plan plan = make_plan(source, /*training=*/true,
                        split_inputs(model.input_names, batch.inputs, model.input_chunks, c.microbatches));
  const Pipe& first = plan.pipes.front();
  for (int stage = 0; stage < first.num_stages(); ++stage) {
    const StageState state = make_stage_state(first, stage);
    std::vector<const Graph*> graphs;
    for (Pipe& pipe : plan.pipes) {
      bind(pipe.stages[stage].graph, state);
      graphs.push_back(&pipe.stages[stage].graph);
    }
    try {
      PartitionedStage(stage, graphs, gradients_that_come_back(first, stage), options);
    } catch (const InputError& error) {
      return error.what();
    }
  }
  return {};
}

}  // namespace plumbline
