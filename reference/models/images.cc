// Exact models of images: a chain of convolutions with running sums (the statistics of batch norm without its
// division), and a U-Net that changes resolution by moving pixels into channels and back.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/pixel_unshuffle.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "reference/models/families.h"
#include "reference/models/parts/counter.h"
#include "reference/models/parts/fill.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "reference/models/parts/parts.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace image_models {
namespace {

constexpr int part_count = 8;
constexpr int64_t side = 4;

/// Weights of -1 or +1, enough that each input channel and each output channel has one; the first moves pixels by at
/// most one. (Moving leaves zeros at the border: if every weight moved in every part, few nonzero values would remain.)
void fill_moves(const at::Tensor& weight, uint64_t seed, const std::string& name) {
  const c10::NoGradGuard no_grad;
  const Counter stream(seed, name);
  weight.zero_();
  const int64_t count = std::max(weight.size(0), weight.size(1));
  const std::vector<int64_t> channels = stream.permutation(count);
  for (int64_t n = 0; n < count; ++n) {
    const auto i = static_cast<uint64_t>(count + 3 * n);
    const int64_t channel = channels[static_cast<size_t>(n)] % weight.size(1);
    const int64_t row = n == 0 ? stream.below(i, 3) : 1, column = n == 0 ? stream.below(i + 1, 3) : 1;
    weight[n % weight.size(0)][channel][row][column].fill_(stream.below(i + 2, 2) ? 1 : -1);
  }
}

}  // namespace

/// x [rows, in, h, w] -> [rows, out, h, w]: convolution (child "conv"), absolute value. If `counts`, sums the output
/// over the rows of all training forwards.
class ImagePart : public torch::nn::Module {
 public:
  ImagePart(int64_t in, int64_t out, bool counts)
      : conv_(register_module("conv", std::make_shared<Convolution>(in, out))),
        bias_(register_parameter("bias", at::zeros({out}))) {
    if (counts) running_sum_ = register_buffer("running_sum", at::zeros({out}));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = at::abs(at::add(capture::call(conv_, x), bias_.view({1, -1, 1, 1})));
    if (running_sum_.defined() && is_training()) {
      const c10::NoGradGuard no_grad;
      running_sum_.add_(y.sum({0, 2, 3}));
    }
    return y;
  }

 private:
  std::shared_ptr<Convolution> conv_;
  at::Tensor bias_, running_sum_;
};

class ConvolutionChain : public torch::nn::Module {
 public:
  ConvolutionChain() : parts_(register_module("parts", std::make_shared<ChildList<ImagePart>>())) {
    for (int i = 0; i < part_count; ++i) parts_->add(channels, channels, /*counts=*/i % 2 == 1);
  }
  at::Tensor forward(const at::Tensor& x) { return parts_->in_turn(x); }
  static constexpr int64_t channels = 4;

 private:
  std::shared_ptr<ChildList<ImagePart>> parts_;
};

/// x [rows, 2, 4, 4] -> the same. Two levels down (pixels into channels), two up; skips over two and over six parts.
class ExactUNet : public torch::nn::Module {
 public:
  ExactUNet() : parts_(register_module("parts", std::make_shared<ChildList<ImagePart>>())) {
    parts_->add(channels, channels, false);
    parts_->add(4 * channels, channels, false);
    parts_->add(channels, channels, false);
    parts_->add(4 * channels, 4 * channels, false);
    parts_->add(4 * channels, 4 * channels, false);
    parts_->add(2 * channels, 4 * channels, false);
    parts_->add(4 * channels, 4 * channels, false);
    parts_->add(2 * channels, channels, false);
  }
  at::Tensor forward(const at::Tensor& x) {
    ChildList<ImagePart>& parts = *parts_;
    const at::Tensor full = capture::call(parts[0], x);
    const at::Tensor half = capture::call(parts[2], capture::call(parts[1], at::pixel_unshuffle(full, 2)));
    const at::Tensor low = capture::call(parts[4], capture::call(parts[3], at::pixel_unshuffle(half, 2)));
    const at::Tensor up = at::cat({at::pixel_shuffle(low, 2), half}, 1);
    const at::Tensor top = capture::call(parts[6], capture::call(parts[5], up));
    return capture::call(parts[7], at::cat({at::pixel_shuffle(top, 2), full}, 1));
  }
  static constexpr int64_t channels = 2;

 private:
  std::shared_ptr<ChildList<ImagePart>> parts_;
};

namespace {

template <class Net>
Family image_family(const std::string& name) {
  const auto model = [](reference::Dtype dtype, uint64_t seed) {
    const auto root = std::make_shared<Net>();
    set_exact_parameters(*root, dtype, seed, {});
    for (const auto& item : root->named_parameters()) {
      if (item.value().dim() == 4) fill_moves(item.value(), seed, item.key());
      // Even values, while most of the other addends are odd: hardly any sum is 0, where the absolute value has no
      // slope.
      if (item.value().dim() == 1)
        fill_sparse_vector(item.value(), seed, item.key(), is_narrow(dtype) ? 1 : item.value().size(0), 2);
    }
    return listed_model(root, "image", "parts", part_count, {"conv", split::SplitPoint::Where::End});
  };
  const auto batch = [](reference::Dtype dtype, int rows, uint64_t seed, int step) {
    const std::vector<int64_t> sizes = {rows, Net::channels, side, side};
    const int64_t max = is_narrow(dtype) ? 1 : 3;
    return Batch{.inputs = {exact_data(sizes, max, dtype, seed, step, "image")},
                 .targets = exact_data(sizes, max, dtype, seed, step, "target")};
  };
  return {name, model, batch};
}

}  // namespace

}  // namespace image_models

std::vector<Family> image_families() {
  using namespace image_models;
  return {image_family<ConvolutionChain>("exact-convolution"), image_family<ExactUNet>("exact-unet")};
}

}  // namespace plumbline::models
