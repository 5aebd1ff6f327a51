// Facts about a captured graph from which split() builds the stages: the producing and using stages of each value,
// in-place writes, and the values that have a gradient. Computed in linear passes.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/split/cut/split_options.h"

namespace plumbline::split {

/// Immutable. Refers to the graph, which must outlive it.
class SplitAnalysis {
 public:
  /// `stage_of_node` is StageOfNodes::stages. Throws InputError if a stage would miss an in-place change or see one
  /// too early, for a loss output that the model does not have, and for a local loss that is no scalar of a stage.
  SplitAnalysis(const graph::Graph& graph, std::vector<int> stage_of_node, const SplitOptions& options);

  static constexpr int kAttribute = -1;

  /// Number of stages, at least 1.
  int stages() const { return stages_; }
  int stage_of_node(size_t node) const { return stage_of_node_[node]; }
  /// The stage that makes the value; 0 for an input, kAttribute for a parameter, buffer or constant.
  int producer(graph::ValueId v) const { return producer_[v]; }
  /// The stages that use the value, ascending; the last stage uses the model's outputs.
  const std::vector<int>& used_by(graph::ValueId v) const { return used_by_[v]; }
  /// Whether the loss depends on the value and the value requires a gradient at the border.
  bool has_gradient(graph::ValueId v) const { return has_gradient_[v]; }
  /// Whether the value requires a gradient when it crosses a border. Value::requires_grad is the state at the end of
  /// the forward, and may be true only because a later stage writes into the value's memory.
  bool requires_grad(graph::ValueId v) const { return graph_.values[v].requires_grad && !plain_at_border_.contains(v); }
  /// The values that `stage` receives and changes in place; the stage must change a copy instead.
  const std::vector<graph::ValueId>& changed_in_place(int stage) const { return changed_in_place_[stage]; }
  /// Whether the value lies in the memory of a written buffer (or another written attribute). A stage must send a copy
  /// of such a value, because the next micro-batch writes the buffer again.
  bool is_written_buffer(graph::ValueId v) const { return written_buffers_.contains(v); }
  /// Whether `node` runs in the stage that writes the memory of `v`, after its last write, and `v` existed by then. The
  /// node must then read a copy: the next micro-batch would overwrite a value that backward needs.
  bool reads_written_buffer(int32_t node, graph::ValueId v) const;
  /// Whether a node of the stage draws random numbers.
  bool draws(int stage) const { return draws_[stage]; }

 private:
  struct Write {
    size_t node;
    graph::ValueId value;
  };
  /// All values and writes of one piece of memory that a node writes.
  struct Memory {
    const graph::Attribute* owner = nullptr;  // nullptr: no parameter, buffer or constant has this memory
    std::vector<graph::ValueId> values;
    std::vector<Write> writes;
  };

  void add_use(graph::ValueId v, int stage);
  int32_t memory_of(graph::ValueId v) const;
  void follow_writes();
  void check_attribute(const Memory& memory);
  void check_values(const Memory& memory);
  bool records_gradient(const graph::Node& node) const;
  bool required_gradient_before(graph::ValueId v, const Memory& memory, int stage) const;
  [[noreturn]] void refuse_change(const Write& write, graph::ValueId seen, int stage) const;
  void add_output_uses(const SplitOptions& options);
  void find_gradients(const SplitOptions& options);

  const graph::Graph& graph_;
  std::vector<int> stage_of_node_;
  int stages_ = 1;
  std::vector<int> producer_;
  std::vector<int32_t> maker_;  // by value: the node that makes it; -1 for inputs and attributes
  std::vector<std::vector<int>> used_by_;
  std::vector<char> has_gradient_;
  std::vector<std::vector<graph::ValueId>> changed_in_place_;
  std::unordered_set<graph::ValueId> plain_at_border_;
  std::unordered_map<graph::ValueId, int32_t> written_buffers_;  // value -> the last node that writes its memory
  std::vector<char> draws_;
};

}  // namespace plumbline::split
