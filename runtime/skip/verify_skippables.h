// verify_skippables(): checks that the declarations of a model's skippable modules match, without running the model.
//
// After verify_skippables() of torchgpipe (skip/skippable.py), with its messages. It also sees skippable modules inside
// others, reports an instance that appears in two places, and reports in a fixed order.
#pragma once

namespace torch::nn {
class Module;
}

namespace plumbline::skip {

/// `model` calls its children in the order of registration, and those theirs, as a Sequence does. A name denotes a pair
/// of stash and pop: an earlier module stashes what a later one pops, in the same namespace, and everything is stashed
/// once and popped once. For a skippable module inside another one, its pops come after the outer module's pops, and
/// its stashes before the outer module's.
///
/// Throws InputError with all problems, one per line, after "one or more pairs of stash and pop do not match:". A layer
/// is named as in the model: "0", "encoder.0".
void verify_skippables(const torch::nn::Module& model);

}  // namespace plumbline::skip

namespace plumbline {
using skip::verify_skippables;
}  // namespace plumbline
