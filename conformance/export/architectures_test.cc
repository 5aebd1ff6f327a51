#include "conformance/export/architectures.h"

#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <map>
#include <set>

#include "reference/models/zoo.h"

namespace plumbline::conformance {
namespace {

/// Compares the exported numbers with the model's parameters.
TEST(Architectures, AreThoseOfTheModels) {
  for (const std::string& name : models::model_names()) {
    const nlohmann::ordered_json about = architecture_of(name);
    if (about.is_null()) continue;
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const auto& item : models::make_model(name, reference::Dtype::F32, 1).module->named_parameters())
      shapes[item.key()] = item.value().sizes().vec();
    const auto number = [&](const char* key) { return about.at(key).get<int64_t>(); };
    const std::string list = about.contains("layers") ? "layers" : "blocks";
    std::set<std::string> parts;
    for (const auto& [key, shape] : shapes)
      if (key.starts_with(list + "."))
        parts.insert(key.substr(list.size() + 1, key.find('.', list.size() + 1) - list.size() - 1));
    EXPECT_EQ(static_cast<int64_t>(parts.size()), number(list.c_str())) << name;
    using Sizes = std::vector<int64_t>;
    if (about["architecture"] == "mlp") {
      EXPECT_EQ(shapes.at("layers.0.fc.weight"), (Sizes{number("width"), number("width")})) << name;
    } else if (about["architecture"] == "transformer") {
      EXPECT_EQ(shapes.at("tok.weight"), (Sizes{number("vocabulary"), number("width")}));
      EXPECT_EQ(shapes.at("pos.weight"), (Sizes{number("length"), number("width")}));
      EXPECT_EQ(shapes.at("blocks.0.up.weight"), (Sizes{number("feed_forward"), number("width")}));
      EXPECT_EQ(shapes.at("blocks.0.attention.qkv.weight"), (Sizes{3 * number("width"), number("width")}));
    } else {
      EXPECT_EQ(shapes.at("stem.weight"), (Sizes{number("channels"), number("image_channels"), 3, 3}));
      EXPECT_EQ(shapes.at("head.weight"), (Sizes{number("classes"), number("channels")}));
    }
  }
}

}  // namespace
}  // namespace plumbline::conformance
