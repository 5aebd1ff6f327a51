#include "runtime/split/cut/stage_of_nodes.h"

#include <set>

#include "runtime/error.h"
#include "runtime/graph/graph.h"
#include "runtime/text/join.h"

namespace plumbline::split {
namespace {

/// The explanation for a module that forward did not enter: the first part of its name that does not exist, and the
/// names that do.
std::string unknown_module(const graph::Graph& graph, const std::string& name) {
  std::set<std::string> names;
  for (const graph::ModuleCall& module : graph.module_calls)
    for (size_t dot = module.name.find('.');; dot = module.name.find('.', dot + 1)) {
      names.insert(module.name.substr(0, dot));
      if (dot == std::string::npos) break;
    }
  names.erase("");
  std::string text = "split: no module named '" + name + "' was entered; ";
  if (names.empty()) return text + "forward enters none through plumbline::call()";
  if (names.contains(name)) return text + "only modules inside it were, such as '" + *names.upper_bound(name) + "'";
  size_t end = name.find('.');
  while (end != std::string::npos && names.contains(name.substr(0, end))) end = name.find('.', end + 1);
  const std::string prefix = name.substr(0, end), parent = prefix.substr(0, prefix.rfind('.'));
  const bool at_root = prefix.find('.') == std::string::npos;
  std::set<std::string> siblings;
  for (const std::string& known : names)
    if (at_root ? known.find('.') == std::string::npos
                : known.starts_with(parent + ".") && known.find('.', parent.size() + 1) == std::string::npos)
      siblings.insert(known);
  text += "there is no '" + prefix + "'; ";
  return text + (at_root ? "entered were: " : "in '" + parent + "' were entered: ") +
         (siblings.empty() ? "none" : join(siblings));
}

struct Cuts {
  std::vector<char> wanted;  // whether a stage border is requested before each node (and after the last)
  bool returned = false;     // whether forward returned before the last of the points
};

Cuts wanted_cuts(const graph::Graph& graph, const SplitOptions& options) {
  if (options.policy && !options.points.empty())
    throw InputError("split: both split points and a split policy are given; give one of them");
  Cuts cuts{std::vector<char>(graph.nodes.size() + 1, 0)};
  auto& [cut, returned] = cuts;
  for (const SplitPoint& point : options.points) {
    bool entered = false;
    for (const graph::ModuleCall& module : graph.module_calls) {
      if (module.name != point.module) continue;
      entered = true;
      cut[point.where == SplitPoint::Where::Beginning ? module.begin : module.end] = 1;
    }
    if (!entered && options.exits_early) {
      returned = true;
      continue;
    }
    if (!entered) throw InputError(unknown_module(graph, point.module));
    if (returned)
      throw InputError("split: forward enters '" + point.module + "', but not all modules at earlier points");
  }
  if (!options.policy) return cuts;
  for (int32_t node : options.policy(graph)) {
    if (node < 0 || node > static_cast<int32_t>(graph.nodes.size()))
      throw InputError("split: the policy wants a stage to begin at node " + std::to_string(node) +
                       ", but the graph has nodes 0 to " + std::to_string(graph.nodes.size()));
    cut[node] = 1;
  }
  return cuts;
}

}  // namespace

StageOfNodes stage_of_nodes(const graph::Graph& graph, const SplitOptions& options) {
  const auto [cut, returned] = wanted_cuts(graph, options);
  StageOfNodes nodes{std::vector<int>(graph.nodes.size(), 0)};
  int stage = 0;
  bool pending = false, pending_cut = false, any_call = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    pending_cut = pending_cut || cut[i];
    pending = pending || cut[i] || graph.nodes[i].is_split();
    if (!graph.nodes[i].is_split()) {
      if (pending && any_call) ++stage;
      pending = pending_cut = false;
      any_call = true;
    }
    nodes.stages[i] = stage;
  }
  nodes.ends_early = options.exits_early && (returned || pending_cut || cut.back());
  return nodes;
}

}  // namespace plumbline::split
