// Sequences of parts that do not refer to one another; skips are declared by stash and pop (runtime/skip): unet-stash,
// and exact-stash, which computes the same as exact-skip.

#include <ATen/ops/add.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/zeros.h>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/pipe_modules.h"
#include "runtime/skip/skippable.h"

namespace plumbline::models {
namespace stash_models {
namespace {

constexpr int64_t image_channels = 2, side = 16;

}  // namespace

/// x [rows, in, h, w] -> [rows, out, h / 2, w / 2]; stashes the full-size value, [rows, out, h, w].
class StashingEncoder : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.stash = {"skip"}};
  StashingEncoder(int64_t in, int64_t out) : conv_(register_module("conv", std::make_shared<Convolution>(in, out))) {}
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor full = at::gelu(capture::call(conv_, x));
    co_yield stash("skip", full);
    co_return at::avg_pool2d(full, {2, 2});
  }

 private:
  std::shared_ptr<Convolution> conv_;
};

/// x [rows, in, h, w] -> [rows, out, 2h, 2w]; pops [rows, skip, 2h, 2w].
class PoppingDecoder : public torch::nn::Module {
 public:
  inline static const skip::SkipNames skips{.pop = {"skip"}};
  PoppingDecoder(int64_t in, int64_t skip, int64_t out)
      : up_weight_(register_parameter("weight", at::zeros({in, in, 2, 2}))),
        conv_(register_module("conv", std::make_shared<Convolution>(in + skip, out))) {}
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor up = at::conv_transpose2d(x, up_weight_, /*bias=*/{}, /*stride=*/{2, 2});
    const at::Tensor skip = co_yield pop("skip");
    co_return at::gelu(capture::call(conv_, at::cat({up, skip}, 1)));
  }

 private:
  at::Tensor up_weight_;
  std::shared_ptr<Convolution> conv_;
};

/// x [rows, 2, 16, 16] -> the same. Part i stashes for part 7 - i, all under one name, each pair in a separate
/// namespace: in four stages of two parts, two skips go to the next stage and two skip two stages; in eight stages one
/// goes to the next and the others skip two, four and six.
class StashUNet : public torch::nn::Module {
 public:
  StashUNet() : parts_(register_module("parts", Sequence())) {
    const skip::SkipNamespace full, half, quarter, eighth;
    parts_->push_back(skip::skippable<StashingEncoder>(image_channels, 4)->isolate(full));
    parts_->push_back(skip::skippable<StashingEncoder>(4, 4)->isolate(half));
    parts_->push_back(skip::skippable<StashingEncoder>(4, 8)->isolate(quarter));
    parts_->push_back(skip::skippable<StashingEncoder>(8, 8)->isolate(eighth));
    parts_->push_back(skip::skippable<PoppingDecoder>(8, 8, 8)->isolate(eighth));
    parts_->push_back(skip::skippable<PoppingDecoder>(8, 8, 4)->isolate(quarter));
    parts_->push_back(skip::skippable<PoppingDecoder>(4, 4, 4)->isolate(half));
    parts_->push_back(skip::skippable<PoppingDecoder>(4, 4, image_channels)->isolate(full));
  }
  at::Tensor forward(const at::Tensor& x) { return capture::call(parts_, x); }

 private:
  Sequence parts_;
};

constexpr int part_count = 8;
constexpr int64_t width = 8;

/// Stashes its output.
class StashingLayer : public Layer {
 public:
  explicit StashingLayer(const std::string& name) : Layer(width, width, Activation::Abs), skips{.stash = {name}} {}
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor y = Layer::forward(x);
    co_yield stash(skips.stash[0], y);
    co_return y;
  }
  const skip::SkipNames skips;
};

/// Adds the popped value to its input.
class AddingLayer : public Layer {
 public:
  explicit AddingLayer(const std::string& name) : Layer(width, width, Activation::Abs), skips{.pop = {name}} {}
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor popped = co_yield pop(skips.pop[0]);
    co_return Layer::forward(at::add(x, popped));
  }
  const skip::SkipNames skips;
};

/// Concatenates its input and the popped value.
class ConcatenatingLayer : public Layer {
 public:
  explicit ConcatenatingLayer(const std::string& name)
      : Layer(2 * width, width, Activation::Abs), skips{.pop = {name}} {}
  skip::SkipForward<> forward(at::Tensor x) {
    const at::Tensor popped = co_yield pop(skips.pop[0]);
    co_return Layer::forward(at::cat({x, popped}, 1));
  }
  const skip::SkipNames skips;
};

/// Like Skip of skip.cc.
class StashSkip : public torch::nn::Module {
 public:
  StashSkip() : parts_(register_module("parts", Sequence())) {
    const auto plain = [] { return std::make_shared<Layer>(width, width, Activation::Abs); };
    parts_->push_back(skip::skippable<StashingLayer>("first"));
    parts_->push_back(skip::skippable<StashingLayer>("second"));
    for (int i = 2; i < 5; ++i) parts_->push_back(plain());
    parts_->push_back(skip::skippable<AddingLayer>("first"));
    parts_->push_back(plain());
    parts_->push_back(skip::skippable<ConcatenatingLayer>("second"));
  }
  at::Tensor forward(const at::Tensor& x) { return capture::call(parts_, x); }

 private:
  Sequence parts_;
};

namespace {

Model unet(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<StashUNet>();
  set_real_parameters(*root, dtype, seed);
  return listed_model(root, "image", "parts", part_count, {"conv", split::SplitPoint::Where::End});
}

Model exact(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<StashSkip>();
  set_exact_parameters(*root, dtype, seed, {});
  return listed_model(root, "x", "parts", part_count, {"fc", split::SplitPoint::Where::End});
}

Batch images(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {real_data({rows, image_channels, side, side}, dtype, seed, step, "image")},
          .targets = real_data({rows, image_channels, side, side}, dtype, seed, step, "target")};
}

Batch whole_numbers(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {exact_data({rows, width}, 3, dtype, seed, step, "x")},
          .targets = exact_data({rows, width}, 3, dtype, seed, step, "target")};
}

}  // namespace

}  // namespace stash_models

std::vector<Family> stash_families() {
  using namespace stash_models;
  return {{"unet-stash", unet, images}, {"exact-stash", exact, whole_numbers}};
}

}  // namespace plumbline::models
