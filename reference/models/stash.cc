// unet-stash: a U-Net as a sequence of parts that know nothing of one another; its skips are declared by stash and pop
// (runtime/skip).

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/zeros.h>

#include "reference/models/families.h"
#include "reference/models/layers.h"
#include "reference/models/parameters.h"
#include "runtime/capture/pipe_modules.h"
#include "runtime/skip/skippable.h"

namespace plumbline::models {
namespace {

constexpr int64_t image_channels = 2, side = 16;

}  // namespace

/// x [rows, in, h, w] -> [rows, out, h / 2, w / 2]; stashes what it has in full size, [rows, out, h, w].
class StashingEncoder : public torch::nn::Module {
 public:
  inline static const SkipNames skips{.stash = {"skip"}};
  StashingEncoder(int64_t in, int64_t out) : conv_(register_module("conv", std::make_shared<Convolution>(in, out))) {}
  SkipForward<> forward(at::Tensor x) {
    const at::Tensor full = at::gelu(call(conv_, x));
    co_yield stash("skip", full);
    co_return at::avg_pool2d(full, {2, 2});
  }

 private:
  std::shared_ptr<Convolution> conv_;
};

/// x [rows, in, h, w] -> [rows, out, 2h, 2w]; pops [rows, skip, 2h, 2w].
class PoppingDecoder : public torch::nn::Module {
 public:
  inline static const SkipNames skips{.pop = {"skip"}};
  PoppingDecoder(int64_t in, int64_t skip, int64_t out)
      : up_weight_(register_parameter("weight", at::zeros({in, in, 2, 2}))),
        conv_(register_module("conv", std::make_shared<Convolution>(in + skip, out))) {}
  SkipForward<> forward(at::Tensor x) {
    const at::Tensor up = at::conv_transpose2d(x, up_weight_, /*bias=*/{}, /*stride=*/{2, 2});
    const at::Tensor skip = co_yield pop("skip");
    co_return at::gelu(call(conv_, at::cat({up, skip}, 1)));
  }

 private:
  at::Tensor up_weight_;
  std::shared_ptr<Convolution> conv_;
};

/// x [rows, 2, 16, 16] -> the same. Part i stashes for part 7 - i, all under one name, each pair in a namespace of its
/// own: in four stages of two parts two skips go to the next stage and two pass over two, in eight stages one goes to
/// the next and the others pass over two, four and six.
class StashUNet : public torch::nn::Module {
 public:
  StashUNet() : parts_(register_module("parts", Sequence())) {
    const SkipNamespace full, half, quarter, eighth;
    parts_->push_back(skippable<StashingEncoder>(image_channels, 4)->isolate(full));
    parts_->push_back(skippable<StashingEncoder>(4, 4)->isolate(half));
    parts_->push_back(skippable<StashingEncoder>(4, 8)->isolate(quarter));
    parts_->push_back(skippable<StashingEncoder>(8, 8)->isolate(eighth));
    parts_->push_back(skippable<PoppingDecoder>(8, 8, 8)->isolate(eighth));
    parts_->push_back(skippable<PoppingDecoder>(8, 8, 4)->isolate(quarter));
    parts_->push_back(skippable<PoppingDecoder>(4, 4, 4)->isolate(half));
    parts_->push_back(skippable<PoppingDecoder>(4, 4, image_channels)->isolate(full));
  }
  at::Tensor forward(const at::Tensor& x) { return call(parts_, x); }

 private:
  Sequence parts_;
};

namespace {

constexpr int part_count = 8;

Model model(Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<StashUNet>();
  set_real_parameters(*root, dtype, seed);
  return {.module = root,
          .forward = [root](const std::vector<at::Tensor>& inputs) { return std::vector{root->forward(inputs[0])}; },
          .input_names = {"image"},
          .input_chunks = {ChunkSpec{}},
          .split_points = later_children("parts", part_count),
          .fine_split_points = halved_children("parts", part_count, {"conv", SplitPoint::Where::End})};
}

Batch batch(Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {real_data({rows, image_channels, side, side}, dtype, seed, step, "image")},
          .target = real_data({rows, image_channels, side, side}, dtype, seed, step, "target")};
}

}  // namespace

std::vector<Family> stash_families() { return {{"unet-stash", model, batch}}; }

}  // namespace plumbline::models
