#include "runtime/partition/testing/large_joint_graphs.h"

#include <algorithm>

#include "runtime/partition/testing/joint_graph_builder.h"

namespace plumbline::testing {
namespace {

/// The values of one block that its backward reads.
struct Block {
  partition::NodeIndex norm_weight, norm_bias, qkv_weight, qkv_bias, out_weight, out_bias, norm2_weight, norm2_bias,
      up_weight, up_bias, down_weight, down_bias;
  partition::NodeIndex input, middle;
  std::vector<partition::NodeIndex> norm, norm2;  ///< result, mean, rstd
  partition::NodeIndex norm_rows, norm2_rows, q, k, v, softmax, attention_rows, up, gelu_rows;
  partition::NodeIndex qkv_t, out_t, up_t, down_t;
};

class Transformer {
 public:
  explicit Transformer(const TransformerSizes& sizes)
      : sizes_(sizes),
        rows_(sizes.batch * sizes.length),
        tokens_(4 * rows_ * sizes.width),
        stats_(4 * rows_),
        scores_(4 * sizes.batch * sizes.heads * sizes.length * sizes.length) {}

  partition::JointGraph make() {
    const int64_t d = sizes_.width;
    const partition::NodeIndex x = build_.primal(tokens_);
    blocks_.resize(sizes_.blocks);
    for (Block& b : blocks_) {
      b.norm_weight = build_.primal(4 * d);
      b.norm_bias = build_.primal(4 * d);
      b.qkv_weight = build_.primal(4 * 3 * d * d);
      b.qkv_bias = build_.primal(4 * 3 * d);
      b.out_weight = build_.primal(4 * d * d);
      b.out_bias = build_.primal(4 * d);
      b.norm2_weight = build_.primal(4 * d);
      b.norm2_bias = build_.primal(4 * d);
      b.up_weight = build_.primal(4 * 4 * d * d);
      b.up_bias = build_.primal(4 * 4 * d);
      b.down_weight = build_.primal(4 * 4 * d * d);
      b.down_bias = build_.primal(4 * d);
    }
    const partition::NodeIndex tangent = build_.tangent(tokens_);
    partition::NodeIndex value = x;
    for (Block& b : blocks_) value = forward(b, value);
    build_.begin_backward();
    partition::NodeIndex gradient = tangent;
    std::vector<partition::NodeIndex> gradients(1 + 12 * blocks_.size(), partition::kNoNode);
    for (size_t k = blocks_.size(); k-- > 0;) gradient = backward(blocks_[k], gradient, &gradients[1 + 12 * k]);
    gradients[0] = gradient;
    return build_.graph({value}, gradients);
  }

 private:
  partition::NodeIndex linear(partition::NodeIndex rows, partition::NodeIndex weight_t, partition::NodeIndex bias,
                              int64_t in, int64_t out) {
    return build_.view("_unsafe_view", build_.call("addmm", {bias, rows, weight_t}, 4 * rows_ * out, flops(in, out)));
  }
  double flops(int64_t in, int64_t out) const { return 2. * static_cast<double>(rows_ * in * out); }
  double attention_flops() const { return 2. * static_cast<double>(rows_ * sizes_.length * sizes_.width); }
  /// Turns heads into the batch of a product: expand, copy, view.
  partition::NodeIndex head_batch(partition::NodeIndex value) {
    const partition::NodeIndex expanded = build_.view("expand", build_.view("transpose", build_.view("view", value)));
    return build_.view("_unsafe_view", build_.call("clone", {expanded}, tokens_));
  }

  partition::NodeIndex forward(Block& b, partition::NodeIndex x) {
    const int64_t d = sizes_.width;
    b.input = x;
    b.norm = build_.multi("native_layer_norm", {x, b.norm_weight, b.norm_bias}, {tokens_, stats_, stats_});
    b.norm_rows = build_.view("view", b.norm[0]);
    b.qkv_t = build_.view("t", b.qkv_weight);
    const std::vector<partition::NodeIndex> parts = build_.split(linear(b.norm_rows, b.qkv_t, b.qkv_bias, d, 3 * d), 3);
    b.q = head_batch(parts[0]);
    b.k = head_batch(parts[1]);
    const partition::NodeIndex scores = build_.view("view", build_.call("bmm", {b.q, b.k}, scores_, attention_flops()));
    const partition::NodeIndex scaled = build_.call("div", {scores}, scores_);
    b.softmax = build_.view("view", build_.view("expand", build_.call("_softmax", {scaled}, scores_)));
    b.v = head_batch(parts[2]);
    const partition::NodeIndex mixed =
        build_.view("view", build_.call("bmm", {b.softmax, b.v}, tokens_, attention_flops()));
    const partition::NodeIndex joined = build_.call("clone", {build_.view("transpose", mixed)}, tokens_);
    b.attention_rows = build_.view("view", build_.view("_unsafe_view", joined));
    b.out_t = build_.view("t", b.out_weight);
    b.middle = build_.call("add", {x, linear(b.attention_rows, b.out_t, b.out_bias, d, d)}, tokens_);
    b.norm2 = build_.multi("native_layer_norm", {b.middle, b.norm2_weight, b.norm2_bias}, {tokens_, stats_, stats_});
    b.norm2_rows = build_.view("view", b.norm2[0]);
    b.up_t = build_.view("t", b.up_weight);
    b.up = linear(b.norm2_rows, b.up_t, b.up_bias, d, 4 * d);
    b.gelu_rows = build_.view("view", build_.call("gelu", {b.up}, 4 * tokens_));
    b.down_t = build_.view("t", b.down_weight);
    return build_.call("add", {b.middle, linear(b.gelu_rows, b.down_t, b.down_bias, 4 * d, d)}, tokens_);
  }

  /// Returns the gradient of a linear layer's input; stores those of weight and bias in `of_weight`.
  partition::NodeIndex linear_backward(partition::NodeIndex gradient, partition::NodeIndex rows,
                                       partition::NodeIndex weight_t, int64_t in, int64_t out,
                                       partition::NodeIndex* of_weight) {
    const partition::NodeIndex wide = build_.view("view", gradient);
    const partition::NodeIndex of_input =
        build_.call("mm", {wide, build_.view("t", weight_t)}, 4 * rows_ * in, flops(in, out));
    const partition::NodeIndex product =
        build_.call("mm", {build_.view("t", wide), rows}, 4 * in * out, flops(in, out));
    of_weight[0] = build_.view("t", build_.view("t", product));
    of_weight[1] = build_.view("view", build_.call("sum", {wide}, 4 * out));
    return build_.view("view", of_input);
  }

  /// Returns the gradient of the layer's input; stores those of weight and bias in `of_weight`.
  partition::NodeIndex norm_backward(partition::NodeIndex gradient, partition::NodeIndex input,
                                     const std::vector<partition::NodeIndex>& norm, partition::NodeIndex weight,
                                     partition::NodeIndex bias, partition::NodeIndex* of_weight) {
    const std::vector<partition::NodeIndex> parts =
        build_.multi("native_layer_norm_backward", {gradient, input, norm[1], norm[2], weight, bias},
                     {tokens_, 4 * sizes_.width, 4 * sizes_.width});
    of_weight[0] = parts[1];
    of_weight[1] = parts[2];
    return parts[0];
  }

  partition::NodeIndex from_head_batch(partition::NodeIndex value) {
    const partition::NodeIndex back = build_.view("transpose", build_.view("view", value));
    return build_.view("_unsafe_view", build_.call("clone", {back}, tokens_));
  }

  partition::NodeIndex backward(const Block& b, partition::NodeIndex gradient, partition::NodeIndex* of) {
    const int64_t d = sizes_.width;
    const partition::NodeIndex of_gelu = linear_backward(gradient, b.gelu_rows, b.down_t, 4 * d, d, of + 10);
    const partition::NodeIndex of_up = build_.call("gelu_backward", {of_gelu, b.up}, 4 * tokens_);
    const partition::NodeIndex of_norm2 = linear_backward(of_up, b.norm2_rows, b.up_t, d, 4 * d, of + 8);
    const partition::NodeIndex through =
        norm_backward(of_norm2, b.middle, b.norm2, b.norm2_weight, b.norm2_bias, of + 6);
    const partition::NodeIndex of_middle = build_.call("add", {gradient, through}, tokens_);
    const partition::NodeIndex of_joined = linear_backward(of_middle, b.attention_rows, b.out_t, d, d, of + 4);
    const partition::NodeIndex of_mixed =
        build_.call("clone", {build_.view("transpose", build_.view("view", of_joined))}, tokens_);
    const partition::NodeIndex rows = build_.view("_unsafe_view", of_mixed);
    const partition::NodeIndex of_v =
        build_.call("bmm", {build_.view("transpose", b.softmax), rows}, tokens_, attention_flops());
    const partition::NodeIndex of_softmax =
        build_.call("bmm", {rows, build_.view("transpose", b.v)}, scores_, attention_flops());
    const partition::NodeIndex of_scaled = build_.call("_softmax_backward_data", {of_softmax, b.softmax}, scores_);
    const partition::NodeIndex of_scores = build_.view("view", build_.call("div", {of_scaled}, scores_));
    const partition::NodeIndex of_k =
        build_.call("bmm", {build_.view("transpose", b.q), of_scores}, tokens_, attention_flops());
    const partition::NodeIndex of_q =
        build_.call("bmm", {of_scores, build_.view("transpose", b.k)}, tokens_, attention_flops());
    const partition::NodeIndex cat =
        build_.call("cat", {from_head_batch(of_q), from_head_batch(of_k), from_head_batch(of_v)}, 3 * tokens_);
    const partition::NodeIndex of_norm = linear_backward(cat, b.norm_rows, b.qkv_t, d, 3 * d, of + 2);
    const partition::NodeIndex of_input = norm_backward(of_norm, b.input, b.norm, b.norm_weight, b.norm_bias, of);
    return build_.call("add", {of_middle, of_input}, tokens_);
  }

  const TransformerSizes sizes_;
  const int64_t rows_, tokens_, stats_, scores_;  ///< the last three in bytes
  JointGraphBuilder build_;
  std::vector<Block> blocks_;
};

}  // namespace

partition::JointGraph transformer_joint_graph(const TransformerSizes& sizes) { return Transformer(sizes).make(); }

partition::JointGraph chain_joint_graph(int steps) {
  JointGraphBuilder build;
  std::vector<partition::NodeIndex> values = {build.primal(4096)};
  partition::NodeIndex gradient = build.tangent(4096);
  for (int i = 0; i < steps; ++i) values.push_back(build.call("sin", {values.back()}, 4096));
  build.begin_backward();
  for (int i = steps; i-- > 0;) gradient = build.call("mul", {gradient, build.call("cos", {values[i]}, 4096)}, 4096);
  return build.graph({values.back()}, {gradient});
}

partition::JointGraph random_dag_joint_graph(int calls, std::mt19937& random) {
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  JointGraphBuilder build;
  std::vector<partition::NodeIndex> values;
  std::vector<std::pair<size_t, size_t>> reads;
  constexpr size_t kPrimals = 20;
  for (size_t i = 0; i < kPrimals; ++i) values.push_back(build.primal(1024));
  const partition::NodeIndex tangent = build.tangent(1024);
  const auto earlier = [&] {
    const size_t n = values.size();
    return below(10) == 0 ? below(n) : n - 1 - below(std::min<size_t>(n, 30));
  };
  for (int i = 0; i < calls; ++i) {
    const size_t a = earlier(), b = earlier();
    const int64_t bytes = 512 * static_cast<int64_t>(1 + below(8));
    const bool product = below(5) == 0;
    reads.emplace_back(a, b);
    values.push_back(build.call(product ? "mm" : "mul", {values[a], values[b]}, bytes, product ? 1e6 : 1));
  }
  build.begin_backward();
  std::vector<partition::NodeIndex> gradients(values.size(), partition::kNoNode);
  gradients.back() = tangent;
  const auto add_to = [&](size_t value, partition::NodeIndex term, int64_t bytes) {
    gradients[value] =
        gradients[value] == partition::kNoNode ? term : build.call("add", {gradients[value], term}, bytes);
  };
  for (size_t i = values.size(); i-- > kPrimals;) {
    if (gradients[i] == partition::kNoNode) continue;
    const auto [a, b] = reads[i - kPrimals];
    const int64_t of_a = build.at(values[a]).out.bytes, of_b = build.at(values[b]).out.bytes;
    add_to(a, build.call("mul", {gradients[i], values[b]}, of_a), of_a);
    add_to(b, build.call("mul", {gradients[i], values[a]}, of_b), of_b);
  }
  gradients.resize(kPrimals);
  return build.graph({values.back()}, gradients);
}

}  // namespace plumbline::testing
