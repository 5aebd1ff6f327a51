#include "reference/models/names.h"

namespace plumbline {

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {
      "exact-frozen", "exact-mlp",  "exact-multi-io", "exact-relu", "exact-skip",  "exact-stash",
      "exact-tied",   "exact-wide", "loss-inside",    "mlp",        "mlp-dropout", "mlp-frozen",
      "multi-io",     "resnet-bn",  "transformer-lm", "unet",       "unet-stash"};
  return names;
}

bool is_exact_model(const std::string& name) { return name.starts_with("exact-"); }

}  // namespace plumbline
