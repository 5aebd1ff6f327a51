// The fewest saved bytes, proven: a minimum cut over storages instead of nodes.
//
// What is minimised: the bytes of the storages behind the saved values, each storage once, those of primals and other
// inputs free. (A saved view keeps its whole storage alive, so that is what it costs; and once a storage is paid for,
// every view of it comes for nothing.) Symbolic scalars have no storage; of equal bytes the fewest are saved.
//
// What may be computed again in the backward is the policy's word: calls that are compute-intensive or random may not,
// everything else may, without factors for distance or fusion. What neither the forward's outputs nor what must run
// there needs runs only once and is not banned; what the model drew or did in its backward is the backward's
// (halves.h). Calls with effects never run twice. A user's tags go before the policy: MUST_SAVE forbids, MUST_RECOMPUTE
// and PREFER_RECOMPUTE allow to compute again and forbid to save. A tag MUST_SAVE on a view holds for the storage.
//
// Why this is a minimum cut although the price of a storage is shared by its views: views are calls that read nothing
// but their storage, and need only its first tensor (its base), so whoever saves a view may save the base in its place
// for the same price, and make all the views from it. So only the base has an edge with a price, and views are made
// again. A base that a tag forbids to save is replaced by the topmost views that may be saved, which share one edge.
// (Without this structure the shared price is not a submodular function, and the problem is none of cuts.)
// A result that shares a storage in another way, as an alias made by a call that may not run again or that needs more
// than the storage, pays for itself; only then is the answer an upper bound.
//
// Of all cuts with the fewest bytes it is the one nearest to the backward: the calls that it computes again are a
// subset of those of any other, so that it costs the least whatever a call takes.
#pragma once

#include "runtime/partition/cut/min_cut.h"

namespace plumbline::partition {

/// Nodes that are needed only by what the outputs do not use are left alone, so the graph need not be clean.
/// Throws InputError where something can neither be saved nor computed again, with a chain of named nodes.
CutResult min_bytes_cut(const CutInput& input);

}  // namespace plumbline::partition
