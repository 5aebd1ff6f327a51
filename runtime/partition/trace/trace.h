// trace_joint(): records the forward of a captured graph and its backward as one JointGraph.
//
// The forward executes on the given inputs, followed by autograd's backward. Both are recorded below autograd
// (runtime/capture/interpose.h) and functionalised: no call of the joint graph writes in place, and the new contents of
// written buffers are additional forward outputs, which the caller copies back afterwards (the epilogue). Random
// numbers and strides are those of eager mode; an additional run before the trace finds the strides (eager_layouts.h).
// Parameters, buffers, inputs and the CPU's default generator do not change. The graph is specialised to the shapes of
// the inputs.
//
// After AOTAutograd's joint tracing (torch/_functorch/aot_autograd.py); see also _functorch/partitioners.py.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// The origin of a primal.
struct PrimalSource {
  enum class Kind : uint8_t { Attribute, Input };
  Kind kind = Kind::Input;
  int index = 0;  ///< index into Graph::attributes or Graph::inputs, by `kind`
};

struct JointTrace {
  /// Primals: first the parameters and buffers that the traced graph uses, in the order of Graph::attributes, then the
  /// inputs. Named primals_1, ... and tangents_1, ... as in AOTAutograd; calls are named after their operator (mm,
  /// mm_1). Dead calls are removed and FLOPs counted (joint_flops.h).
  JointGraph graph;
  std::vector<PrimalSource> primals;  ///< in the order of the primals in `graph`
  /// Constant tensors of the graph, by JointNode::attribute.
  std::map<std::string, at::Tensor> constants;
  /// Number of outputs of the traced graph. They are the first forward outputs of `graph` (kNoNode for None); after
  /// them come the new contents of the written primals, in the order of `written`.
  int num_outputs = 0;
  std::vector<int> written;  ///< positions among the primals
  /// For each tangent, the index of the traced graph's output of which it is the gradient.
  std::vector<int> tangent_of;
  /// Positions among the primals of parameters and buffers (PartitionOptions::static_inputs).
  std::vector<int> static_inputs;
};

/// Traces `graph`, whose attributes must hold tensors, on `inputs`, in the order of Graph::inputs. Inputs and
/// parameters that require a gradient receive one. Throws InputError if the inputs differ from the captured ones in
/// number, dtype or shape, or if one is a number. Throws CaptureError (an InputError), naming operator and node, for a
/// call that cannot be traced: it reads a number or a shape from a tensor's data, which the trace would freeze; it uses
/// an explicit generator; it writes in a way that functionalisation does not support; or its result is not dense.
JointTrace trace_joint(const graph::Graph& graph, const std::vector<at::Tensor>& inputs);

}  // namespace plumbline::partition
