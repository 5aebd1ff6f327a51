// Sequence models: recurrent layers, a time-first encoder-decoder (so that rows are dimension 1), and attention; real
// versions, and exact ones of the same structure (with sums in place of softmax and tanh).

#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <type_traits>

#include "reference/models/parts/parts.h"
#include "runtime/error.h"

namespace plumbline::models {
namespace sequence_models {

/// x [rows, time, width] -> the same: h_t = f(input(x_t) + state(h_{t-1})); the exact f is the absolute value.
class Recurrent : public torch::nn::Module {
 public:
  Recurrent(int64_t width, bool is_exact)
      : is_exact_(is_exact),
        input_(register_module("input", std::make_shared<Linear>(width, width))),
        state_(register_module("state", std::make_shared<Linear>(width, width))) {}
  at::Tensor forward(const at::Tensor& x) {
    std::vector<at::Tensor> states;
    at::Tensor h = at::zeros_like(x.select(1, 0));
    for (int64_t t = 0; t < x.size(1); ++t) {
      const at::Tensor sum = at::add(capture::call(input_, x.select(1, t)), capture::call(state_, h));
      h = is_exact_ ? at::abs(sum) : at::tanh(sum);
      states.push_back(h);
    }
    return at::stack(states, 1);
  }

 private:
  bool is_exact_;
  std::shared_ptr<Linear> input_, state_;
};

/// The same with a fused LSTM layer, an operator on parameters and input with several results: y, to which the last h
/// and c are added. It has no exact version.
class Lstm : public torch::nn::Module {
 public:
  Lstm(int64_t width, bool is_exact)
      : input_(register_module("input", std::make_shared<Linear>(width, 4 * width))),
        state_(register_module("state", std::make_shared<Linear>(width, 4 * width))) {
    PLUMBLINE_CHECK(!is_exact, "an LSTM layer of whole numbers");
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor zero = at::zeros_like(x.select(1, 0)).unsqueeze(0);
    const auto [y, h, c] =
        at::lstm(x, {zero, zero}, {input_->weight(), state_->weight(), input_->bias(), state_->bias()},
                 /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0.0, is_training(),
                 /*bidirectional=*/false, /*batch_first=*/true);
    return at::add(y, at::add(h, c).transpose(0, 1));
  }

 private:
  std::shared_ptr<Linear> input_, state_;
};

/// Queries from x, keys and values from `memory`, all [batch, places, width]; the exact version has no softmax.
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(int64_t width, bool is_exact)
      : is_exact_(is_exact),
        query_(register_module("query", std::make_shared<Linear>(width, width))),
        key_(register_module("key", std::make_shared<Linear>(width, width))),
        value_(register_module("value", std::make_shared<Linear>(width, width))) {}
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory) {
    at::Tensor scores = at::bmm(capture::call(query_, x), capture::call(key_, memory).transpose(1, 2));
    if (!is_exact_) scores = at::softmax(scores, -1);
    return at::bmm(scores, capture::call(value_, memory));
  }

 private:
  bool is_exact_;
  std::shared_ptr<Linear> query_, key_, value_;
};

namespace {

constexpr int64_t real_width = 16, exact_width = 8, places = 4;

/// Fixed, or another one in each batch: shorter, longer again, as long as the first.
enum class Length { Fixed, ByBatch };

int64_t length_of(Length length, int batch) {
  constexpr std::array<int64_t, 4> by_batch = {places, 2, 3, places};
  return length == Length::Fixed ? places : by_batch[static_cast<size_t>(batch) % by_batch.size()];
}

int64_t width_of(bool is_exact) { return is_exact ? exact_width : real_width; }
Activation activation_of(bool is_exact) { return is_exact ? Activation::Abs : Activation::Gelu; }

}  // namespace

/// Eight layers over the last dimension, with a recurrent layer after part `first` and another after the fourth part
/// behind it.
template <class Cells, int first>
class RecurrentNet : public torch::nn::Module {
 public:
  explicit RecurrentNet(bool is_exact)
      : parts_(register_module("parts", std::make_shared<ChildList<Layer>>())),
        early_(register_module("early", std::make_shared<Cells>(width_of(is_exact), is_exact))),
        late_(register_module("late", std::make_shared<Cells>(width_of(is_exact), is_exact))) {
    for (int i = 0; i < kParts; ++i) parts_->add(width_of(is_exact), width_of(is_exact), activation_of(is_exact));
  }
  at::Tensor forward(at::Tensor x) {
    for (int i = 0; i < kParts; ++i) {
      x = capture::call((*parts_)[static_cast<size_t>(i)], x);
      if (i == first) x = capture::call(early_, x);
      if (i == first + 4) x = capture::call(late_, x);
    }
    return x;
  }

 private:
  std::shared_ptr<ChildList<Layer>> parts_;
  std::shared_ptr<Cells> early_, late_;
};

/// Eight layers over the last dimension of [rows, time, width], with a skip from part 1 to part 5. In an evaluation
/// short sequences leave after part 3.
class EarlyExit : public torch::nn::Module {
 public:
  explicit EarlyExit(bool is_exact) : parts_(register_module("parts", std::make_shared<ChildList<Layer>>())) {
    for (int i = 0; i < kParts; ++i) parts_->add(width_of(is_exact), width_of(is_exact), activation_of(is_exact));
  }
  at::Tensor forward(at::Tensor x) {
    at::Tensor skipped;
    for (int i = 0; i < kParts; ++i) {
      if (i == 4 && !is_training() && x.size(1) < places - 1) return at::add(x, x);
      x = capture::call((*parts_)[static_cast<size_t>(i)], x);
      if (i == 1) skipped = x;
      if (i == 5) x = at::add(x, skipped);
    }
    return x;
  }

 private:
  std::shared_ptr<ChildList<Layer>> parts_;
};

/// Source and target input [time, rows, width] -> [time, rows, width]. Parts 0 to 3 encode the source; each of the
/// others decodes and reads the encoder's output. The decoder's input is first used in part 4.
class EncoderDecoder : public torch::nn::Module {
 public:
  explicit EncoderDecoder(bool is_exact) : parts_(register_module("parts", std::make_shared<ChildList<Layer>>())) {
    if (!is_exact) cross_ = register_module("cross", std::make_shared<CrossAttention>(real_width, false));
    for (int i = 0; i < kParts; ++i) parts_->add(width_of(is_exact), width_of(is_exact), activation_of(is_exact));
  }
  at::Tensor forward(const at::Tensor& source, const at::Tensor& target) {
    at::Tensor memory = source, h = target;
    for (int i = 0; i < 4; ++i) memory = capture::call((*parts_)[static_cast<size_t>(i)], memory);
    for (int i = 4; i < kParts; ++i) {
      h = capture::call((*parts_)[static_cast<size_t>(i)], h);
      if (i == 5 && cross_)
        h = at::add(h, capture::call(cross_, h.transpose(0, 1), memory.transpose(0, 1)).transpose(0, 1));
      else
        h = at::add(h, at::sum(memory, 0, /*keepdim=*/true));
    }
    return h;
  }

 private:
  std::shared_ptr<ChildList<Layer>> parts_;
  std::shared_ptr<CrossAttention> cross_;  ///< null in the exact version
};

/// [rows, places, width]: self-attention, then eight layers.
class AttentionNet : public torch::nn::Module {
 public:
  explicit AttentionNet(bool is_exact)
      : attention_(register_module("attention", std::make_shared<CrossAttention>(width_of(is_exact), is_exact))),
        parts_(register_module("parts", std::make_shared<ChildList<Layer>>())) {
    for (int i = 0; i < kParts; ++i) parts_->add(width_of(is_exact), width_of(is_exact), activation_of(is_exact));
  }
  at::Tensor forward(const at::Tensor& x) { return parts_->in_turn(capture::call(attention_, x, x)); }

 private:
  std::shared_ptr<CrossAttention> attention_;
  std::shared_ptr<ChildList<Layer>> parts_;
};

namespace {

/// Only permutations and few biases: products and sums over time already grow large.
const ExactParameters kNarrow = {.fans = {1}, .bias_hi = 1, .biased = 1};

template <class Net, size_t inputs, int rows_dim>
Family sequence_family(const std::string& name, bool is_exact, const std::vector<std::string>& input_names,
                       Length length = Length::Fixed) {
  const auto data = [is_exact, length](int rows, reference::Dtype dtype, uint64_t seed, int step,
                                       const std::string& what) {
    const int64_t width = width_of(is_exact);
    const std::vector<int64_t> sizes = rows_dim == 0 ? std::vector<int64_t>{rows, length_of(length, step), width}
                                                     : std::vector<int64_t>{length_of(length, step), rows, width};
    return is_exact ? exact_data(sizes, 1, dtype, seed, step, what) : real_data(sizes, dtype, seed, step, what);
  };
  const auto model = [is_exact, input_names](reference::Dtype dtype, uint64_t seed) {
    const auto root = std::make_shared<Net>(is_exact);
    if (is_exact)
      set_exact_parameters(*root, dtype, seed, kNarrow);
    else
      set_real_parameters(*root, dtype, seed);
    return Model{.module = root,
                 .forward = [root](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
                   if constexpr (inputs == 1)
                     return {root->forward(in[0])};
                   else
                     return {root->forward(in[0], in[1])};
                 },
                 .input_names = input_names,
                 .input_chunks = std::vector<microbatch::ChunkSpec>(inputs, microbatch::ChunkSpec{.dim = rows_dim}),
                 .split_points = later_children("parts", kParts),
                 .fine_split_points = halved_children("parts", kParts, {"fc", split::SplitPoint::Where::End}),
                 .target_chunk = {.dim = rows_dim},
                 .exits_early = std::is_same_v<Net, EarlyExit>};
  };
  const auto batch = [data, input_names](reference::Dtype dtype, int rows, uint64_t seed, int step) {
    Batch made;
    for (const std::string& input : input_names) made.inputs.push_back(data(rows, dtype, seed, step, input));
    made.targets = data(rows, dtype, seed, step, "wanted");
    return made;
  };
  return {(is_exact ? "exact-" : "") + name, model, batch};
}

}  // namespace

}  // namespace sequence_models

std::vector<Family> sequence_families() {
  using namespace sequence_models;
  std::vector<Family> all;
  for (const bool is_exact : {false, true}) {
    all.push_back(sequence_family<RecurrentNet<Recurrent, 1>, 1, 0>("recurrent", is_exact, {"x"}));
    all.push_back(sequence_family<EncoderDecoder, 2, 1>("encoder-decoder", is_exact, {"source", "target_input"}));
    all.push_back(sequence_family<AttentionNet, 1, 0>("attention", is_exact, {"x"}));
  }
  all.push_back(sequence_family<RecurrentNet<Lstm, 0>, 1, 0>("lstm", false, {"x"}));
  for (const bool is_exact : {false, true})
    all.push_back(sequence_family<RecurrentNet<Recurrent, 1>, 1, 0>("lengths", is_exact, {"x"}, Length::ByBatch));
  for (const bool is_exact : {false, true})
    all.push_back(sequence_family<EarlyExit, 1, 0>("early-exit", is_exact, {"x"}, Length::ByBatch));
  all.push_back(sequence_family<AttentionNet, 1, 0>("attention-lengths", true, {"x"}, Length::ByBatch));
  all.push_back(sequence_family<EncoderDecoder, 2, 1>("encoder-decoder-lengths", true, {"source", "target_input"},
                                                      Length::ByBatch));
  return all;
}

}  // namespace plumbline::models
