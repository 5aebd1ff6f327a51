// Every model of the corpus, constructed and captured without memory: the graph equals that captured on the CPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "reference/models/zoo.h"
#include "reference/testing/whole_batch.h"
#include "runtime/capture/capture.h"
#include "runtime/capture/meta/meta_device.h"
#include "runtime/capture/testing/meta_graphs.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::capture {
namespace {

using testing::expect_same_graph;
using testing::meta_like;
using Tensors = std::vector<at::Tensor>;

std::vector<NamedTensor> named(const models::Model& model, const Tensors& inputs) {
  std::vector<NamedTensor> out;
  for (size_t i = 0; i < inputs.size(); ++i) out.push_back({model.input_names[i], inputs[i]});
  return out;
}

class MetaZoo : public ::testing::TestWithParam<std::string> {};

TEST_P(MetaZoo, IsCapturedAsOnTheCpu) {
  // Autocast of the CPU casts no tensor of another device, so that a capture without memory lacks the casts.
  if (GetParam().find("autocast") != std::string::npos) return;
  const models::Model real = models::make_model(GetParam(), reference::Dtype::F32, 11);
  models::Model huge;
  {
    const MetaDeviceScope on_meta;
    huge = models::make_model(GetParam(), reference::Dtype::F32, 11);
  }
  for (const at::Tensor& parameter : huge.module->parameters()) ASSERT_TRUE(parameter.is_meta());
  for (const at::Tensor& buffer : huge.module->buffers()) ASSERT_TRUE(buffer.is_meta());
  const Tensors inputs = testing::whole_batch(GetParam(), reference::Dtype::F32, 4, 11).inputs;
  for (const bool training : {true, false}) {
    SCOPED_TRACE(training ? "training" : "evaluation");
    real.module->train(training);
    huge.module->train(training);
    expect_same_graph(capture(*huge.module, huge.forward, named(huge, meta_like(inputs))),
                      capture(*real.module, real.forward, named(real, inputs)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MetaZoo, ::testing::ValuesIn(models::model_names()), testing::ParameterName());

}  // namespace
}  // namespace plumbline::capture
