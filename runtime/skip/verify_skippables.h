// verify_skippables(): checks the declarations of a model's skippable modules without running the model.
//
// After verify_skippables() of torchgpipe (skip/skippable.py), with its messages. Unlike there, the check includes
// skippable modules inside other modules, reports an instance that appears in two places, and has a fixed order.
#pragma once

namespace torch::nn {
class Module;
}

namespace plumbline::skip {

/// Every module must call its children in the order of registration, as a Sequence does. Each key (namespace and name)
/// must be stashed exactly once and popped exactly once, by a later module than the one that stashes it. If a skippable
/// module contains another one, the inner module's pops come after the outer module's pops, and its stashes before the
/// outer module's stashes.
///
/// Throws InputError with all problems, one per line, after "one or more pairs of stash and pop do not match:". A
/// module is named by its path in the model: "0", "encoder.0".
void verify_skippables(const torch::nn::Module& model);

}  // namespace plumbline::skip

namespace plumbline {
using skip::verify_skippables;
}  // namespace plumbline
