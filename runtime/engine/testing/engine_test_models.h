// Shared by the engine's tests: small models, plain autograd over the whole model, and a run of the engine over ranks
// that are threads. The oracle never captures and shares no code with the engine: it divides with at::tensor_split.
#pragma once

#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/capture/call.h"
#include "runtime/engine/engine.h"
#include "runtime/microbatch/chunk.h"
#include "runtime/microbatch/random_seed.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/split/module_pipe.h"
#include "runtime/testing/spawn.h"

namespace plumbline::testing {

using Tensors = std::vector<at::Tensor>;
using NamedTensors = std::map<std::string, at::Tensor>;

constexpr int kWidth = 6;

/// Numbers without a regular pattern: no random generator, so every rank makes the same.
inline at::Tensor waves(at::IntArrayRef sizes, double phase) {
  return at::arange(c10::multiply_integers(sizes), at::kDouble).mul(0.7371).add(phase).sin().to(at::kFloat).view(sizes);
}

struct Layer : torch::nn::Module {
  explicit Layer(double phase)
      : weight(register_parameter("weight", waves({kWidth, kWidth}, phase))),
        bias(register_parameter("bias", waves({kWidth}, phase + 0.5))) {}
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight, bias); }
  at::Tensor weight, bias;
};

/// Makes a value and its gradient contiguous.
struct Contiguous : torch::autograd::Function<Contiguous> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.contiguous(); }
  static Tensors backward(torch::autograd::AutogradContext*, const Tensors& grads) { return {grads[0].contiguous()}; }
};

/// Four layers, or one for each stage if there are more stages; `kind` selects a peculiarity.
struct Net : torch::nn::Module {
  Net(std::string kind, int stages, bool untied = false)
      : kind(std::move(kind)), stages(stages), depth(std::max(4, stages)) {
    if (this->kind == "unused") register_parameter("unused", waves({3}, 9));
    for (int i = 0; i < depth; ++i)
      layers.push_back(register_module("l" + std::to_string(i), std::make_shared<Layer>(i)));
    if (this->kind == "frozen")
      for (int i : {0, 2}) layers[i]->weight.requires_grad_(false), layers[i]->bias.requires_grad_(false);
    if (this->kind == "frozen early") layers[0]->weight.requires_grad_(false), layers[0]->bias.requires_grad_(false);
    if (this->kind == "two outputs") aux = register_module("aux", std::make_shared<Layer>(7));
    if (this->kind == "integers") codes.push_back(register_parameter("codes", waves({9, kWidth}, 5)));
    if (this->kind == "tied")
      for (int s = 0; s < (untied ? stages : 1); ++s)
        codes.push_back(register_parameter("tied" + std::to_string(s), waves({9, kWidth}, 5)));
    for (int i = 0; i < depth && this->kind == "whole numbers"; ++i) {
      const at::NoGradGuard no_grad;
      layers[i]->weight.round_(), layers[i]->bias.round_();  // to -1, 0 or 1
    }
    for (int i = 0; i < depth && this->kind == "batch norm"; ++i)
      norms.push_back(register_module("n" + std::to_string(i), torch::nn::BatchNorm1d(kWidth)));
  }

  int stage_of(int layer) const { return layer * stages / depth; }
  const at::Tensor& tied(int layer) const { return codes[codes.size() == 1 ? 0 : stage_of(layer)]; }

  void border(int layer) {
    if (layer > 0 && stage_of(layer) != stage_of(layer - 1)) capture::pipe_split();
    if (on_stage && (layer == 0 || stage_of(layer) != stage_of(layer - 1))) on_stage(stage_of(layer));
  }

  Tensors forward(const Tensors& in) {
    border(0);
    const bool whole_numbers = kind == "integers" || kind == "tied";
    at::Tensor h = kind == "tied" ? at::embedding(tied(0), in[0]) : whole_numbers ? in[0].to(at::kFloat).sin() : in[0];
    const at::Tensor code = kind == "integers" ? in[0].add(1).remainder(9) : at::Tensor();
    at::Tensor first, side;
    for (int i = 0; i < depth; ++i) {
      if (i > 0) border(i);
      if (contiguous_borders && i > 0 && stage_of(i) != stage_of(i - 1)) h = Contiguous::apply(h);
      if (kind == "whole numbers") {
        h = at::relu(layers[i]->forward(h));
        continue;
      }
      if (kind == "strided") {
        // Columns in memory order: kernels sum them in another order than rows.
        h = at::gelu(layers[i]->forward(h)).t().contiguous().t();
        h = h + h.sum(1, true).tanh();
        continue;
      }
      h = at::gelu(layers[i]->forward(h));
      if (kind == "batch norm") h = norms[i]->forward(h);
      if (kind == "dropout") h = at::dropout(h, 0.5, is_training());
      if (kind == "skip" && i >= 2) h = h + first;
      if (kind == "tied" && i == 1) h = h + at::matmul(at::matmul(h, tied(1).t()), tied(1));
      if (kind == "two outputs" && i == 1) side = aux->forward(h);
      if (kind == "integers" && i == depth - 1) h = h + at::embedding(codes[0], code).sum(1) * in[0].gt(3);
      if (i == 0) first = h;
    }
    if (kind == "tied") h = at::linear(h, tied(depth - 1));
    return side.defined() ? Tensors{h, side} : Tensors{h};
  }

  /// The stage that a parameter of this (untied) net belongs to; -1 if none uses it.
  int stage_of(const std::string& parameter) const {
    if (parameter == "unused") return -1;
    if (parameter == "codes" || parameter.starts_with("loss.")) return stages - 1;
    if (parameter.starts_with("tied")) return std::stoi(parameter.substr(4));
    return stage_of(parameter.starts_with("aux") ? 1 : std::stoi(parameter.substr(1)));
  }

  std::string kind;
  int stages, depth;
  std::vector<std::shared_ptr<Layer>> layers;
  std::shared_ptr<Layer> aux;
  std::vector<torch::nn::BatchNorm1d> norms;
  Tensors codes;
  /// Set by the oracle only: called at the beginning of a stage.
  std::function<void(int stage)> on_stage;
  /// Set by the oracle only: values cross borders as they do without EngineOptions::keep_strides.
  bool contiguous_borders = false;
};

inline at::Tensor batch_of(const std::string& kind, int64_t rows, double phase = 0.1) {
  const bool whole_numbers = kind == "integers" || kind == "tied";
  if (!whole_numbers) return waves({rows, kWidth}, phase);
  return waves({rows, kind == "tied" ? 3 : kWidth}, phase).mul(100).abs().to(at::kLong).remainder(9);
}

inline at::Tensor target_of(const std::string& kind, int64_t rows) {
  return kind == "tied" ? waves({rows, 3, 9}, 2.5) : waves({rows, kWidth}, 2.5);
}

inline at::Tensor mean_square(const Tensors& outputs, const at::Tensor& target) {
  return at::mse_loss(outputs[0], target);
}

/// All results of a run; gradients of every parameter, undefined if there is none.
struct Told {
  Tensors losses, outputs;
  NamedTensors gradients, buffers;
  /// By micro-batch: the parts from which the outputs were joined, if known.
  std::vector<Tensors> parts;
};

inline void expect_same(const at::Tensor& ours, const at::Tensor& theirs, const std::string& what) {
  ASSERT_EQ(ours.defined(), theirs.defined()) << what;
  if (!ours.defined()) return;
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  ASSERT_TRUE(at::equal(ours, theirs)) << what << " differs by up to " << (ours - theirs).abs().max().item();
}
inline void expect_same(const Tensors& ours, const Tensors& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (size_t i = 0; i < ours.size(); ++i) expect_same(ours[i], theirs[i], what + " " + std::to_string(i));
}
inline void expect_same(const NamedTensors& ours, const NamedTensors& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  for (const auto& [name, tensor] : theirs) {
    ASSERT_TRUE(ours.contains(name)) << what << " of " << name;
    expect_same(ours.at(name), tensor, what + " of " + name);
  }
}
inline void expect_same(const Told& ours, const Told& theirs) {
  expect_same(ours.losses, theirs.losses, "loss of micro-batch");
  expect_same(ours.outputs, theirs.outputs, "output");
  expect_same(ours.gradients, theirs.gradients, "gradient");
  expect_same(ours.buffers, theirs.buffers, "buffer");
}

/// Plain autograd over the whole module, micro-batch by micro-batch.
class Oracle {
 public:
  Oracle(std::string kind, int stages, int microbatches)
      : net(std::make_shared<Net>(kind, stages, /*untied=*/true)), microbatches_(microbatches) {
    at::set_num_threads(1);
  }

  Told train(const at::Tensor& x, const at::Tensor& target) {
    net->train();
    grads_of_.assign(microbatches_, {});
    Told told = forward(x, target, /*backward=*/true);
    ++step;
    NamedTensors of_step;
    for (const auto& item : net->named_parameters()) {
      // Copies of the stages and replicas are added in ascending order, before the division.
      at::Tensor& sum = of_step[item.key().starts_with("tied") ? "tied0" : item.key()];
      const int stage = net->stage_of(item.key());
      for (const std::vector<int>& order : orders_.empty() ? Orders{{}} : orders_.at(std::max(stage, 0))) {
        const at::Tensor grad = orders_.empty() ? item.value().grad() : in_order(item.key(), order);
        if (grad.defined()) sum = sum.defined() ? sum + grad : grad;
      }
      item.value().mutable_grad() = at::Tensor();
    }
    for (auto& [name, grad] : of_step) {
      if (grad.defined() && divide) grad = grad / microbatches_;
      at::Tensor& total = total_[name];
      if (grad.defined()) total = total.defined() ? total + grad : grad;
    }
    told.gradients = total_;
    return told;
  }

  Told evaluate(const at::Tensor& x, const at::Tensor& target) {
    const at::NoGradGuard no_grad;
    net->eval();
    return forward(x, target, /*backward=*/false);
  }

  /// From now on sums gradients in the order of `schedule` for each stage, and then over its replicas.
  void follow(const schedule::Schedule& schedule) {
    orders_.assign(schedule.stages, Orders(schedule.replicas()));
    for (const auto& actions : schedule.ranks)
      for (const schedule::Action& action : actions) {
        if (action.type != schedule::ActionType::B && action.type != schedule::ActionType::W) continue;
        // A rank that holds the stage for several replicas sums for all of them.
        int replica = 0;
        while (schedule.rank_of_stage[replica * schedule.stages + action.stage] !=
               schedule.rank_of(action.stage, action.microbatch))
          ++replica;
        orders_[action.stage][replica].push_back(action.microbatch);
      }
  }

  std::shared_ptr<Net> net;
  engine::LossFunction loss = mean_square;
  bool divide = true, weighted = false;
  /// Micro-batches in the order of their backwards; empty: ascending. Forwards are ascending.
  std::vector<int> backward_order;
  uint64_t seed = 0;
  int step = 0;

 private:
  using Orders = std::vector<std::vector<int>>;

  at::Tensor in_order(const std::string& parameter, const std::vector<int>& microbatches) const {
    at::Tensor sum;
    for (int m : microbatches) {
      const at::Tensor& grad = grads_of_[m].at(parameter);
      if (grad.defined()) sum = sum.defined() ? sum + grad : grad;
    }
    return sum;
  }

  Told forward(const at::Tensor& x, const at::Tensor& target, bool backward) {
    Told told;
    told.losses.resize(microbatches_);
    std::vector<Tensors> outputs(microbatches_);
    const auto inputs = x.tensor_split(microbatches_), targets = target.tensor_split(microbatches_);
    Tensors roots(microbatches_);
    for (int m = 0; m < microbatches_; ++m) {
      net->on_stage = [&](int stage) { at::manual_seed(microbatch::stage_random_seed(seed, step, stage, m)); };
      outputs[m] = net->forward({inputs[m]});
      at::Tensor loss_value = loss(outputs[m], targets[m]);
      told.losses[m] = loss_value.detach().clone();
      if (weighted) loss_value = loss_value * (double(inputs[m].size(0) * microbatches_) / double(x.size(0)));
      roots[m] = loss_value;
    }
    for (int i = 0; i < microbatches_ && backward; ++i) {
      const at::Tensor& root = roots[backward_order.empty() ? i : backward_order[i]];
      if (root.requires_grad()) root.backward();
      for (const auto& item : net->named_parameters()) {
        if (orders_.empty()) break;
        grads_of_[i][item.key()] = item.value().grad();
        item.value().mutable_grad() = at::Tensor();
      }
    }
    for (size_t o = 0; o < outputs[0].size(); ++o) {
      Tensors parts;
      for (const Tensors& list : outputs) parts.push_back(list[o].detach());
      told.outputs.push_back(at::cat(parts));
    }
    for (const auto& item : net->named_buffers()) told.buffers[item.key()] = item.value().clone();
    net->on_stage = nullptr;
    return told;
  }

  int microbatches_;
  NamedTensors total_;
  std::vector<Orders> orders_;          // by stage and replica; empty: that of `backward_order`
  std::vector<NamedTensors> grads_of_;  // by micro-batch, if there are orders
};

/// The engine over the ranks of a schedule, each with its own module.
class Fleet {
 public:
  Fleet(std::string kind, schedule::Schedule schedule) : schedule_(std::move(schedule)) {
    options.input_names = {"x"};
    options.input_chunks = {microbatch::ChunkSpec{}};
    options.loss = mean_square;
    options.timeout = std::chrono::seconds(30);
    split.loss_outputs = std::vector<int>{0};
    for (size_t r = 0; r < schedule_.ranks.size(); ++r) nets.push_back(std::make_shared<Net>(kind, schedule_.stages));
  }

  engine::PipeSource source(int rank) const {
    return [net = nets[rank], split = split](bool training, const Tensors& inputs) {
      return split::make_pipe({net.get(), [net](const Tensors& in) { return net->forward(in); }, {"x"}}, inputs,
                              training, split);
    };
  }

  /// Calls `body` on every rank. Rethrows the ranks' exceptions.
  void run(const std::function<void(engine::Engine&, int rank)>& body) {
    with_ranks(static_cast<int>(schedule_.ranks.size()), [&](transport::Transport& transport) {
      at::set_num_threads(1);  // OpenMP's thread count is per thread
      engine::EngineOptions mine = options;
      if (adjust) adjust(mine, transport.rank());
      engine::Engine engine(transport, schedule_, source(transport.rank()), mine);
      body(engine, transport.rank());
    });
  }

  /// Adds one rank's results to `told`; copies of a shared parameter must agree.
  void tell(Told& told, engine::Engine& engine, const engine::StepResult& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Each of several replicas reports its own micro-batches.
    told.losses.resize(std::max(told.losses.size(), result.losses.size()));
    for (size_t m = 0; m < result.losses.size(); ++m)
      if (result.losses[m].defined()) told.losses[m] = result.losses[m];
    told.parts.resize(std::max(told.parts.size(), result.outputs.size()));
    for (size_t m = 0; m < result.outputs.size(); ++m)
      if (!result.outputs[m].empty()) told.parts[m] = result.outputs[m];
    if (std::none_of(told.parts.begin(), told.parts.end(), [](const Tensors& part) { return part.empty(); }))
      told.outputs = microbatch::merge_outputs(told.parts, {});
    for (const auto& [stage, state] : engine.states()) {
      for (const auto& [name, tensor] : state.parameters) {
        const at::Tensor grad = tensor.grad().defined() ? tensor.grad().clone() : at::Tensor();
        const auto [it, inserted] = told.gradients.emplace(name, grad);
        if (!inserted) expect_same(grad, it->second, "copy in stage " + std::to_string(stage) + " of " + name);
      }
      for (const auto& [name, tensor] : state.buffers) told.buffers[name] = tensor.clone();
    }
  }

  /// One step on each rank of a fleet of this schedule.
  Told train(const at::Tensor& x, const at::Tensor& target) {
    Told told;
    run([&](engine::Engine& engine, int) { tell(told, engine, engine.train({x}, target)); });
    return told;
  }

  engine::EngineOptions options;
  split::SplitOptions split;
  std::function<void(engine::EngineOptions&, int rank)> adjust;
  std::vector<std::shared_ptr<Net>> nets;

 private:
  schedule::Schedule schedule_;
  std::mutex mutex_;
};

/// Every rank executes, for each micro-batch, the forwards of its stages and then, with `depth_first` at once,
/// otherwise at the end, their backwards.
inline schedule::Schedule placed(std::vector<int> rank_of_stage, int ranks, int microbatches, bool depth_first = false,
                                 bool descending = false) {
  schedule::Schedule schedule{"placed", static_cast<int>(rank_of_stage.size()), microbatches, rank_of_stage, {}};
  schedule.ranks.resize(ranks);
  const auto add = [&](schedule::ActionType type, int i) {
    const int m = type == schedule::ActionType::B && descending ? microbatches - 1 - i : i;
    for (int k = 0; k < schedule.stages; ++k) {
      const int stage = type == schedule::ActionType::F ? k : schedule.stages - 1 - k;
      schedule.ranks[rank_of_stage[stage]].push_back({stage, type, m});
    }
  };
  for (int i = 0; i < microbatches; ++i) {
    add(schedule::ActionType::F, i);
    if (depth_first) add(schedule::ActionType::B, i);
  }
  for (int i = 0; i < microbatches && !depth_first; ++i) add(schedule::ActionType::B, i);
  return schedule;
}

/// Steps on different batches, without zeroing gradients between them, compared with plain autograd that sums in the
/// order of the schedule.
inline void expect_like_oracle(const std::string& kind, const schedule::Schedule& schedule, int64_t rows, int steps = 1,
                               const std::function<void(engine::EngineOptions&)>& change = {}) {
  SCOPED_TRACE(kind + ", " + schedule.name + ", " + std::to_string(schedule.ranks.size()) + " ranks, " +
               std::to_string(schedule.stages) + " stages, " + std::to_string(schedule.microbatches) +
               " micro-batches, " + std::to_string(rows) + " rows");
  Oracle oracle(kind, schedule.stages, schedule.microbatches);
  oracle.follow(schedule);
  Fleet fleet(kind, schedule);
  oracle.seed = fleet.options.seed = 11;
  if (change) change(fleet.options);
  const auto batch = [&](int step) { return batch_of(kind, rows, 0.1 + step); };
  const at::Tensor target = target_of(kind, rows);
  std::vector<Told> ours(steps);
  fleet.run([&](engine::Engine& engine, int) {
    for (int step = 0; step < steps; ++step) fleet.tell(ours[step], engine, engine.train({batch(step)}, target));
  });
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    expect_same(ours[step], oracle.train(batch(step), target));
  }
}

}  // namespace plumbline::testing
