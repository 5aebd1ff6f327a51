// The building blocks of the zoo's models. They use at:: functions that a capture keeps whole (at::linear, not
// torch::nn::Linear, which adds its bias in place) and leave their parameters zero: parameters.h fills them by name.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "reference/models/zoo.h"
#include "runtime/capture/call.h"

namespace plumbline::models {

/// x [..., in] -> [..., out].
class Linear : public torch::nn::Module {
 public:
  Linear(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x);
  /// [out, in] and [out]. A user that shares a parameter must use these tensor objects.
  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  at::Tensor weight_, bias_;
};

/// Whole numbers [...] -> [..., width].
class Embedding : public torch::nn::Module {
 public:
  Embedding(int64_t entries, int64_t width);
  at::Tensor forward(const at::Tensor& indices);
  /// [entries, width]. A tied layer must use this tensor object.
  const at::Tensor& weight() const { return weight_; }

 private:
  at::Tensor weight_;
};

/// x [rows, in, h, w] -> [rows, out, h / stride, w / stride], rounded up; 3 x 3, padded by 1, without bias.
class Convolution : public torch::nn::Module {
 public:
  Convolution(int64_t in, int64_t out, int64_t stride = 1);
  at::Tensor forward(const at::Tensor& x);

 private:
  int64_t stride_;
  at::Tensor weight_;
};

enum class Activation { Gelu, Abs, Relu };
at::Tensor activate(const at::Tensor& x, Activation activation);

/// Linear (child "fc"), activation, dropout (in training mode only).
class Layer : public torch::nn::Module {
 public:
  Layer(int64_t in, int64_t out, Activation activation, double dropout = 0.0);
  at::Tensor forward(const at::Tensor& x);
  const Linear& fc() const { return *fc_; }

 private:
  std::shared_ptr<Linear> fc_;
  Activation activation_;
  double dropout_;
};

/// Children named 0, 1, 2, ...
template <class Child>
class ChildList : public torch::nn::Module {
 public:
  template <class... Arguments>
  void add(Arguments&&... arguments) {
    children_.push_back(register_module(std::to_string(children_.size()),
                                        std::make_shared<Child>(std::forward<Arguments>(arguments)...)));
  }
  /// Child i; not const, since capture::call() takes a non-const shared_ptr.
  std::shared_ptr<Child>& operator[](size_t i) { return children_[i]; }
  std::vector<std::shared_ptr<Child>>& all() { return children_; }
  /// Calls the children one after another.
  at::Tensor in_turn(at::Tensor x) {
    for (std::shared_ptr<Child>& child : children_) x = capture::call(child, x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Child>> children_;
};

/// The names "<list>.1" to "<list>.<count - 1>": a stage may begin at each child except the first.
std::vector<std::string> later_children(const std::string& list, int count);

/// Split points, in program order, before each child except the first and at `inner` within every child. The module of
/// `inner` is named relative to a child: {"fc", End} gives a point after "<list>.0.fc", {"norm2"} one before
/// "<list>.0.norm2".
std::vector<split::SplitPoint> halved_children(const std::string& list, int count, const split::SplitPoint& inner);

/// A model with one input and one output, which may be cut as later_children() and halved_children() say.
template <class Root>
Model listed_model(const std::shared_ptr<Root>& root, const std::string& input, const std::string& list, int count,
                   const split::SplitPoint& inner) {
  return {.module = root,
          .forward = [root](const std::vector<at::Tensor>& inputs) { return std::vector{root->forward(inputs[0])}; },
          .input_names = {input},
          .input_chunks = {microbatch::ChunkSpec{}},
          .split_points = later_children(list, count),
          .fine_split_points = halved_children(list, count, inner)};
}

}  // namespace plumbline::models
