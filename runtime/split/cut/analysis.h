// Facts about the whole graph for the construction of stages: the producer and users of each value, in-place writes,
// and which values have a gradient. Computed in linear passes.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

class SplitAnalysis {
 public:
  /// `stage_of_node` comes from stage_of_nodes(). Throws InputError if an in-place change would be lost or seen by the
  /// wrong stage, and for a loss output that the model does not have.
  SplitAnalysis(const graph::Graph& graph, std::vector<int> stage_of_node,
                const std::optional<std::vector<int>>& loss_outputs);

  static constexpr int kAttribute = -1;

  int stages() const { return stages_; }
  int stage_of_node(size_t node) const { return stage_of_node_[node]; }
  /// kAttribute for parameters, buffers and constants.
  int producer(graph::ValueId v) const { return producer_[v]; }
  /// Ascending, without repetition.
  const std::vector<int>& used_by(graph::ValueId v) const { return used_by_[v]; }
  bool has_gradient(graph::ValueId v) const { return has_gradient_[v]; }
  /// At the border: a value may require a gradient only because a later stage writes into its memory.
  bool requires_grad(graph::ValueId v) const { return graph_.values[v].requires_grad && !plain_at_border_.contains(v); }
  /// The values that `stage` receives and changes in place: the stage needs its own copy.
  const std::vector<graph::ValueId>& changed_in_place(int stage) const { return changed_in_place_[stage]; }
  /// A value in the memory of a buffer (or another attribute) that is written: a copy of it leaves its stage, since the
  /// next micro-batch writes the buffer again.
  bool is_written_buffer(graph::ValueId v) const { return written_buffers_.contains(v); }
  /// Whether `node` reads such a value after its last write, in the stage that writes it: it must read a copy, since
  /// the write of the next micro-batch would change a value that backward needs.
  bool reads_written_buffer(int32_t node, graph::ValueId v) const;
  /// Whether a stage draws random numbers.
  bool draws(int stage) const { return draws_[stage]; }

 private:
  struct Write {
    size_t node;
    graph::ValueId value;
  };
  /// All uses of one piece of memory that some node writes.
  struct Memory {
    const graph::Attribute* owner = nullptr;
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
  void find_gradients(const std::optional<std::vector<int>>& loss_outputs);

  const graph::Graph& graph_;
  std::vector<int> stage_of_node_;
  int stages_ = 1;
  std::vector<int> producer_;
  std::vector<int32_t> maker_;
  std::vector<std::vector<int>> used_by_;
  std::vector<char> has_gradient_;
  std::vector<std::vector<graph::ValueId>> changed_in_place_;
  std::unordered_set<graph::ValueId> plain_at_border_;
  std::unordered_map<graph::ValueId, int32_t> written_buffers_;  // and the last node that writes that memory
  std::vector<char> draws_;
};

}  // namespace plumbline::split
