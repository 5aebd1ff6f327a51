#include "conformance/plan/remat.h"

#include <torch/nn/module.h>

#include "reference/models/zoo.h"
#include "runtime/engine/plan/plan.h"
#include "runtime/engine/stage/stage_trace.h"
#include "runtime/error.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::conformance {

std::string why_not_partitioned(const reference::Case& c, int stages, uint64_t seed,
                                const engine::RematOptions& options) {
  const models::Model model = models::make_model(c.model, c.dtype, seed);
  split::SplitOptions split;
  split.points = models::stage_points(model, stages);
  split.loss_outputs = std::vector<int>{0};
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
    for (split::Pipe& pipe : plan.pipes) {
      split::bind(pipe.stages[stage].graph, state);
      graphs.push_back(&pipe.stages[stage].graph);
    }
    try {
      engine::PartitionedStage(stage, graphs, engine::gradients_that_come_back(first, stage), options);
    } catch (const InputError& error) {
      return error.what();
    }
  }
  return {};
}

}  // namespace plumbline::conformance
