#include "reference/models/parts/names.h"

namespace plumbline::models {

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {
      // real data
      "absent-value", "attention", "autocast", "auxiliary", "balanced", "begins-in-place", "begins-with-row",
      "begins-with-view", "branch", "complex", "composed-weights", "constants", "dict", "dimensions", "early-exit",
      "either-mask", "encoder-decoder",
      // whole numbers
      "exact-absent-value", "exact-aliases", "exact-attention", "exact-attention-lengths", "exact-auxiliary",
      "exact-begins-in-place", "exact-begins-turned", "exact-begins-with-expand", "exact-begins-with-row",
      "exact-begins-with-sum", "exact-begins-with-view", "exact-branch", "exact-columns", "exact-common-factor",
      "exact-complex", "exact-composed-weights", "exact-conjugated", "exact-convolution", "exact-dict",
      "exact-dict-loss", "exact-dimensions", "exact-early-exit", "exact-either-mask", "exact-encoder-decoder",
      "exact-encoder-decoder-lengths", "exact-experts", "exact-flat-parameters", "exact-frozen", "exact-frozen-first",
      "exact-frozen-last", "exact-frozen-weights", "exact-heads", "exact-hooked", "exact-late-input", "exact-late-mask",
      "exact-late-write", "exact-leading-mask", "exact-lengths", "exact-lopsided", "exact-loss-inside",
      "exact-loss-read", "exact-loss-view", "exact-masked", "exact-mixed-double", "exact-mixed-half", "exact-mlp",
      "exact-multi-io", "exact-none", "exact-optional-mask", "exact-parameter-output", "exact-passed-through",
      "exact-polynomial", "exact-polynomial-shared", "exact-read-by-all", "exact-recurrent", "exact-relu",
      "exact-scalar", "exact-shared-detached", "exact-shared-ends", "exact-shared-everywhere", "exact-shared-frozen",
      "exact-shared-neighbours", "exact-shared-parts", "exact-shared-places", "exact-shared-summand",
      "exact-shared-three", "exact-shared-transposed", "exact-shared-within", "exact-skip", "exact-small-numbers",
      "exact-split-twice", "exact-stash", "exact-strided-gradients", "exact-summed-views", "exact-summed-weights",
      "exact-temperature", "exact-tied", "exact-twin-skips", "exact-two-heads", "exact-unet", "exact-unused-inputs",
      "exact-unused-parameters", "exact-views", "exact-wide",
      // real data
      "experts", "flat-parameters", "frozen-first", "frozen-last", "heads", "hooked", "host-numbers", "idle",
      "late-buffer", "late-input", "late-write", "leading-mask", "lengths", "lopsided", "loss-inside", "lstm",
      "mixed-bf16", "mixed-double", "mixed-half", "mlp", "mlp-dropout", "mlp-frozen", "multi-io", "noise", "none",
      "optional-mask", "passed-through", "reads-buffer", "recurrent", "resnet-bn", "shared-dropout", "shared-ends",
      "shared-three", "shared-transposed", "small-numbers", "spiked", "split-twice", "strided-gradients",
      "summed-views", "transformer-lm", "transformer-mixed", "two-autocasts", "unet", "unet-stash", "unused-parameters",
      "views", "wide"};
  return names;
}

bool is_exact_model(const std::string& name) { return name.starts_with("exact-"); }

}  // namespace plumbline::models
