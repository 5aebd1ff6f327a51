#include "reference/models/names.h"

namespace plumbline {

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {
      "attention", "begins-in-place", "begins-with-view", "encoder-decoder", "exact-aliases", "exact-attention", "exact-begins-in-place", "exact-begins-with-view", "exact-convolution", "exact-encoder-decoder", "exact-experts", "exact-frozen", "exact-frozen-first", "exact-frozen-last", "exact-frozen-weights", "exact-late-input", "exact-loss-inside", "exact-masked", "exact-mixed-double", "exact-mlp", "exact-multi-io", "exact-none", "exact-passed-through", "exact-recurrent", "exact-relu", "exact-scalar", "exact-shared-ends", "exact-shared-everywhere", "exact-shared-frozen", "exact-shared-neighbours", "exact-shared-parts", "exact-shared-three", "exact-shared-transposed", "exact-shared-within", "exact-skip", "exact-small-numbers", "exact-stash", "exact-tied", "exact-unet", "exact-unused-inputs", "exact-unused-parameters", "exact-views", "exact-wide", "experts", "frozen-last", "host-numbers", "late-input", "loss-inside", "mixed-bf16", "mixed-double", "mlp", "mlp-dropout", "mlp-frozen", "multi-io", "noise", "none", "passed-through", "recurrent", "resnet-bn", "shared-dropout", "shared-ends", "shared-three", "shared-transposed", "small-numbers", "transformer-lm", "unet", "unet-stash", "unused-parameters", "views"};
  return names;
}

bool is_exact_model(const std::string& name) { return name.starts_with("exact-"); }

}  // namespace plumbline
