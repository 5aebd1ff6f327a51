#include "runtime/partition/testing/random_joint_graph.h"

#include <algorithm>

namespace plumbline::testing {
namespace {

class Maker {
 public:
  Maker(std::mt19937& random, const RandomJointOptions& options) : random_(random), options_(options) {}

  JointGraph make() {
    for (int i = 0; i < options_.primals; ++i) forward_.push_back(build_.primal(bytes()));
    const int outputs = 1 + below(options_.max_outputs);
    for (int i = 0; i < outputs; ++i) backward_.push_back(build_.tangent(bytes()));
    for (int i = 0; i < options_.forward_calls; ++i) add_call(forward_, some(forward_, 3));
    std::vector<NodeIndex> forward_outputs = {forward_.back()};
    while (static_cast<int>(forward_outputs.size()) < outputs)
      forward_outputs.push_back(forward_[below(static_cast<int>(forward_.size()))]);

    build_.begin_backward();
    for (int i = 0; i < options_.backward_calls; ++i) {
      std::vector<NodeIndex> inputs = some(forward_, 2);
      if (chance(options_.unclaimed)) {
        // Only the backward uses it, though it could run in the forward.
        add_call(forward_, inputs);
        continue;
      }
      inputs.resize(below(static_cast<int>(inputs.size()) + 1));
      const std::vector<NodeIndex> gradients = some(backward_, 2);
      inputs.insert(inputs.begin(), gradients.begin(), gradients.end());
      add_call(backward_, inputs);
    }
    std::vector<NodeIndex> gradients = {backward_.back()};
    for (int i = 1; i < options_.primals; ++i)
      gradients.push_back(chance(0.15) ? kNoNode : chance(0.1) ? some(forward_, 1)[0] : some(backward_, 1)[0]);
    return build_.graph(forward_outputs, gradients);
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random_) < share; }
  int64_t bytes() { return 4 * (1 + below(options_.max_bytes / 4)); }

  /// 1 to `most` of `values`, mostly late ones.
  std::vector<NodeIndex> some(const std::vector<NodeIndex>& values, int most) {
    std::vector<NodeIndex> chosen;
    const int n = static_cast<int>(values.size()), count = 1 + below(most);
    for (int i = 0; i < count; ++i) chosen.push_back(values[chance(0.6) ? n - 1 - below(std::min(n, 4)) : below(n)]);
    return chosen;
  }

  void add_call(std::vector<NodeIndex>& values, const std::vector<NodeIndex>& inputs) {
    const int before = build_.size();
    double dice = std::uniform_real_distribution<double>(0, 1)(random_);
    const auto falls = [&](double share) { return (dice -= share) < 0; };
    if (falls(options_.views)) {
      // A slice is smaller than what it is cut from; the storage is the same.
      const bool slice = chance(0.3);
      const int64_t of = build_.at(inputs[0]).out.bytes;
      values.push_back(build_.view(slice ? "slice" : "view", inputs[0], slice && of >= 8 ? of / 8 * 4 : of));
      return;
    }
    if (falls(options_.multi / 2)) {
      const std::vector<NodeIndex> items = build_.split(inputs[0], 2);
      values.insert(values.end(), items.begin(), items.end());
      return;
    }
    if (falls(options_.multi / 2)) {
      const std::vector<NodeIndex> items = build_.multi("native_layer_norm", inputs, {bytes(), 4, 4});
      values.insert(values.end(), items.begin(), items.end());
      return;
    }
    if (falls(options_.seeded)) {
      const std::vector<NodeIndex> items = build_.multi("native_dropout", {inputs[0]}, {bytes(), bytes()});
      values.insert(values.end(), items.begin(), items.end());
    } else if (falls(options_.intensive)) {
      values.push_back(build_.call("mm", inputs, bytes(), options_.flops ? 1000. * (1 + below(9)) : 1));
    } else {
      static constexpr const char* kCheap[] = {"add", "mul", "cos", "sum", "where"};
      values.push_back(build_.call(kCheap[below(5)], inputs, bytes()));
    }
    if (chance(options_.tags))
      build_.at(before).recompute = chance(0.5)   ? CheckpointPolicy::MustSave
                                    : chance(0.5) ? CheckpointPolicy::MustRecompute
                                                  : CheckpointPolicy::PreferRecompute;
  }

  std::mt19937& random_;
  const RandomJointOptions& options_;
  JointGraphBuilder build_;
  std::vector<NodeIndex> forward_, backward_;  // values that calls may read
};

}  // namespace

JointGraph random_joint_graph(std::mt19937& random, const RandomJointOptions& options) {
  return Maker(random, options).make();
}

}  // namespace plumbline::testing
