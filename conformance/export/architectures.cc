#include "conformance/export/architectures.h"

#include <map>

namespace plumbline::conformance {
namespace {

using Json = nlohmann::ordered_json;

Json mlp(int width, const char* activation, double dropout) {
  return {{"architecture", "mlp"}, {"layers", 8}, {"width", width}, {"activation", activation}, {"dropout", dropout}};
}

}  // namespace

Json architecture_of(const std::string& model) {
  static const std::map<std::string, Json> known = {
      {"mlp", mlp(32, "gelu", 0.0)},
      {"mlp-dropout", mlp(32, "gelu", 0.25)},
      {"mlp-frozen", mlp(32, "gelu", 0.0)},
      {"exact-mlp", mlp(8, "abs", 0.0)},
      {"exact-frozen", mlp(8, "abs", 0.0)},
      {"exact-relu", mlp(8, "relu", 0.0)},
      {"transformer-lm",
       {{"architecture", "transformer"},
        {"blocks", 8},
        {"width", 32},
        {"heads", 4},
        {"feed_forward", 32},
        {"vocabulary", 128},
        {"length", 16}}},
      {"resnet-bn",
       {{"architecture", "resnet"},
        {"blocks", 8},
        {"channels", 8},
        {"image_channels", 3},
        {"side", 8},
        {"classes", 10}}},
  };
  const auto it = known.find(model);
  return it == known.end() ? Json(nullptr) : it->second;
}

}  // namespace plumbline::conformance
