// The facts that the rules of a cut need about each node of one joint graph, looked up once.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

struct Policy;

/// A JointNode is large and a graph has many; here the facts are contiguous.
struct NodeFacts {
  int64_t bytes = 0;       ///< cut_bytes()
  bool input : 1 = false;  ///< of any kind
  bool primal : 1 = false;
  bool forward_seed : 1 = false;
  bool call : 1 = false;  ///< getitems too
  bool getitem : 1 = false;
  bool lift : 1 = false;        ///< aten::lift_fresh or lift_fresh_copy
  bool view : 1 = false;        ///< its operator is one of Policy::view
  bool collective : 1 = false;  ///< of _c10d_functional
  bool must_save : 1 = false;
  bool must_recompute : 1 = false;
  bool tensor : 1 = false;  ///< its result is a tensor; otherwise a scalar, or nothing that can be saved
  bool symbolic : 1 = false;
  bool symbolic_float : 1 = false;
  bool symbolic_noninteger : 1 = false;
  bool updated_later : 1 = false;  ///< JointNode::epilogue_mutation
  bool reduces : 1 = false;        ///< to less than a quarter of the bytes of its direct positional arguments
};

/// All by node.
struct OpClasses {
  std::vector<char> recomputable, random, compute_intensive;
  std::vector<char> fusible;  ///< recomputable or random: may be fused with other fusible nodes
  std::vector<char> cat;      ///< aten::cat: any producer may be fused into it
  std::vector<NodeFacts> facts;
};
OpClasses classify_ops(const JointGraph& graph, const Policy& policy);

/// The bytes that a cut counts for a node: a tensor's bytes, the sum over a tuple, 1 for a symbolic scalar.
int64_t cut_bytes(const JointNode& node);

}  // namespace plumbline::partition
