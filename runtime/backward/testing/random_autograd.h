// Random autograd programs as data, the stage that executes them, and the reduction of a failing program.
//
// Every activation is [6, 8], every weight [8, 8]; a step makes one of either from earlier ones, so any step can be
// removed: users of its result use its first operand instead.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/backward/testing/backward_test_models.h"

namespace plumbline::backward_test {

// clang-format off
#define PLUMBLINE_RANDOM_OPS(X)                                                                                       \
  /* of activations a, b, weights w, u and a vector v, make an activation */                                          \
  X(Linear) X(Product) X(ProductTransposed) X(Attention) X(Times) X(Plus) X(Gelu) X(Softmax) X(LayerNorm) X(BatchNorm) \
  X(Gain) X(Bias) X(AddInPlace) X(CopyRow) X(ScaleSlice) X(SwapChunks) X(OneChunk) X(OneRow) X(Permute) X(Concatenate) \
  X(Where) X(Convolution) X(Dropout) X(TwoOutputsBoth) X(TwoOutputsOne) X(Constant) X(WeightRows) X(Embedding)        \
  X(NormOfWeight) X(Batched)                                                                                          \
  /* make a weight */                                                                                                 \
  X(Normalized) X(Factors) X(TanhOfWeight) X(TransposedWeight) X(SumOfWeights) X(RoundTrip)
enum class RandomOp {
#define X(name) name,
  PLUMBLINE_RANDOM_OPS(X)
#undef X
  Count
};
inline const char* name_of(RandomOp op) {
  static const char* const names[] = {
#define X(name) #name,
      PLUMBLINE_RANDOM_OPS(X)
#undef X
  };
  return names[static_cast<int>(op)];
}
#undef PLUMBLINE_RANDOM_OPS
// clang-format on
inline bool makes_weight(RandomOp op) { return op >= RandomOp::Normalized; }

struct RandomStep {
  RandomOp op;
  int a = 0, b = 0;  // activations: inputs first, then one per step
  int w = 0, u = 0;  // weights: parameters first, then one per step
  int v = 0;         // vectors: parameters
};
struct RandomOutput {
  enum Kind { Plain, View, Transposed, Sum, Detached, Weight, KindCount } kind;
  int value;
};
struct RandomProgram {
  static constexpr int kWeights = 3, kVectors = 3;
  unsigned seed = 0;
  std::vector<bool> input_needs_grad;
  bool last_weight_frozen = false;
  std::vector<RandomStep> steps;
  std::vector<RandomOutput> outputs;

  int inputs() const { return static_cast<int>(input_needs_grad.size()); }
};

inline RandomProgram random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t count) { return static_cast<int>(random() % count); };
  RandomProgram program;
  program.seed = seed;
  std::vector<int> activations, weights;
  for (int i = 0, count = 1 + pick(3); i < count; ++i) {
    program.input_needs_grad.push_back(pick(5) > 0);
    activations.push_back(i);
  }
  for (int i = 0; i < RandomProgram::kWeights; ++i) weights.push_back(i);
  program.last_weight_frozen = pick(4) == 0;
  // Late values are more likely: programs get deep.
  const auto late = [&](const std::vector<int>& from) {
    return from[from.size() - 1 - std::min(pick(from.size()), pick(from.size()))];
  };
  for (int i = 0, count = 3 + pick(14); i < count; ++i) {
    const RandomOp op = static_cast<RandomOp>(pick(static_cast<size_t>(RandomOp::Count)));
    program.steps.push_back(
        {op, late(activations), late(activations), late(weights), late(weights), pick(RandomProgram::kVectors)});
    if (makes_weight(op))
      weights.push_back(RandomProgram::kWeights + i);
    else
      activations.push_back(program.inputs() + i);
  }
  for (int i = 0, count = 1 + pick(4); i < count; ++i) {
    const auto kind = static_cast<RandomOutput::Kind>(i == 0 ? 0 : pick(RandomOutput::KindCount));
    program.outputs.push_back({kind, kind == RandomOutput::Weight ? late(weights) : late(activations)});
  }
  return program;
}

inline std::string text(const RandomProgram& program) {
  std::ostringstream out;
  const auto place = [&](char kind, int base, int index) {
    std::ostringstream one;
    if (index < base)
      one << (kind == 'a' ? "input" : "weight") << index;
    else
      one << kind << index - base;
    return one.str();
  };
  const auto activation = [&](int index) { return place('a', program.inputs(), index); };
  const auto weight = [&](int index) { return place('w', RandomProgram::kWeights, index); };
  out << "seed " << program.seed << "\n  inputs with a gradient:";
  for (bool needs : program.input_needs_grad) out << (needs ? " yes" : " no");
  if (program.last_weight_frozen) out << "; weight" << RandomProgram::kWeights - 1 << " has none";
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const RandomStep& step = program.steps[i];
    out << "\n  " << (makes_weight(step.op) ? 'w' : 'a') << i << " = " << name_of(step.op) << '(' << activation(step.a)
        << ", " << activation(step.b) << ", " << weight(step.w) << ", " << weight(step.u) << ", vector" << step.v
        << ')';
  }
  static const char* const kinds[] = {"", "view of ", "transposed ", "sum of ", "detached ", ""};
  for (const RandomOutput& output : program.outputs)
    out << "\n  output: " << kinds[output.kind]
        << (output.kind == RandomOutput::Weight ? weight(output.value) : activation(output.value));
  return out.str();
}

namespace detail {

struct RandomLeaves {
  Tensors weights, vectors;
  at::Tensor kernel, mask, rows;
};

inline at::Tensor weight_step(const RandomStep& step, const at::Tensor& w, const at::Tensor& u) {
  switch (step.op) {
    case RandomOp::Normalized:
      return w / w.norm();
    case RandomOp::Factors:
      return w.narrow(1, 0, 2).matmul(u.narrow(0, 3, 2));
    case RandomOp::TanhOfWeight:
      return w.tanh();
    case RandomOp::TransposedWeight:
      return w.t();
    case RandomOp::SumOfWeights:
      return w + u;
    default:
      return w.to(at::kDouble).mul(0.75).to(w.scalar_type());  // RoundTrip
  }
}

inline at::Tensor activation_step(const RandomStep& step, const RandomLeaves& leaves, const at::Tensor& a,
                                  const at::Tensor& b, const at::Tensor& w, const at::Tensor& u) {
  const at::Tensor &v = leaves.vectors[step.v], &other = leaves.vectors[(step.v + 1) % RandomProgram::kVectors];
  at::Tensor made;
  switch (step.op) {
    case RandomOp::Linear:
      return at::linear(a, w, v);
    case RandomOp::Product:
      return a.matmul(w);
    case RandomOp::ProductTransposed:
      return w.matmul(a.t()).t();
    case RandomOp::Attention:
      return (a.matmul(b.t()) / 8).softmax(-1).matmul(a.matmul(w));
    case RandomOp::Times:
      return a.tanh() * b;
    case RandomOp::Plus:
      return a + b;
    case RandomOp::Gelu:
      return at::gelu(a);
    case RandomOp::Softmax:
      return a.softmax(-1);
    case RandomOp::LayerNorm:
      return at::layer_norm(a, {8}, v, other);
    case RandomOp::BatchNorm:
      return at::batch_norm(a, v, other, {}, {}, true, 0.1, 1e-5, false);
    case RandomOp::Gain:
      return a * v;
    case RandomOp::Bias:
      return a + v;
    case RandomOp::AddInPlace:
      return (made = a.sin()).add_(v).mul_(0.5);
    case RandomOp::CopyRow:
      made = a.clone();
      made.select(0, 2).copy_(v);
      made.narrow(0, 3, 2).copy_(b.narrow(0, 0, 2));
      return made;
    case RandomOp::ScaleSlice:
      made = a.clone();
      made.narrow(1, 0, 4).mul_(w.narrow(0, 0, 6).narrow(1, 2, 4));
      return made;
    case RandomOp::SwapChunks: {
      const Tensors parts = at::linear(a, w).chunk(2, 1);
      return at::cat({parts[1], parts[0] * v.narrow(0, 0, 4)}, 1);
    }
    case RandomOp::OneChunk:
      return a.chunk(2, 1)[1].repeat({1, 2});
    case RandomOp::OneRow:
      return b + a.unbind(0)[3];
    case RandomOp::Permute:
      return a.view({2, 3, 8}).permute({2, 0, 1}).reshape({6, 8}).contiguous();
    case RandomOp::Concatenate:
      return at::cat({a.narrow(0, 2, 2), v.unsqueeze(0), w.narrow(0, 0, 3)});
    case RandomOp::Where:
      return at::where(leaves.mask > 0, a, w.narrow(0, 1, 6));
    case RandomOp::Convolution:
      return at::conv1d(a.reshape({2, 3, 8}), leaves.kernel, {}, 1, 1).view({6, 8});
    case RandomOp::Dropout:
      return a * leaves.mask;
    case RandomOp::TwoOutputsBoth: {
      const Tensors both = TwoOutputs::apply(a, w);
      return both[0] + both[1];
    }
    case RandomOp::TwoOutputsOne:
      return TwoOutputs::apply(a, w)[step.v % 2];
    case RandomOp::Constant:
      return a.detach();
    case RandomOp::WeightRows:
      return a * 0.5 + w.narrow(0, 2, 6);
    case RandomOp::Embedding:
      return at::embedding(w, leaves.rows);  // no input contributes to it
    case RandomOp::NormOfWeight:
      return a * w.norm();
    default:  // Batched
      return at::bmm(a.view({2, 3, 8}), at::stack({w, u})).view({6, 8});
  }
}

}  // namespace detail

inline Stage stage_of(const RandomProgram& program, at::ScalarType dtype) {
  Leaves leaves{dtype};
  detail::RandomLeaves made;
  for (int i = 0; i < RandomProgram::kWeights; ++i) made.weights.push_back(leaves.param({8, 8}));
  for (int i = 0; i < RandomProgram::kVectors; ++i) made.vectors.push_back(leaves.gain(8));
  made.kernel = leaves.param({3, 3, 3});
  made.mask = (at::rand({6, 8}) > 0.25).to(dtype) * 1.25;
  made.rows = at::randint(8, {6}, at::kLong);
  if (program.last_weight_frozen) made.weights.back().requires_grad_(false);
  const auto inputs = [dtype, program] {
    Tensors drawn;
    for (const bool needs : program.input_needs_grad) drawn.push_back(Leaves::input({6, 8}, dtype, needs));
    return drawn;
  };
  return leaves.stage(inputs, [program, made](const Tensors& in) {
    Tensors activations = in, weights = made.weights;
    for (const RandomStep& step : program.steps) {
      const at::Tensor &w = weights[step.w], &u = weights[step.u];
      const bool weight = makes_weight(step.op);
      at::Tensor result = weight ? detail::weight_step(step, w, u)
                                 : detail::activation_step(step, made, activations[step.a], activations[step.b], w, u);
      activations.push_back(weight ? at::Tensor() : result);
      weights.push_back(weight ? result : at::Tensor());
    }
    Tensors outputs;
    for (const RandomOutput& output : program.outputs) {
      const at::Tensor& value = output.kind == RandomOutput::Weight ? weights[output.value] : activations[output.value];
      switch (output.kind) {
        case RandomOutput::View:
          outputs.push_back(value.narrow(0, 1, 3));
          break;
        case RandomOutput::Transposed:
          outputs.push_back(value.t());
          break;
        case RandomOutput::Sum:
          outputs.push_back(value.sum());
          break;
        case RandomOutput::Detached:
          outputs.push_back(value.detach());
          break;
        default:
          outputs.push_back(value);
      }
    }
    return outputs;
  });
}

/// Without the step: users of its result use its first operand, or its second.
inline RandomProgram without_step(RandomProgram program, int removed, bool second) {
  const RandomStep gone = program.steps[removed];
  program.steps.erase(program.steps.begin() + removed);
  const auto mend = [&](int& use, int base, int instead) {
    if (use == base + removed)
      use = instead;
    else if (use > base + removed)
      --use;
  };
  for (size_t i = removed; i < program.steps.size(); ++i) {
    RandomStep& step = program.steps[i];
    for (int* use : {&step.a, &step.b}) mend(*use, program.inputs(), second ? gone.b : gone.a);
    for (int* use : {&step.w, &step.u}) mend(*use, RandomProgram::kWeights, second ? gone.u : gone.w);
  }
  for (RandomOutput& output : program.outputs) {
    if (output.kind == RandomOutput::Weight)
      mend(output.value, RandomProgram::kWeights, second ? gone.u : gone.w);
    else
      mend(output.value, program.inputs(), second ? gone.b : gone.a);
  }
  return program;
}

/// Removes steps, outputs and operands for as long as the program fails.
inline RandomProgram shrink(RandomProgram program, const std::function<bool(const RandomProgram&)>& fails) {
  const auto try_it = [&](const RandomProgram& smaller) {
    if (!fails(smaller)) return false;
    program = smaller;
    return true;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (int i = static_cast<int>(program.steps.size()) - 1; i >= 0; --i)
      if (try_it(without_step(program, i, false)) || try_it(without_step(program, i, true))) smaller = true;
    for (int i = static_cast<int>(program.outputs.size()) - 1; i >= 0; --i) {
      RandomProgram one = program;
      one.outputs.erase(one.outputs.begin() + i);
      if (try_it(one)) smaller = true;
      one = program;
      if (i < static_cast<int>(one.outputs.size()) && one.outputs[i].kind != RandomOutput::Weight &&
          one.outputs[i].kind != RandomOutput::Plain) {
        one.outputs[i].kind = RandomOutput::Plain;
        if (try_it(one)) smaller = true;
      }
    }
    for (size_t i = 0; i < program.steps.size(); ++i)
      for (int RandomStep::* use : {&RandomStep::a, &RandomStep::b, &RandomStep::w, &RandomStep::u, &RandomStep::v}) {
        RandomProgram one = program;
        if (one.steps[i].*use == 0) continue;
        one.steps[i].*use = 0;
        if (try_it(one)) smaller = true;
      }
  }
  return program;
}

}  // namespace plumbline::backward_test
