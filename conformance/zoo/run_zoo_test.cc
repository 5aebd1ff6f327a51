// Every model of the corpus, unsplit: traced, partitioned in every mode, and executed forward and backward (whole, and
// split); compared bit for bit with plain autograd on the model.
#include "reference/models/zoo.h"
#include "reference/testing/whole_batch.h"
#include "runtime/partition/testing/run_testing.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::partition {
namespace {

class RunZoo : public ::testing::TestWithParam<std::string> {};

TEST_P(RunZoo, HasTheBitsOfAutogradInEveryMode) {
  const models::Model model = models::make_model(GetParam(), reference::Dtype::F32, 3);
  Tensors inputs = testing::whole_batch(GetParam(), reference::Dtype::F32, 4, 3).inputs;
  for (at::Tensor& input : inputs)
    if (input.defined() && input.is_floating_point()) input = input.clone().requires_grad_();
  testing::expect_bits_of_autograd(
      *model.module, model.forward, inputs, "torch-2.15",
      {"default", "min-cut", "aggressive", "bytes", "budget=0.5", "budget=0.1", "budget=0"});
}

INSTANTIATE_TEST_SUITE_P(All, RunZoo, ::testing::ValuesIn(models::model_names()), testing::ParameterName());

}  // namespace
}  // namespace plumbline::partition
