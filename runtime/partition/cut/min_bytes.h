// The provably fewest saved bytes: a minimum cut over storages instead of nodes.
//
// Objective: the total size of the storages behind the saved values, each storage once; storages of the forward's
// inputs are free. (A saved view keeps its whole storage alive, so it costs the whole storage; once a storage is paid
// for, all its views are free.) An input that is overwritten after the forward cannot be saved. Symbolic scalars have
// no storage; among cuts of equal bytes, the cut with the fewest scalars is taken.
//
// The policy decides which calls the backward may recompute: all but compute-intensive and random ones, without factors
// for distance or fusion. A node that only the backward uses runs only once, so these bans do not apply to it; draws
// and effects of the model's backward stay in the backward (halves.h). Calls with effects never run twice. User tags
// override the policy: MUST_SAVE forbids recomputing; MUST_RECOMPUTE and PREFER_RECOMPUTE allow recomputing and forbid
// saving. A MUST_SAVE tag on a view applies to its storage.
//
// This is a minimum cut although views share the price of their storage: a view is a call whose only tensor input is in
// its storage, so the storage's first tensor (its base) suffices to make it. Saving the base instead of a view costs
// the same, and all views can be made from the base. So only the base has a priced edge, and views are recomputed. If a
// tag forbids saving the base, the topmost savable views replace it and share one edge. (Without this structure the
// shared price is not a submodular function, and no cut expresses the problem.) A result that shares a storage in
// another way, such as an alias made by a call that may not be recomputed or that needs another tensor, is priced
// separately; only then is the number of bytes an upper bound.
//
// Of all cuts with the fewest bytes, the one nearest to the backward is taken: it recomputes a subset of the calls that
// any other such cut recomputes, so it is the cheapest for any costs of calls.
#pragma once

#include "runtime/partition/cut/min_cut.h"

namespace plumbline::partition {

/// Ignores nodes that only dead nodes need, so dead nodes need not be removed first. CutResult::saved includes the
/// inputs of the forward that the backward reads; CutResult::banned has all nodes that must not be recomputed. Throws
/// InputError, with a chain of named nodes, if a needed value can be neither saved nor recomputed.
CutResult min_bytes_cut(const CutInput& input);

}  // namespace plumbline::partition
