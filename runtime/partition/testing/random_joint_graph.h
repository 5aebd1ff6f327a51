// For tests: small random joint graphs with everything that makes partitioning hard: views, several outputs, values
// that only the backward uses, forward values returned as gradients, calls that may not be recomputed; optionally calls
// with effects, symbolic scalars, and binding or missing marks.
#pragma once

#include <random>

#include "runtime/partition/testing/joint_graph_builder.h"

namespace plumbline::testing {

struct RandomJointOptions {
  int primals = 3;
  int forward_calls = 8;  ///< calls with several results count once
  int backward_calls = 8;
  int max_outputs = 2;     ///< of the forward; one tangent for each
  double views = 0.25;     ///< share of the calls that are views
  double multi = 0.12;     ///< share of the calls with several results (split, native_layer_norm)
  double intensive = 0.2;  ///< share of mm
  double seeded = 0.08;    ///< share of native_dropout, and of attention without dropout, which also takes a seed
  double unclaimed = 0.1;  ///< share of the backward's calls that read only forward values
  double tags = 0;         ///< share of the forward's calls with a checkpoint policy (not views, not getitems)
  double effects = 0;      ///< share of impure calls, some of which return nothing, some write
  double scalars = 0;      ///< share of calls that return an integer; others then read some, the forward may return one
  double unmarked = 0;     ///< share of the calls without the mark of their half
  double bound = 0;        ///< share of the calls marked as bound to their half (not views)
  int max_bytes = 64;      ///< of a tensor; a multiple of 4
  bool flops = false;      ///< mm costs thousands of FLOPs instead of 1
};

/// Valid by construction: topological order, one gradient or None for each primal. Calls are in the order in which they
/// were made, named as by JointGraphBuilder, and may be dead.
partition::JointGraph random_joint_graph(std::mt19937& random, const RandomJointOptions& options = {});

}  // namespace plumbline::testing
