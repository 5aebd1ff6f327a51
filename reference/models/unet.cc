// unet: convolutions down and up, with skips across the middle.

#include <ATen/ops/cat.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/zeros.h>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace unet_models {
namespace {

constexpr int64_t image_channels = 2, side = 16;

}  // namespace

/// Convolution and gelu; stride 2 halves the image.
class Encoder : public torch::nn::Module {
 public:
  Encoder(int64_t in, int64_t out, int64_t stride)
      : conv_(register_module("conv", std::make_shared<Convolution>(in, out, stride))) {}
  at::Tensor forward(const at::Tensor& x) { return at::gelu(capture::call(conv_, x)); }

 private:
  std::shared_ptr<Convolution> conv_;
};

/// x [rows, in, h, w] and skip [rows, in, h, w] -> [rows, out, 2h, 2w].
class Decoder : public torch::nn::Module {
 public:
  Decoder(int64_t in, int64_t out)
      : mix_(register_module("mix", std::make_shared<Convolution>(2 * in, in))),
        up_weight_(register_parameter("weight", at::zeros({in, out, 2, 2}))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip) {
    const at::Tensor mixed = at::gelu(capture::call(mix_, at::cat({x, skip}, 1)));
    return at::conv_transpose2d(mixed, up_weight_, /*bias=*/{}, /*stride=*/{2, 2});
  }

 private:
  std::shared_ptr<Convolution> mix_;
  at::Tensor up_weight_;
};

/// Mixes the upsampled value with the first encoder's output, without further upsampling.
class Last : public torch::nn::Module {
 public:
  explicit Last(int64_t in) : conv_(register_module("conv", std::make_shared<Convolution>(2 * in, image_channels))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip) {
    return capture::call(conv_, at::cat({x, skip}, 1));
  }

 private:
  std::shared_ptr<Convolution> conv_;
};

/// x [rows, 2, 16, 16] -> the same. In four stages of two parts, the skips of enc0 and enc1 pass over two stages; that
/// of enc2 passes over one part, into the next stage.
class UNet : public torch::nn::Module {
 public:
  UNet()
      : enc0_(register_module("enc0", std::make_shared<Encoder>(image_channels, 8, 1))),
        enc1_(register_module("enc1", std::make_shared<Encoder>(8, 8, 2))),
        enc2_(register_module("enc2", std::make_shared<Encoder>(8, 16, 2))),
        mid0_(register_module("mid0", std::make_shared<Encoder>(16, 16, 1))),
        mid1_(register_module("mid1", std::make_shared<Encoder>(16, 16, 1))),
        dec2_(register_module("dec2", std::make_shared<Decoder>(16, 8))),
        dec1_(register_module("dec1", std::make_shared<Decoder>(8, 8))),
        dec0_(register_module("dec0", std::make_shared<Last>(8))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor full = capture::call(enc0_, x);
    const at::Tensor half = capture::call(enc1_, full);
    const at::Tensor quarter = capture::call(enc2_, half);
    at::Tensor h = capture::call(mid1_, capture::call(mid0_, quarter));
    h = capture::call(dec1_, capture::call(dec2_, h, quarter), half);
    return capture::call(dec0_, h, full);
  }

 private:
  std::shared_ptr<Encoder> enc0_, enc1_, enc2_, mid0_, mid1_;
  std::shared_ptr<Decoder> dec2_, dec1_;
  std::shared_ptr<Last> dec0_;
};

namespace {

split::SplitPoint after(const std::string& module) { return {module, split::SplitPoint::Where::End}; }

Model model(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<UNet>();
  set_real_parameters(*root, dtype, seed);
  return {.module = root,
          .forward = [root](const std::vector<at::Tensor>& inputs) { return std::vector{root->forward(inputs[0])}; },
          .input_names = {"image"},
          .input_chunks = {microbatch::ChunkSpec{}},
          .split_points = {"enc1", "enc2", "mid0", "mid1", "dec2", "dec1", "dec0"},
          .fine_split_points = {after("enc0.conv"),
                                {"enc1"},
                                after("enc1.conv"),
                                {"enc2"},
                                after("enc2.conv"),
                                {"mid0"},
                                after("mid0.conv"),
                                {"mid1"},
                                after("mid1.conv"),
                                {"dec2"},
                                after("dec2.mix"),
                                {"dec1"},
                                after("dec1.mix"),
                                {"dec0"},
                                {"dec0.conv"}}};
}

Batch batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {real_data({rows, image_channels, side, side}, dtype, seed, step, "image")},
          .targets = real_data({rows, image_channels, side, side}, dtype, seed, step, "target")};
}

}  // namespace

}  // namespace unet_models

std::vector<Family> unet_families() {
  using namespace unet_models;
  return {{"unet", model, batch}};
}

}  // namespace plumbline::models
