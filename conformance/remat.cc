#include "conformance/remat.h"

#include <torch/nn/module.h>

#include "reference/models/zoo.h"
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
  const std::vector<at::Tensor> inputs =
      split_inputs(model.input_names, batch.inputs, model.input_chunks, c.microbatches).front();
  Pipe pipe = make_pipe({model.module.get(), model.forward, model.input_names}, inputs, /*training=*/true, split);
  for (int stage = 0; stage < pipe.num_stages(); ++stage) {
    const StageState state = make_stage_state(pipe, stage);
    bind(pipe.stages[stage].graph, state);
    try {
      PartitionedStage(stage, {&pipe.stages[stage].graph}, gradients_that_come_back(pipe, stage), options);
    } catch (const InputError& error) {
      return error.what();
    }
  }
  return {};
}

}  // namespace plumbline
