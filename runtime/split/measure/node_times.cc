#include "runtime/split/measure/node_times.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/split/measure/node_alone.h"

namespace plumbline::split {
namespace {

/// Kernels of an accelerator still run when their call returns.
void wait_for_devices(const NodeAlone& alone) {
  for (const at::Tensor& operand : alone.operands())
    if (operand.defined() && !operand.is_cpu() && !operand.is_meta())
      c10::impl::getDeviceGuardImpl(operand.device().type())->synchronizeDevice(operand.device().index());
}

template <class Call>
double seconds(const NodeAlone& alone, Call&& call) {
  wait_for_devices(alone);
  const auto begin = std::chrono::steady_clock::now();
  call();
  wait_for_devices(alone);
  return seconds_since(begin);
}

}  // namespace

std::vector<double> measure_node_times(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                                       int repetitions) {
  PLUMBLINE_CHECK(repetitions >= 1, std::to_string(repetitions) + " repetitions");
  std::vector<double> times(graph.nodes.size(), std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < times.size(); ++i)
    if (graph.nodes[i].is_split()) times[i] = 0;
  for (int r = 0; r < repetitions; ++r) {
    for_each_node_alone(graph, inputs, [&](size_t node, NodeAlone& alone) {
      const double forward = seconds(alone, [&] { alone.forward(); });
      const std::vector<at::Tensor> gradients = alone.ones();
      const double backward = seconds(alone, [&] { alone.backward(gradients); });
      times[node] = std::min(times[node], forward + backward);
    });
  }
  return times;
}

}  // namespace plumbline::split
