// hold(): runs a custom model as a pipeline, cut before modules that the caller names, and judges the results against
// the whole model on one device.
//
//   struct Net : torch::nn::Module {
//     torch::nn::Linear a = register_module("a", torch::nn::Linear(16, 16));
//     torch::nn::Linear b = register_module("b", torch::nn::Linear(16, 16));
//     at::Tensor forward(at::Tensor x) { return plumbline::call(b, at::gelu(plumbline::call(a, x))); }
//   };
//   int main() {
//     return plumbline::hold<Net>(
//         {.split = {"b"}, .inputs = {at::randn({8, 16})}, .loss = {plumbline::LossKind::Sum}});
//   }
//
// There is one stage more than split points. Without mpirun, ranks are threads of this process, and the schedule
// determines their number (for 4 stages, 1f1b needs 4 and zb-v 2). Under mpirun, ranks are the processes: their number
// must divide the number of stages, and a schedule that needs another number of ranks is reported as unsupported.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference/case.h"
#include "runtime/capture/call.h"
#include "runtime/microbatch/chunk_spec.h"
#include "runtime/microbatch/targets.h"

namespace plumbline::conformance {

struct HoldOptions {
  /// Qualified names of the modules before which a stage begins; forward enters them through plumbline::call().
  std::vector<std::string> split;
  /// The batch, which every step uses; inputs get no gradients. Floating-point inputs and the parameters have one type,
  /// float32, bfloat16, float16 or float64, or some have float32 and the others bfloat16.
  std::vector<at::Tensor> inputs;
  /// Required by LossKind::Mse and LossKind::CrossEntropy: a tensor for output 0, or one for each of the first outputs.
  Targets target = {};
  reference::LossSpec loss = {};
  /// How each input is divided into micro-batches; inputs without an entry are divided along dimension 0.
  std::vector<microbatch::ChunkSpec> chunks = {};
  int microbatches = 4;
  std::string schedules = "*";  ///< a shell pattern for names of schedules
  std::vector<reference::Step> steps = {reference::StepKind::Train};
  reference::OptimizerSpec optimizer = {};
  uint64_t seed = 1;  ///< of the parameters and of random layers
};

/// A custom model: its root module, and its forward from the inputs to the outputs.
struct OwnModel {
  std::shared_ptr<torch::nn::Module> module;
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> forward;
};

/// Runs the model under every matching schedule, prints the matrix and one line for each verdict, and returns the exit
/// code of the process. Every rank and every oracle constructs its own model: `make` is called from any thread, but
/// never concurrently, each time with the default generator seeded with `seed`. It must not return a module twice.
///
/// 0: every result is equal, or this process is not rank 0 of an MPI run, in which only rank 0 judges. 1: a result
/// differs, the oracles disagree, or a run ends with an error or a time-out. 2: an option is invalid, the model cannot
/// be cut or captured, no schedule matches or can run, or the number of MPI processes does not fit. Throws nothing
/// derived from std::exception. Over MPI a process that finds an error when schedules have begun to run, or one other
/// than InputError before, names its rank and ends all processes with 1. Sets the number of LibTorch's threads to 1.
int hold(const std::function<OwnModel()>& make, const HoldOptions& options);

namespace detail {

template <class Net, class Output, class Owner, class... Inputs>
std::vector<at::Tensor> forward_on(Net& net, Output (Owner::*forward)(Inputs...),
                                   const std::vector<at::Tensor>& inputs) {
  return [&]<size_t... I>(std::index_sequence<I...>) -> std::vector<at::Tensor> {
    return {(net.*forward)(inputs.at(I)...)};
  }(std::index_sequence_for<Inputs...>{});
}

}  // namespace detail

/// hold() for a module class with a default constructor, whose forward takes tensors and returns a tensor or a vector
/// of tensors.
template <class Net>
int hold(const HoldOptions& options) {
  return hold(
      [] {
        auto net = std::make_shared<Net>();
        return OwnModel{net, [net](const std::vector<at::Tensor>& inputs) {
                          return detail::forward_on(*net, &Net::forward, inputs);
                        }};
      },
      options);
}

}  // namespace plumbline::conformance

namespace plumbline {
using conformance::hold;
}  // namespace plumbline
