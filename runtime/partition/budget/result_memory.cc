#include "runtime/partition/budget/result_memory.h"

#include <iterator>

#include "runtime/error.h"

namespace plumbline::partition {
namespace {

/// Calls `visit` for each result that is not a tuple.
template <class Visit>
void for_each_result(const JointResult& result, Visit&& visit) {
  if (result.kind != JointResult::Kind::Tuple) {
    visit(result);
    return;
  }
  for (const JointResult& item : result.items) for_each_result(item, visit);
}

bool is_held_anyway(const JointNode& node) {
  return (node.is_input() && node.kind != JointKind::Tangent) || node.kind == JointKind::GetAttr;
}

/// The index of the first result of each tuple item.
class TupleItems {
 public:
  explicit TupleItems(size_t nodes) : first_(nodes, -1) {}

  void add(NodeIndex node, const JointResult& tuple, int32_t begin) {
    first_[node] = static_cast<int32_t>(begin_.size());
    for (const JointResult& item : tuple.items) {
      begin_.push_back(begin);
      for_each_result(item, [&](const JointResult&) { ++begin; });
    }
    begin_.push_back(begin);
  }
  int32_t begin(NodeIndex tuple, int64_t item) const {
    PLUMBLINE_CHECK(first_[tuple] >= 0 && item >= 0 && first_[tuple] + item < std::ssize(begin_),
                    "a getitem beyond its tuple");
    return begin_[first_[tuple] + item];
  }

 private:
  std::vector<int32_t> first_;  ///< by node: index into begin_; -1 for a node that is not a tuple
  std::vector<int32_t> begin_;  ///< by item, plus one more per tuple
};

}  // namespace

ResultMemory::ResultMemory(const JointGraph& graph, const JointEdges& edges) {
  const auto n = static_cast<NodeIndex>(graph.nodes.size());
  const std::vector<char> held = storages_held_anyway(graph);
  constexpr int32_t kUnknown = -1;
  std::vector<int32_t> storage;  // by result
  TupleItems items(n);
  // By storage: the first result in it, among the inputs of `offered_to` or its own results.
  std::vector<int32_t> offered(graph.storage_bytes.size(), 0);
  std::vector<NodeIndex> offered_to(graph.storage_bytes.size(), kNoNode);

  first.reserve(n + 1);
  const auto push = [&](int32_t in, int32_t of_storage, int64_t size) {
    const auto here = static_cast<int32_t>(shares.size());
    shares.push_back(in < 0 ? here : in);
    origin.push_back(in < 0 ? here : origin[in]);
    storage.push_back(of_storage);
    bytes.push_back(size);
  };
  for (NodeIndex i = 0; i < n; ++i) {
    const JointNode& node = graph.nodes[i];
    const auto inputs = edges.inputs(i);
    first.push_back(static_cast<int32_t>(shares.size()));
    if (node.kind == JointKind::GetItem) {
      const int64_t item = node.args[1].integer;
      for (int32_t r = items.begin(inputs[0], item); r < items.begin(inputs[0], item + 1); ++r)
        push(r, storage[r], bytes[r]);
    } else {
      for (const NodeIndex input : inputs)
        for (int32_t r = first[input]; r < first[input + 1]; ++r)
          if (storage[r] != kUnknown && offered_to[storage[r]] != i) {
            offered_to[storage[r]] = i;
            offered[storage[r]] = r;
          }
      for_each_result(node.out, [&](const JointResult& result) {
        if (result.kind != JointResult::Kind::Tensor) {
          push(-1, kUnknown, 0);
        } else if (result.storage < 0) {
          push(-1, kUnknown, is_held_anyway(node) ? 0 : result.bytes);
        } else {
          const int32_t s = result.storage;
          const bool is_offered = offered_to[s] == i;
          if (!is_offered) {
            offered_to[s] = i;
            offered[s] = static_cast<int32_t>(shares.size());
          }
          push(is_offered ? offered[s] : -1, s, held[s] ? 0 : graph.storage_bytes[s]);
        }
      });
    }
    if (node.out.kind == JointResult::Kind::Tuple) items.add(i, node.out, first[i]);
  }
  first.push_back(static_cast<int32_t>(shares.size()));
}

bool ResultMemory::makes_memory(NodeIndex node) const {
  for (int32_t r = begin(node); r < end(node); ++r)
    if (shares[r] == r) return true;
  return begin(node) == end(node);
}

std::vector<char> storages_held_anyway(const JointGraph& graph) {
  std::vector<char> held(graph.storage_bytes.size(), 0);
  for (const JointNode& node : graph.nodes)
    if (is_held_anyway(node) && node.out.kind == JointResult::Kind::Tensor && node.out.storage >= 0)
      held[node.out.storage] = 1;
  return held;
}

}  // namespace plumbline::partition
