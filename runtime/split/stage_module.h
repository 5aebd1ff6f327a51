// StageModule: one stage of a pipe as something that runs by itself, with tensors of its own.
//
// After get_stage_module() and build_stage() of PyTorch's torch.distributed.pipelining (_IR.py).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/interpreter.h"
#include "runtime/split/pipe.h"

namespace plumbline::split {

class StageModule {
 public:
  /// `graph` bound to the tensors of `state`.
  StageModule(graph::Graph graph, StageState state);

  /// The stage's outputs from its inputs, both in the order of its graph, with autograd. Throws InputError for another
  /// number of inputs.
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs);

  const graph::Graph& graph() const { return *graph_; }
  const StageState& state() const { return state_; }
  /// Parameters and persistent buffers under all their names, which are the model's.
  std::map<std::string, at::Tensor> state_dict() const;

 private:
  std::unique_ptr<const graph::Graph> graph_;
  StageState state_;
  graph::Interpreter interpreter_;
};

/// Stage `stage` of `pipe`, on the tensors that were captured (copies of what an earlier stage owns already). Throws
/// InputError when there is no such stage, naming those there are.
StageModule get_stage_module(const Pipe& pipe, int stage);

/// The same on another device: its tensors moved, and the devices that its calls name rewritten.
StageModule build_stage(const Pipe& pipe, int stage, c10::Device device);

}  // namespace plumbline::split
