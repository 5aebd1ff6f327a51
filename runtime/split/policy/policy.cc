#include "runtime/split/policy/policy.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/error.h"
#include "runtime/flops/graph_flops.h"
#include "runtime/split/measure/node_flops.h"
#include "runtime/split/measure/node_times.h"
#include "runtime/split/policy/legal_cuts.h"
#include "runtime/split/policy/optimal_cuts.h"
#include "runtime/text/join.h"

namespace plumbline::split {
namespace {

constexpr int kTimingRuns = 5;

std::string_view without_impl(std::string_view type) {
  constexpr std::string_view kImpl = "Impl";
  if (type.size() > kImpl.size() && type.ends_with(kImpl)) type.remove_suffix(kImpl.size());
  return type;
}

/// Whether `wanted` equals `type` or its last parts.
bool is_of_class(std::string_view type, std::string_view wanted) {
  type = without_impl(type);
  wanted = without_impl(wanted);
  if (wanted.empty() || !type.ends_with(wanted)) return false;
  if (type.size() == wanted.size()) return true;
  const char before = type[type.size() - wanted.size() - 1];
  return before == '.' || before == ':';
}

std::vector<int32_t> begins_of_every_nth(const graph::Graph& graph, const std::string& type, int n) {
  if (n < 1) throw InputError("split: every " + std::to_string(n) + "-th call of " + type + " asked for; 1 or more is");
  const std::vector<char> legal = legal_cuts(graph);
  const auto nodes = static_cast<int32_t>(graph.nodes.size());
  int32_t first = 0;  // the first node that is no marker
  while (first < nodes && graph.nodes[first].is_split()) ++first;
  std::set<int32_t> begins;
  std::set<std::string> classes;
  int calls = 0;
  for (const graph::ModuleCall& call : graph.module_calls) {
    classes.insert(call.type);
    if (!is_of_class(call.type, type) || calls++ % n != 0 || calls == 1) continue;
    int32_t begin = call.begin;
    while (begin < nodes && graph.nodes[begin].is_split()) ++begin;
    if (begin <= first || begin == nodes) continue;
    if (!legal[begin])
      throw InputError("split: no stage may begin with call " + std::to_string(calls - 1) + " of " + type + " ('" +
                       call.name + "'), because a call from there on writes in place what is made or used before it");
    begins.insert(begin);
  }
  if (calls == 0)
    throw InputError("split: no module of class " + type + " is called; " +
                     (classes.empty() ? "no call of a module is known" : "called are: " + join(classes)));
  return {begins.begin(), begins.end()};
}

std::vector<double> parameter_bytes(const graph::Graph& graph) {
  std::vector<double> bytes_of(graph.values.size(), 0), bytes(graph.nodes.size(), 0);
  for (const graph::Attribute& attribute : graph.attributes) {
    if (attribute.kind != graph::AttributeKind::Parameter || attribute.value == graph::kNoValue) continue;
    const graph::Value& value = graph.values[attribute.value];
    bytes_of[attribute.value] =
        static_cast<double>(c10::multiply_integers(value.sizes)) * static_cast<double>(c10::elementSize(value.dtype));
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    graph::for_each_use(graph.nodes[i], [&](graph::ValueId v) { bytes[i] += std::exchange(bytes_of[v], 0); });
  return bytes;
}

}  // namespace

SplitPolicy every_nth_call(std::string type, int n) {
  return [type = std::move(type), n](const graph::Graph& graph) { return begins_of_every_nth(graph, type, n); };
}

SplitPolicy equal_parameter_bytes(int stages) {
  return
      [stages](const graph::Graph& graph) { return optimal_cuts(parameter_bytes(graph), legal_cuts(graph), stages); };
}

SplitPolicy equal_estimated_flops(int stages) {
  return [stages](const graph::Graph& graph) {
    return optimal_cuts(flops::estimated_flops(graph), legal_cuts(graph), stages);
  };
}

SplitPolicy equal_measured_flops(int stages, std::vector<at::Tensor> inputs) {
  return [stages, inputs = std::move(inputs)](const graph::Graph& graph) {
    return optimal_cuts(measure_flops(graph, inputs), legal_cuts(graph), stages);
  };
}

SplitPolicy optimal_partition(int stages, std::vector<at::Tensor> inputs) {
  return [stages, inputs = std::move(inputs)](const graph::Graph& graph) {
    return optimal_cuts(measure_node_times(graph, inputs, kTimingRuns), legal_cuts(graph), stages);
  };
}

}  // namespace plumbline::split
