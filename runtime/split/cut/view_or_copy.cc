#include "runtime/split/cut/view_or_copy.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace plumbline::split {
namespace {

constexpr std::string_view kViewOrCopy[] = {"aten::contiguous", "aten::flatten",    "aten::ravel",
                                            "aten::reshape",    "aten::reshape_as", "aten::resolve_conj"};

/// The value of a call's first argument; kNoValue if it has none, or a list.
graph::ValueId first_argument(const graph::Node& node) {
  const bool is_value = !node.arguments.empty() && node.arguments[0].kind == graph::Argument::Kind::Value;
  return is_value ? node.arguments[0].values[0] : graph::kNoValue;
}

/// The storage number; -1 if it is unknown.
int32_t memory_of(const graph::Graph& graph, graph::ValueId v) {
  return v == graph::kNoValue ? -1 : graph.values[v].storage;
}

/// Follows a piece of memory from one call on, whose result is a view of its argument: in front of the call are the
/// argument and the other values in that memory, behind it the result and the views of it.
class Follower {
 public:
  Follower(const graph::Graph& graph, const std::vector<int>& stage_of_node, size_t call)
      : graph_(graph), stage_of_node_(stage_of_node), call_(call), result_(graph.nodes[call].results[0].values[0]) {}

  /// Whether a later write of the same stage on one side of the call is seen on the other: by a later call, or in the
  /// value that the stage sends or the model returns.
  bool sees_a_write() {
    behind_.insert(result_);
    std::unordered_set<graph::ValueId> of_later_stages;
    for (size_t i = call_ + 1; i < graph_.nodes.size(); ++i) {
      const graph::Node& node = graph_.nodes[i];
      bool seen = false;
      graph::for_each_use(node, [&](graph::ValueId v) { seen = seen || (!of_later_stages.contains(v) && sees(v)); });
      if (seen) return true;
      if (stage_of_node_[i] == stage_of_node_[call_])
        follow(node);
      else
        graph::for_each_definition(node, [&](graph::ValueId v) { of_later_stages.insert(v); });
    }
    return std::ranges::any_of(graph_.outputs, [&](graph::ValueId v) {
      return v != graph::kNoValue && !of_later_stages.contains(v) && sees(v);
    });
  }

 private:
  bool lies_there(graph::ValueId v) const { return graph_.values[v].storage == graph_.values[result_].storage; }
  bool sees(graph::ValueId v) const {
    return lies_there(v) && (behind_.contains(v) ? written_in_front_ : written_behind_);
  }
  void follow(const graph::Node& node) {
    graph::for_each_mutation(node, [&](graph::ValueId v) {
      if (lies_there(v)) (behind_.contains(v) ? written_behind_ : written_in_front_) = true;
    });
    if (!behind_.contains(first_argument(node))) return;
    graph::for_each_definition(node, [&](graph::ValueId v) {
      if (lies_there(v)) behind_.insert(v);
    });
  }

  const graph::Graph& graph_;
  const std::vector<int>& stage_of_node_;
  size_t call_;
  graph::ValueId result_;
  std::unordered_set<graph::ValueId> behind_;
  bool written_in_front_ = false, written_behind_ = false;
};

}  // namespace

std::vector<Returns> required_returns(const graph::Graph& graph, const std::vector<int>& stage_of_node) {
  std::vector<Returns> required(graph.nodes.size(), Returns::Any);
  std::set<std::pair<int, int32_t>> written;  // stage and storage number
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    graph::for_each_mutation(graph.nodes[i], [&](graph::ValueId v) {
      if (graph.values[v].storage >= 0) written.emplace(stage_of_node[i], graph.values[v].storage);
    });
  if (written.empty()) return required;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    const bool receives = stage_of_node[i] > 0;  // the inputs of stage 0 lie as in the captured run
    if (!receives || node.is_split() ||
        std::ranges::find(kViewOrCopy, node.op->operator_name().name) == std::end(kViewOrCopy))
      continue;
    const int32_t given = memory_of(graph, first_argument(node)), made = memory_of(graph, node.results[0].values[0]);
    if (given < 0 || made < 0) continue;
    const bool is_written = written.contains({stage_of_node[i], given}) || written.contains({stage_of_node[i], made});
    if (!is_written) continue;
    if (given != made)
      required[i] = Returns::Copy;
    else if (Follower(graph, stage_of_node, i).sees_a_write())
      required[i] = Returns::View;
  }
  return required;
}

}  // namespace plumbline::split
