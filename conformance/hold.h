// hold(): runs your model, cut before the modules that you name, as a pipeline, and compares it with the whole model on
// one device.
//
//   struct Net : torch::nn::Module {
//     torch::nn::Linear a = register_module("a", torch::nn::Linear(16, 16));
//     torch::nn::Linear b = register_module("b", torch::nn::Linear(16, 16));
//     at::Tensor forward(at::Tensor x) { return plumbline::call(b, at::gelu(plumbline::call(a, x))); }
//   };
//   int main() {
//     return plumbline::hold<Net>({.split = {"b"}, .inputs = {at::randn({8, 16})}, .loss = {LossKind::Sum}});
//   }
//
// There is one stage more than split points. The schedule determines the number of ranks (for 4 stages, 1f1b needs 4
// and
// zb-v 2). Ranks are threads of this process or, under mpirun, its processes; a schedule that needs another number of
// processes is unsupported.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference/case.h"
#include "runtime/capture/call.h"
#include "runtime/microbatch/chunk_spec.h"

namespace plumbline::conformance {

struct HoldOptions {
  /// Qualified names of the modules before which a stage begins; forward enters them through plumbline::call().
  std::vector<std::string> split;
  /// One batch, which every step uses.
  std::vector<at::Tensor> inputs;
  at::Tensor target = {};
  reference::LossSpec loss = {};
  /// How each input is divided; empty: all along dimension 0.
  std::vector<microbatch::ChunkSpec> chunks = {};
  int microbatches = 4;
  std::string schedules = "*";  ///< a pattern of names
  std::vector<reference::Step> steps = {reference::StepKind::Train};
  reference::OptimizerSpec optimizer = {};
  uint64_t seed = 1;
};

/// The module and its forward call.
struct OwnModel {
  std::shared_ptr<torch::nn::Module> module;
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> forward;
};

/// Constructs the model for each rank and each oracle, each time after at::manual_seed(seed). Prints the matrix and the
/// first differences. Returns the exit code: 0 all equal, 1 a result differs, 2 the model cannot be cut or captured.
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

/// For a module with a default constructor whose forward takes tensors and returns one (or a vector of them).
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
