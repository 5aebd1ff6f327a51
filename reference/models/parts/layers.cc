#include "reference/models/parts/layers.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

namespace plumbline::models {

Linear::Linear(int64_t in, int64_t out)
    : weight_(register_parameter("weight", at::zeros({out, in}))),
      bias_(register_parameter("bias", at::zeros({out}))) {}

at::Tensor Linear::forward(const at::Tensor& x) { return at::linear(x, weight_, bias_); }

Embedding::Embedding(int64_t entries, int64_t width)
    : weight_(register_parameter("weight", at::zeros({entries, width}))) {}

at::Tensor Embedding::forward(const at::Tensor& indices) { return at::embedding(weight_, indices); }

Convolution::Convolution(int64_t in, int64_t out, int64_t stride)
    : stride_(stride), weight_(register_parameter("weight", at::zeros({out, in, 3, 3}))) {}

at::Tensor Convolution::forward(const at::Tensor& x) {
  return at::conv2d(x, weight_, /*bias=*/{}, /*stride=*/{stride_, stride_}, /*padding=*/{1, 1});
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::Gelu:
      return at::gelu(x);
    case Activation::Abs:
      return at::abs(x);
    case Activation::Relu:
      return at::relu(x);
  }
  return x;
}

Layer::Layer(int64_t in, int64_t out, Activation activation, double dropout)
    : fc_(register_module("fc", std::make_shared<Linear>(in, out))), activation_(activation), dropout_(dropout) {}

at::Tensor Layer::forward(const at::Tensor& x) {
  const at::Tensor y = activate(capture::call(fc_, x), activation_);
  return dropout_ > 0.0 ? at::dropout(y, dropout_, is_training()) : y;
}

std::vector<std::string> later_children(const std::string& list, int count) {
  std::vector<std::string> names;
  for (int i = 1; i < count; ++i) names.push_back(list + "." + std::to_string(i));
  return names;
}

std::vector<split::SplitPoint> halved_children(const std::string& list, int count, const split::SplitPoint& inner) {
  std::vector<split::SplitPoint> points;
  for (int i = 0; i < count; ++i) {
    const std::string child = list + "." + std::to_string(i);
    if (i > 0) points.push_back({child});
    points.push_back({child + "." + inner.module, inner.where});
  }
  return points;
}

}  // namespace plumbline::models
