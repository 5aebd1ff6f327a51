// trace_joint(): the forward of a captured graph and its backward, as one JointGraph.
//
// The forward runs once, really, on the given inputs, and autograd's backward after it; both are recorded below
// autograd (runtime/capture/interpose.h) and functionalised: nothing in the joint graph writes in place, and what the
// forward wrote into buffers comes out as further forward outputs, to be copied back afterwards (the epilogue). Random
// numbers and strides are those of eager mode, of which a run before tells (eager_layouts.h).
// Parameters, buffers, inputs and the default generator are as before when it returns. The graph is specialised to the
// shapes of the inputs.
//
// After AOTAutograd's joint tracing (torch/_functorch/aot_autograd.py); see also _functorch/partitioners.py.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Where a primal comes from.
struct PrimalSource {
  enum class Kind : uint8_t { Attribute, Input };
  Kind kind = Kind::Input;
  int index = 0;  ///< in Graph::attributes or Graph::inputs
};

struct JointTrace {
  /// Primals: first the attributes that the graph uses, in their order (parameters and buffers), then the inputs.
  /// Named primals_1, ... and tangents_1, ... as AOTAutograd does; calls by their operator (mm, mm_1). FLOPs are not
  /// counted: see joint_flops.h.
  JointGraph graph;
  std::vector<PrimalSource> primals;
  /// Constant tensors of the graph, by JointNode::attribute.
  std::map<std::string, at::Tensor> constants;
  /// The forward outputs are first the traced graph's own, `num_outputs` of them (kNoNode for None), then the new
  /// contents of written primals, one for each of `written` (index among the primals).
  int num_outputs = 0;
  std::vector<int> written;
  /// By tangent: of which of the traced graph's outputs it is the gradient.
  std::vector<int> tangent_of;
  /// Indices among the primals that are parameters or buffers (PartitionOptions::static_inputs).
  std::vector<int> static_inputs;
};

struct TraceOptions {
  /// Takes dropout as one operator, native_dropout, as AOTAutograd does, and not as the bernoulli, div and mul that it
  /// is made of on CPU. The mask is the same; the scaled values may differ in their last bit from eager's.
  bool native_dropout = false;
};

/// `graph` is bound (its attributes hold tensors). `inputs` in its order, those that require a gradient get one.
/// Throws InputError for inputs of another number, dtype or shape than the captured ones, and CaptureError (one as
/// well) naming operator and node for what cannot be traced: a number or a shape read from a tensor, which the trace
/// would freeze; an explicit generator; a write that cannot be made a new value; results that are not dense.
JointTrace trace_joint(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                       const TraceOptions& options = {});

}  // namespace plumbline::partition
