// A loss that compares two outputs, each with its own target: the engine against plain autograd over the whole module,
// which has the targets as tensors and divides them itself.
#include <ATen/ops/cat.h>
#include <ATen/ops/mse_loss.h>

#include "runtime/engine/engine.h"
#include "runtime/engine/testing/engine_test_models.h"

namespace plumbline::testing {
namespace {

class TwoTargets : public ::testing::Test {
 protected:
  static constexpr int kParts = 3;
  static constexpr int64_t kLines = 7;  // 3, 2 and 2

  /// The targets weigh differently, so that an exchange shows.
  static at::Tensor loss_of(const Tensors& outputs, const at::Tensor& first, const at::Tensor& second) {
    return at::mse_loss(outputs[0], first) + at::mse_loss(outputs[1], second) * 2;
  }

  static void compare_both(Fleet& fleet) {
    fleet.split.loss_outputs = std::vector<int>{0, 1};
    fleet.options.loss = [](const Tensors& outputs, const Targets& targets) {
      EXPECT_EQ(targets.size(), 2u);
      return loss_of(outputs, targets[0], targets[1]);
    };
  }

  Told plain(int stages) const {
    at::set_num_threads(1);
    Net net("two outputs", stages);
    Told told;
    Tensors of_layers, of_side;
    for (int m = 0; m < kParts; ++m) {
      const Tensors outputs = net.forward({xs_[m]});
      const at::Tensor loss = loss_of(outputs, firsts_[m], seconds_[m]);
      loss.backward();
      told.losses.push_back(loss.detach());
      of_layers.push_back(outputs[0].detach());
      of_side.push_back(outputs[1].detach());
    }
    told.outputs = {at::cat(of_layers), at::cat(of_side)};
    for (const auto& item : net.named_parameters()) told.gradients[item.key()] = item.value().grad() / kParts;
    return told;
  }

  microbatch::Microbatches parts() const {
    microbatch::Microbatches batch;
    for (int m = 0; m < kParts; ++m) {
      batch.inputs.push_back({xs_[m]});
      batch.targets.push_back({firsts_[m], seconds_[m]});
    }
    return batch;
  }

  const at::Tensor x_ = batch_of("two outputs", kLines), first_ = target_of("two outputs", kLines),
                   second_ = waves({kLines, kWidth}, 4.2);
  const Tensors xs_ = x_.tensor_split(kParts), firsts_ = first_.tensor_split(kParts),
                seconds_ = second_.tensor_split(kParts);
};

TEST_F(TwoTargets, GiveTheGradientsOfPlainAutogradWholeAndDivided) {
  for (const char* name : {"gpipe", "1f1b"})
    for (const int ranks : {1, 2, 4}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(ranks) + " ranks");
      const schedule::Schedule schedule = schedule::make_schedule(name, ranks, kParts);
      Fleet whole("two outputs", schedule), divided("two outputs", schedule);
      compare_both(whole);
      compare_both(divided);
      Told evaluated, trained, of_parts;
      whole.run([&](engine::Engine& engine, int) {
        whole.tell(evaluated, engine, engine.evaluate({x_}, {first_, second_}));
        whole.tell(trained, engine, engine.train({x_}, {first_, second_}));
      });
      divided.run([&](engine::Engine& engine, int) { divided.tell(of_parts, engine, engine.train(parts())); });
      const Told theirs = plain(schedule.stages);
      expect_same(evaluated.losses, theirs.losses, "evaluation loss");
      expect_same(trained, theirs);
      expect_same(of_parts, theirs);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace plumbline::testing
