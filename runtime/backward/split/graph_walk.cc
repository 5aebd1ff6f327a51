#include "runtime/backward/split/graph_walk.h"

#include <utility>

namespace plumbline::backward {

using torch::autograd::Edge;
using torch::autograd::Node;

/// A node whose edges are being walked.
struct GraphWalk::Frame {
  Node* node;
  uint32_t next = 0;
  bool reaches_input = false;
};

GraphWalk::GraphWalk(const torch::autograd::edge_list& roots, const StageInputs& inputs) {
  std::vector<Frame> open;
  for (const Edge& root : roots)
    if (!inputs.contains(root)) walk(root.function.get(), inputs, open);
}

void GraphWalk::walk(Node* root, const StageInputs& inputs, std::vector<Frame>& open) {
  if (!index_.emplace(root, -1).second) return;
  open.push_back({root});
  while (!open.empty()) {
    Frame& top = open.back();
    const torch::autograd::edge_list& edges = std::as_const(*top.node).next_edges();
    if (top.next < edges.size()) {
      const Edge& edge = edges[top.next++];
      if (!edge.is_valid()) continue;
      if (inputs.contains(edge)) {
        top.reaches_input = true;
        continue;
      }
      const auto [entry, is_new] = index_.emplace(edge.function.get(), -1);
      if (is_new)
        open.push_back({edge.function.get()});  // `top` may dangle from here on
      else
        top.reaches_input = top.reaches_input || reaches_input_[entry->second];
      continue;
    }
    const Frame done = top;
    open.pop_back();
    index_[done.node] = static_cast<int>(nodes_.size());
    nodes_.push_back(done.node);
    reaches_input_.push_back(done.reaches_input);
    if (!open.empty()) open.back().reaches_input = open.back().reaches_input || done.reaches_input;
  }
}

}  // namespace plumbline::backward
