// resnet-bn: residual blocks of convolutions and batch norms with running statistics.

#include <ATen/ops/add.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/batchnorm.h>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace resnet_models {
namespace {

constexpr int block_count = 8;
constexpr int64_t image_channels = 3, channels = 8, side = 8, classes = 10;

}  // namespace

class ResidualBlock : public torch::nn::Module {
 public:
  ResidualBlock()
      : conv1_(register_module("conv1", std::make_shared<Convolution>(channels, channels))),
        conv2_(register_module("conv2", std::make_shared<Convolution>(channels, channels))),
        bn1_(register_module("bn1", torch::nn::BatchNorm2d(channels))),
        bn2_(register_module("bn2", torch::nn::BatchNorm2d(channels))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor h = at::relu(capture::call(bn1_, capture::call(conv1_, x)));
    return at::relu(at::add(capture::call(bn2_, capture::call(conv2_, h)), x));
  }

 private:
  std::shared_ptr<Convolution> conv1_, conv2_;
  torch::nn::BatchNorm2d bn1_, bn2_;
};

/// x [rows, 3, 8, 8] -> [rows, 10].
class ResNet : public torch::nn::Module {
 public:
  ResNet()
      : stem_(register_module("stem", std::make_shared<Convolution>(image_channels, channels))),
        blocks_(register_module("blocks", std::make_shared<ChildList<ResidualBlock>>())),
        head_(register_module("head", std::make_shared<Linear>(channels, classes))) {
    for (int i = 0; i < block_count; ++i) blocks_->add();
  }
  at::Tensor forward(const at::Tensor& x) {
    return capture::call(head_, at::mean(blocks_->in_turn(capture::call(stem_, x)), {2, 3}));
  }

 private:
  std::shared_ptr<Convolution> stem_;
  std::shared_ptr<ChildList<ResidualBlock>> blocks_;
  std::shared_ptr<Linear> head_;
};

namespace {

Model model(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<ResNet>();
  set_real_parameters(*root, dtype, seed);
  return listed_model(root, "image", "blocks", block_count, {"conv2"});
}

Batch batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {real_data({rows, image_channels, side, side}, dtype, seed, step, "image")},
          .targets = index_data({rows}, classes, seed, step, "class")};
}

}  // namespace

}  // namespace resnet_models

std::vector<Family> resnet_families() {
  using namespace resnet_models;
  return {{"resnet-bn", model, batch}};
}

}  // namespace plumbline::models
