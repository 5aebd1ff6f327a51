// Several inputs and outputs, real (multi-io) and exact (exact-multi-io).

#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace multi_io_models {
namespace {

constexpr int layer_count = 8;
constexpr int64_t entries = 16, ids_in_row = 2;

}  // namespace

/// Inputs: x [rows, width]; ids [2, rows], divided along dimension 1; scale [width], passed whole to every micro-batch.
/// Outputs: 0 [rows, width] feeds the loss; 1 [rows, width] is an early value that is also used later; 2 [rows, width]
/// does not contribute to the loss, so the parameters of `side` have no gradient. Those of `aside` have none either,
/// because its output is unused. The ids are incremented by one in the first layers and read in the last but one:
/// integers cross the stages between.
class MultiIo : public torch::nn::Module {
 public:
  MultiIo(int64_t width, Activation activation)
      : layers_(register_module("layers", std::make_shared<ChildList<Layer>>())),
        aside_(register_module("aside", std::make_shared<Layer>(width, width, activation))),
        side_(register_module("side", std::make_shared<Layer>(width, width, activation))),
        lookup_(register_module("lookup", std::make_shared<Embedding>(entries, width))) {
    for (int i = 0; i < layer_count; ++i) layers_->add(width, width, activation);
  }
  std::vector<at::Tensor> forward(const at::Tensor& x, const at::Tensor& ids, const at::Tensor& scale) {
    ChildList<Layer>& layers = *layers_;
    const at::Tensor moved = at::add(ids, 1);
    at::Tensor h = at::mul(capture::call(layers[0], x), scale);
    const at::Tensor early = capture::call(layers[2], capture::call(layers[1], h));
    capture::call(aside_, early);
    h = capture::call(layers[4], capture::call(layers[3], early));
    const at::Tensor side = capture::call(side_, h);
    h = capture::call(layers[6], capture::call(layers[5], at::mul(h, scale)));
    h = at::add(h, capture::call(lookup_, moved).sum(0));
    return {capture::call(layers[7], h), early, side};
  }

 private:
  std::shared_ptr<ChildList<Layer>> layers_;
  std::shared_ptr<Layer> aside_, side_;
  std::shared_ptr<Embedding> lookup_;
};

namespace {

Model model_of(const std::shared_ptr<MultiIo>& root) {
  return {.module = root,
          .forward = [root](const std::vector<at::Tensor>& in) { return root->forward(in[0], in[1], in[2]); },
          .input_names = {"x", "ids", "scale"},
          .input_chunks = {microbatch::ChunkSpec{}, microbatch::ChunkSpec{.dim = 1},
                           microbatch::ChunkSpec{.replicate = true}},
          .split_points = later_children("layers", layer_count),
          .fine_split_points = halved_children("layers", layer_count, {"fc", split::SplitPoint::Where::End})};
}

Model real_model(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<MultiIo>(32, Activation::Gelu);
  set_real_parameters(*root, dtype, seed);
  return model_of(root);
}

Model exact_model(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<MultiIo>(8, Activation::Abs);
  set_exact_parameters(*root, dtype, seed, {});
  return model_of(root);
}

/// Ids stop before the last entry, since the model increments them by one.
at::Tensor ids(int rows, uint64_t seed, int step) {
  return index_data({ids_in_row, rows}, entries - 1, seed, step, "ids");
}

Batch real_batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {real_data({rows, 32}, dtype, seed, step, "x"), ids(rows, seed, step),
                     real_data({32}, dtype, seed, step, "scale")},
          .targets = real_data({rows, 32}, dtype, seed, step, "target")};
}

Batch exact_batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  return {.inputs = {exact_data({rows, 8}, 3, dtype, seed, step, "x"), ids(rows, seed, step),
                     exact_data({8}, 1, dtype, seed, step, "scale")},
          .targets = exact_data({rows, 8}, 3, dtype, seed, step, "target")};
}

}  // namespace

}  // namespace multi_io_models

std::vector<Family> multi_io_families() {
  using namespace multi_io_models;
  return {{"multi-io", real_model, real_batch}, {"exact-multi-io", exact_model, exact_batch}};
}

}  // namespace plumbline::models
