#include "bench/peers/measured_steps.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline::bench {
namespace {

class MeasuredStepsFiles : public ::testing::Test {
 protected:
  void write(int rank, const std::string& json, const TensorMap& gradients) const {
    write_file(steps_file(folder_.path(), "1f1b", rank, ".json"), json);
    write_tensor_file(steps_file(folder_.path(), "1f1b", rank, ".safetensors"), gradients);
  }

  std::string refusal() const {
    return plumbline::testing::failure([&] { read_steps(folder_.path(), "1f1b", 2); });
  }

  const TemporaryFolder folder_;
  const std::string two_steps_ = R"({"seconds": [1.0, 4.0], "processor_seconds": [0.5, 1.5]})";
};

TEST_F(MeasuredStepsFiles, AStepTakesAsLongAsOnItsSlowestRankAndTheProcessorTimeOfAll) {
  write(0, two_steps_, {{"a", make_f64({2}, {1, 2})}});
  write(1, R"({"seconds": [3.0, 2.0], "processor_seconds": [0.25, 0.125]})", {{"b", make_f64({}, {3})}});
  const MeasuredSteps steps = read_steps(folder_.path(), "1f1b", 2);
  EXPECT_EQ(steps.seconds, (std::vector<double>{3, 4}));
  EXPECT_EQ(steps.cpu_seconds, (std::vector<double>{0.75, 1.625}));
  EXPECT_EQ(steps.gradients, (TensorMap{{"a", make_f64({2}, {1, 2})}, {"b", make_f64({}, {3})}}));
}

TEST_F(MeasuredStepsFiles, AParameterOnTwoRanksHasOneGradient) {
  const HostTensor once = make_f64({2}, {1, 2});
  write(0, two_steps_, {{"a", once}, {"tied", once}});
  write(1, two_steps_, {{"b", make_f64({}, {3})}, {"tied", once}});
  EXPECT_EQ(read_steps(folder_.path(), "1f1b", 2).gradients,
            (TensorMap{{"a", once}, {"b", make_f64({}, {3})}, {"tied", once}}));
  for (const HostTensor& other : {make_f64({2}, {1, 3}), make_f64({1, 2}, {1, 2})}) {
    write(1, two_steps_, {{"b", make_f64({}, {3})}, {"tied", other}});
    plumbline::testing::expect_line(refusal(), (folder_ / "1f1b.1.json").string(),
                                    "the gradient of tied is another one on an earlier rank");
  }
}

TEST_F(MeasuredStepsFiles, RanksHaveTheSameStepsAndBothFiles) {
  write(0, two_steps_, {});
  plumbline::testing::expect_line(refusal(), (folder_ / "1f1b.1.json").string(), "1f1b.1.json");
  for (const char* json : {R"({"seconds": [1.0], "processor_seconds": [0.5]})",
                           R"({"seconds": [1.0, 2.0], "processor_seconds": [0.5]})"}) {
    write(1, json, {});
    plumbline::testing::expect_line(refusal(), (folder_ / "1f1b.1.json").string(), "not as many steps as rank 0 has");
  }
  write(0, R"({"seconds": [], "processor_seconds": []})", {});
  plumbline::testing::expect_line(refusal(), (folder_ / "1f1b.0.json").string(), "not as many steps as rank 0 has");
}

}  // namespace
}  // namespace plumbline::bench
