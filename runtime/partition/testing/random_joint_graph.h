// For tests: small joint graphs at random, with what makes partitioning hard: views, several outputs, values that only
// the backward uses, forward values returned as gradients, calls that may not run again; if asked for, calls with
// effects, symbolic scalars, and marks that bind or are missing.
#pragma once

#include <random>

#include "runtime/partition/testing/joint_graph_builder.h"

namespace plumbline::testing {

struct RandomJointOptions {
  int primals = 3;
  int forward_calls = 8;  ///< multi-output calls count once
  int backward_calls = 8;
  int max_outputs = 2;     ///< of the forward; as many tangents
  double views = 0.25;     ///< share of the calls that are views
  double multi = 0.12;     ///< share of the calls with several results (split, native_layer_norm)
  double intensive = 0.2;  ///< share of mm
  double seeded = 0.08;    ///< share of native_dropout, and of attention without dropout, which is seeded as well
  double unclaimed = 0.1;  ///< share of the backward's calls that read only forward values
  double tags = 0;         ///< share of the forward's calls with a checkpoint policy (not views, not getitems)
  double effects = 0;      ///< share of impure calls, some of which give nothing, some write
  double scalars = 0;      ///< share of calls that give an integer; others then read some, the forward may return one
  double unmarked = 0;     ///< share of the calls without the mark of their half
  double bound = 0;        ///< share of the calls that are marked as bound to their half (not views)
  int max_bytes = 64;      ///< of a tensor; a multiple of 4
  bool flops = false;      ///< mm costs some thousands instead of 1
};

/// Valid by construction: topological order, one gradient for each primal or None. The order of the calls is that of
/// their making; names as JointGraphBuilder gives them. Calls may be dead.
partition::JointGraph random_joint_graph(std::mt19937& random, const RandomJointOptions& options = {});

}  // namespace plumbline::testing
