// The facts about each node of a joint graph that the rules of a cut read, computed once for all cuts.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/joint/effects.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct Policy;

/// A compact copy of the properties of one JointNode that rules test; the facts of all nodes are contiguous.
struct NodeFacts {
  int64_t bytes = 0;                  ///< cut_bytes()
  bool input : 1 = false;             ///< JointNode::is_input()
  bool primal : 1 = false;            ///< JointKind::Primal
  bool forward_seed : 1 = false;      ///< JointKind::ForwardSeed
  bool tangent : 1 = false;           ///< JointKind::Tangent
  bool call : 1 = false;              ///< JointKind::Call or GetItem
  bool getitem : 1 = false;           ///< JointKind::GetItem
  bool lift : 1 = false;              ///< aten::lift_fresh or lift_fresh_copy
  bool view : 1 = false;              ///< the operator is in Policy::view
  bool collective : 1 = false;        ///< a call of _c10d_functional
  bool effects : 1 = false;           ///< has_effects()
  bool only_in_backward : 1 = false;  ///< Policy::halves says so
  bool must_save : 1 = false;         ///< tagged MUST_SAVE
  bool must_recompute : 1 = false;    ///< tagged MUST_RECOMPUTE or PREFER_RECOMPUTE
  bool tensor : 1 = false;    ///< the result is one tensor; a node that is neither this nor `symbolic` cannot be saved
  bool symbolic : 1 = false;  ///< the result is a symbolic scalar
  bool symbolic_float : 1 = false;       ///< the result is a symbolic float
  bool symbolic_noninteger : 1 = false;  ///< the result is a symbolic float or bool
  bool updated_later : 1 = false;        ///< JointNode::epilogue_mutation
};

/// Every vector is indexed by NodeIndex.
struct OpClasses {
  /// The operator is in Policy's table of that name; `recomputable` includes pointwise operators if the policy does.
  std::vector<char> recomputable, random, compute_intensive;
  std::vector<char> fusible;  ///< recomputable or random: may be fused with other fusible nodes
  std::vector<char> cat;      ///< aten::cat: any producer may be fused into it
  std::vector<NodeFacts> facts;
  std::vector<HalfMarks> halves;  ///< half_marks() of each node
};
/// Classifies all nodes in one pass.
OpClasses classify_ops(const JointGraph& graph, const Policy& policy);

/// Whether a node's result has less than a quarter of the bytes of its inputs: those that are direct positional
/// arguments, each as often as it occurs.
bool reduces(const JointGraph& graph, const JointEdges& edges, NodeIndex index, const OpClasses& ops,
             const Policy& policy);

/// Returns the bytes that a cut counts for a node: a tensor's bytes, the sum over a tuple's tensors, 1 for a symbolic
/// scalar, 0 without a result.
int64_t cut_bytes(const JointNode& node);

}  // namespace plumbline::partition
