#include "runtime/partition/testing/random_joint_graph.h"

#include <algorithm>

namespace plumbline::testing {
namespace {

class Maker {
 public:
  Maker(std::mt19937& random, const RandomJointOptions& options) : random_(random), options_(options) {}

  partition::JointGraph make() {
    for (int i = 0; i < options_.primals; ++i) forward_.push_back(build_.primal(bytes()));
    const int outputs = 1 + below(options_.max_outputs);
    for (int i = 0; i < outputs; ++i) backward_.push_back(build_.tangent(bytes()));
    for (int i = 0; i < options_.forward_calls; ++i) add_call(forward_, some(forward_, 3));
    std::vector<partition::NodeIndex> forward_outputs = {forward_.back()};
    while (static_cast<int>(forward_outputs.size()) < outputs)
      forward_outputs.push_back(forward_[below(static_cast<int>(forward_.size()))]);
    if (!scalars_.empty() && chance(0.3)) forward_outputs.push_back(some(scalars_, 1)[0]);

    build_.begin_backward();
    in_backward_ = true;
    for (int i = 0; i < options_.backward_calls; ++i) {
      std::vector<partition::NodeIndex> inputs = some(forward_, 2);
      if (chance(options_.unclaimed)) {
        // Only the backward uses it, although the forward could run it.
        add_call(forward_, inputs);
        continue;
      }
      inputs.resize(below(static_cast<int>(inputs.size()) + 1));
      const std::vector<partition::NodeIndex> gradients = some(backward_, 2);
      inputs.insert(inputs.begin(), gradients.begin(), gradients.end());
      add_call(backward_, inputs);
    }
    std::vector<partition::NodeIndex> gradients = {backward_.back()};
    for (int i = 1; i < options_.primals; ++i)
      gradients.push_back(chance(0.15)  ? partition::kNoNode
                          : chance(0.1) ? some(forward_, 1)[0]
                                        : some(backward_, 1)[0]);
    return build_.graph(forward_outputs, gradients);
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random_) < share; }
  int64_t bytes() { return 4 * (1 + below(options_.max_bytes / 4)); }

  /// 1 to `most` of `values`, mostly late ones.
  std::vector<partition::NodeIndex> some(const std::vector<partition::NodeIndex>& values, int most) {
    std::vector<partition::NodeIndex> chosen;
    const int n = static_cast<int>(values.size()), count = 1 + below(most);
    for (int i = 0; i < count; ++i) chosen.push_back(values[chance(0.6) ? n - 1 - below(std::min(n, 4)) : below(n)]);
    return chosen;
  }

  void add_call(std::vector<partition::NodeIndex>& values, std::vector<partition::NodeIndex> inputs) {
    const int before = build_.size();
    make_call(values, std::move(inputs));
    for (int node = before; node < build_.size(); ++node) mark(build_.at(node));
  }

  void mark(partition::JointNode& node) {
    if (node.kind != partition::JointKind::Call) return;
    // A writing call is kept in its half by its mark, so it keeps the mark.
    if (options_.unmarked > 0 && !node.writes && chance(options_.unmarked)) node.mark = partition::JointMark::None;
    if (options_.bound > 0 && !node.view && chance(options_.bound))
      node.mark = in_backward_ ? partition::JointMark::MustBeInBackward : partition::JointMark::MustBeInForward;
  }

  void make_call(std::vector<partition::NodeIndex>& values, std::vector<partition::NodeIndex> inputs) {
    const int before = build_.size();
    double dice = std::uniform_real_distribution<double>(0, 1)(random_);
    const auto falls = [&](double share) { return (dice -= share) < 0; };
    if (&values == &forward_ && falls(options_.scalars)) {
      const bool of_scalar = !scalars_.empty() && chance(0.4);
      scalars_.push_back(of_scalar ? build_.integer("operator::mul", some(scalars_, 2), 2)
                                   : build_.integer("sym_size", {inputs[0]}, 2));
      return;
    }
    const bool reads_scalar = !scalars_.empty() && chance(0.4);
    const partition::NodeIndex scalar = reads_scalar ? some(scalars_, 1)[0] : partition::kNoNode;
    if (falls(options_.views)) {
      // A slice is smaller than its base, but has the same storage.
      const bool slice = chance(0.3);
      const int64_t of = build_.at(inputs[0]).out.bytes;
      const partition::NodeIndex view =
          build_.view(slice ? "slice" : "view", inputs[0], slice && of >= 8 ? of / 8 * 4 : of);
      if (reads_scalar) build_.at(view).args.push_back({.kind = partition::JointArgument::Kind::Node, .node = scalar});
      values.push_back(view);
      return;
    }
    if (falls(options_.multi / 2)) {
      const std::vector<partition::NodeIndex> items = build_.split(inputs[0], 2);
      values.insert(values.end(), items.begin(), items.end());
      return;
    }
    if (reads_scalar) inputs.push_back(scalar);
    if (falls(options_.multi / 2)) {
      const std::vector<partition::NodeIndex> items = build_.multi("native_layer_norm", inputs, {bytes(), 4, 4});
      values.insert(values.end(), items.begin(), items.end());
      return;
    }
    if (falls(options_.effects)) {
      const partition::NodeIndex effect = build_.call("own::effect", inputs, bytes());
      partition::JointNode& node = build_.at(effect);
      node.impure = true;
      node.writes = chance(0.3);
      if (chance(0.3))
        node.out = {};
      else
        values.push_back(effect);
      return;
    }
    if (falls(options_.seeded)) {
      const bool draws = chance(0.7);
      const std::vector<partition::NodeIndex> items =
          draws ? build_.multi("native_dropout", {inputs[0]}, {bytes(), bytes()})
                : build_.multi("_scaled_dot_product_flash_attention_for_cpu", {inputs[0]}, {bytes(), bytes()});
      build_.at(before).seeded = true;
      build_.at(before).impure = chance(0.7);  // the author of a graph may have forgotten this flag
      values.insert(values.end(), items.begin(), items.end());
    } else if (falls(options_.intensive)) {
      values.push_back(build_.call("mm", inputs, bytes(), options_.flops ? 1000. * (1 + below(9)) : 1));
    } else {
      static constexpr const char* kCheap[] = {"add", "mul", "cos", "sum", "where"};
      values.push_back(build_.call(kCheap[below(5)], inputs, bytes()));
    }
    if (chance(options_.tags))
      build_.at(before).recompute = chance(0.5)   ? partition::CheckpointPolicy::MustSave
                                    : chance(0.5) ? partition::CheckpointPolicy::MustRecompute
                                                  : partition::CheckpointPolicy::PreferRecompute;
  }

  std::mt19937& random_;
  const RandomJointOptions& options_;
  JointGraphBuilder build_;
  std::vector<partition::NodeIndex> forward_, backward_, scalars_;  // values that calls may read
  bool in_backward_ = false;
};

}  // namespace

partition::JointGraph random_joint_graph(std::mt19937& random, const RandomJointOptions& options) {
  return Maker(random, options).make();
}

}  // namespace plumbline::testing
