// The contract between the cut (cut.h) and autograd nodes of ours that know about halves.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace plumbline::backward {

/// The handle that holds an autograd node: an intrusive pointer since LibTorch 2.15, a shared one before.
using NodeHandle = decltype(torch::autograd::Edge::function);

/// A node that may be executed twice, first with only the edges towards inputs valid, then with only those towards
/// parameters, and keeps for itself what it needs in between: the cut stores no gradient for it, and its second
/// execution gets undefined gradients. It sees what is asked for with should_compute_output(). In a full backward it is
/// executed once with all edges. What it saved is released when it has run, after either half: release_variables() must
/// leave what the second half needs, and unless a graph is retained there is one first half only.
struct HalvedNode : torch::autograd::Node {
  using Node::Node;
};

}  // namespace plumbline::backward
