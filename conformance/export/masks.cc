#include "conformance/export/masks.h"

#include <ATen/core/grad_mode.h>

#include "runtime/graph/host_tensors.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/microbatch/random_seed.h"
#include "runtime/split/module_pipe.h"

namespace plumbline::conformance {
namespace {

/// The graph on copies of its attributes: running statistics that it writes are not shared.
graph::Graph on_copies(graph::Graph graph) {
  for (graph::Attribute& attribute : graph.attributes)
    if (attribute.tensor.defined()) attribute.tensor = attribute.tensor.detach().clone();
  return graph;
}

bool draws(const Program& program) {
  for (const PortableStage& stage : program.stages)
    if (!stage.masks.empty()) return true;
  return false;
}

}  // namespace

void add_masks(const ProgramSet& set, const std::vector<ProgramUse>& uses, uint64_t seed, int step, int train_step,
               TensorMap& tensors) {
  const c10::NoGradGuard no_grad;
  for (size_t m = 0; m < uses.size(); ++m) {
    const Program& program = set.programs()[uses[m].program];
    if (!draws(program)) continue;
    const split::Pipe& pipe = program.pipe;
    std::vector<std::vector<at::Tensor>> outputs(pipe.stages.size());
    for (size_t s = 0; s < pipe.stages.size(); ++s) {
      std::vector<at::Tensor> inputs;
      if (s == 0) inputs = split::given_inputs(uses[m].inputs);
      for (int b : pipe.stages[s].inputs)
        inputs.push_back(outputs[pipe.boundaries[b].producer].at(pipe.boundaries[b].output).contiguous());
      {
        const graph::RandomTurn seeded(
            microbatch::stage_random_seed(seed, train_step, static_cast<int>(s), static_cast<int>(m)));
        graph::Program(on_copies(with_masks_as_outputs(pipe.stages[s].graph))).run(inputs, outputs[s]);
      }
      const std::vector<PortableName>& masks = program.stages[s].masks;
      for (size_t i = 0; i < masks.size(); ++i)
        tensors.emplace("step/" + std::to_string(step) + "/mask/" + std::to_string(s) + "/" + std::to_string(m) + "/" +
                            masks[i].name,
                        graph::to_host(outputs[s].at(outputs[s].size() - masks.size() + i)));
    }
  }
}

}  // namespace plumbline::conformance
