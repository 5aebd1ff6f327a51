// verify_skippables(): whether what a model's skippable modules declare fits together, without running it.
//
// After verify_skippables() of torchgpipe (skip/skippable.py), whose messages these are. It also sees skippable modules
// inside others, takes one instance that stands in two places for two layers, and reports in a fixed order.
#pragma once

namespace torch::nn {
class Module;
}

namespace plumbline::skip {

/// `model` calls its children in the order in which they are registered, and those theirs, as a Sequence does. A name
/// stands for a pair of stash and pop: what a module pops an earlier one stashed, in the same namespace, and everything
/// is stashed once and popped once. Of a skippable module inside another one the pops come after the other's pops, and
/// its stashes before the other's.
///
/// Throws InputError with everything that is wrong, a line each, after "one or more pairs of stash and pop do not
/// match:". A layer is named as in the model: "0", "encoder.0".
void verify_skippables(const torch::nn::Module& model);

}  // namespace plumbline::skip

namespace plumbline {
using skip::verify_skippables;
}  // namespace plumbline
