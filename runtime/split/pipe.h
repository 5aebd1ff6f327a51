// Pipe: a graph cut into stages. Each stage owns its parameters and buffers under their original names. Each value that
// crosses from one stage to others is a boundary, with an edge from the producer to every stage that uses the value (a
// skip connection is a boundary whose consumer is not the next stage). With Route::Chain and Neighbours each hop is a
// boundary, whose producer forwards the value that it received.
//
// The behaviour follows PyTorch's torch.distributed.pipelining (_IR.py): stages are numbered in program order, and a
// parameter used by several stages is either replicated (one copy per stage) or transmitted (a boundary value of the
// stage that owns it).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

struct Boundary {
  /// The name of the value (cut/boundary_names.h), of the transmitted parameter or buffer, or "random state".
  std::string name;
  /// Shape and dtype as captured; requires_grad at the border.
  graph::Value value;
  /// The stage that sends the value.
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
  /// Inputs: of stage 0 the model's, in order; of the others the boundaries in `inputs`. Outputs: of the last stage the
  /// model's, in order, and None in place of the local losses of other stages; of the others the boundaries in
  /// `outputs`, then the stage's local losses.
  graph::Graph graph;
  std::vector<int> inputs;   ///< indices into Pipe::boundaries; empty for stage 0
  std::vector<int> outputs;  ///< indices into Pipe::boundaries; empty for the last stage
};

/// A scalar that a stage makes and keeps, and from which its backward begins, in addition to the gradients of its
/// outputs: an auxiliary loss.
struct LocalLoss {
  int stage = 0;
  int output = 0;        ///< the index among the outputs of the stage's graph
  int model_output = 0;  ///< the index among the outputs of the model
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
  std::vector<LocalLoss> local_losses;  ///< in the order of SplitOptions::local_losses
  /// Whether forward returned before the last stage (SplitOptions::exits_early), so that there are fewer stages than
  /// the points make, and parameters and buffers that forward did not use are in no stage.
  bool ends_early = false;

  int num_stages() const { return static_cast<int>(stages.size()); }
};

/// The tensors that one stage owns, by canonical name (Attribute::name). They outlive the graphs that use them: a graph
/// captured later for other shapes is bound to the same tensors.
struct StageState {
  std::map<std::string, at::Tensor> parameters;
  std::map<std::string, at::Tensor> buffers;
};

/// Returns the state of `stage`: the captured tensors, or a copy of a tensor that an earlier stage also owns.
StageState make_stage_state(const Pipe& pipe, int stage);

/// Returns the content of a stage's checkpoint: its parameters and persistent buffers under all their names in the
/// model; shares the tensors of `state`. `graph` and `state` must belong to the same stage.
std::map<std::string, at::Tensor> state_dict(const graph::Graph& graph, const StageState& state);

/// Binds the parameters and buffers that `graph` uses to the tensors of `state`; constants keep their tensors. Throws
/// InputError naming a parameter or buffer that `state` lacks.
void bind(graph::Graph& graph, const StageState& state);

}  // namespace plumbline::split
