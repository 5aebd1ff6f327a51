// Pipe: a graph cut into stages. Each stage owns its parameters and buffers under their original names; each value that
// crosses from one stage to another is a boundary, with a direct edge from the stage that makes it to every stage that
// uses it (a skip connection is a boundary whose consumer is not the next stage). If values hop from stage to stage,
// each hop is a boundary: its producer forwards the value it received.
//
// The behaviour follows PyTorch's torch.distributed.pipelining (_IR.py): stages are numbered in program order, a
// parameter used by several stages is replicated, one copy per stage, or transmitted: then it is a boundary value of
// the stage that owns it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

struct Boundary {
  /// Named after the module that made it (runtime/split/cut/boundary_names.h), or the model input that later stages
  /// use.
  std::string name;
  /// Shape, dtype and requires_grad as captured.
  graph::Value value;
  int producer = 0;
  /// The index among the outputs of the producer's graph.
  int output = 0;
  struct Consumer {
    int stage;
    int input;  ///< the index among the inputs of the consumer's graph
  };
  /// Ascending by stage; one entry for each consuming stage.
  std::vector<Consumer> consumers;
  /// Whether a gradient returns: the value requires one, and the loss depends on it.
  bool has_gradient = false;
};

struct Stage {
  /// Inputs: for stage 0 the model's, in order; for the others the boundaries listed in `inputs`. Outputs: for the last
  /// stage the model's, in order; for the others the boundaries listed in `outputs`.
  graph::Graph graph;
  std::vector<int> inputs;
  std::vector<int> outputs;
};

/// A parameter that several stages use; each has a copy.
struct SharedParameter {
  std::string name;
  std::vector<int> stages;  ///< ascending
};

struct Pipe {
  std::vector<Stage> stages;
  std::vector<Boundary> boundaries;
  std::vector<SharedParameter> shared;

  int num_stages() const { return static_cast<int>(stages.size()); }
};

/// The tensors that one stage owns, by canonical name. They outlive the graphs that use them: a shape captured later is
/// bound to the same tensors.
struct StageState {
  std::map<std::string, at::Tensor> parameters;
  std::map<std::string, at::Tensor> buffers;
};

/// The state of `stage`. Tensors are the captured ones, but a stage that is not the first to use a tensor gets a copy.
StageState make_stage_state(const Pipe& pipe, int stage);

/// The content of a stage's checkpoint: its parameters and persistent buffers under all their names, which are those of
/// the model. `state` is that of the stage whose graph this is.
std::map<std::string, at::Tensor> state_dict(const graph::Graph& graph, const StageState& state);

/// Binds the parameters and buffers that `graph` uses to those of `state`; constants stay the graph's own. Throws
/// InputError naming one that `state` lacks.
void bind(graph::Graph& graph, const StageState& state);

}  // namespace plumbline::split
