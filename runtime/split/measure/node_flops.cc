#include "runtime/split/measure/node_flops.h"

#include "runtime/error.h"
#include "runtime/flops/flop_counter.h"
#include "runtime/split/measure/node_alone.h"

namespace plumbline::split {

std::vector<double> measure_flops(const graph::Graph& graph, const std::vector<at::Tensor>& inputs) {
  std::vector<double> counted(graph.nodes.size(), 0);
  for_each_node_alone(graph, inputs, [&](size_t node, NodeAlone& alone) {
    for (const at::Tensor& operand : alone.operands())
      if (operand.defined() && !operand.is_cpu() && !operand.is_meta())
        throw InputError("split: operations are counted on the CPU or the meta device, but node " +
                         std::to_string(node) + " reads a tensor on " + operand.device().str());
    flops::FlopCounter counter;
    const capture::InterposerScope counting(counter);
    alone.forward();
    alone.backward(alone.ones());
    counted[node] = counter.flops();
  });
  return counted;
}

}  // namespace plumbline::split
