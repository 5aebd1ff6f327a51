// Where the split falls: stages of very different sizes, stages without parameters or with only a view, and one module
// that is the whole of two stages.

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace stage_models {
namespace {

constexpr int64_t real_width = 16, exact_width = 8;

int64_t width_of(bool is_exact) { return is_exact ? exact_width : real_width; }
Activation activation_of(bool is_exact) { return is_exact ? Activation::Abs : Activation::Gelu; }

}  // namespace

/// A layer (a linear child "fc", then the activation), or one of two cells without parameters: one swaps the halves of
/// a row, the other only applies the activation.
class Cell : public torch::nn::Module {
 public:
  enum class Kind { Layer, Halves, Activation };
  Cell(int64_t width, Activation activation, Kind kind) : width_(width), activation_(activation), kind_(kind) {
    if (kind == Kind::Layer) fc_ = register_module("fc", std::make_shared<Linear>(width, width));
  }
  at::Tensor forward(const at::Tensor& x) {
    if (kind_ == Kind::Halves) return x.view({-1, 2, width_ / 2}).transpose(1, 2).reshape({-1, width_});
    return activate(kind_ == Kind::Layer ? capture::call(fc_, x) : x, activation_);
  }

 private:
  int64_t width_;
  Activation activation_;
  Kind kind_;
  std::shared_ptr<Linear> fc_;
};

/// Sixteen cells. In eight stages the third and fourth have no parameters and the fifth has nine layers; in four the
/// second has none and the third has ten.
class Lopsided : public torch::nn::Module {
 public:
  static constexpr int cells = 16;
  explicit Lopsided(bool is_exact) : cells_(register_module("cells", std::make_shared<ChildList<Cell>>())) {
    for (int i = 0; i < cells; ++i)
      cells_->add(width_of(is_exact), activation_of(is_exact),
                  i == 2   ? Cell::Kind::Halves
                  : i == 3 ? Cell::Kind::Activation
                           : Cell::Kind::Layer);
  }
  at::Tensor forward(const at::Tensor& x) { return cells_->in_turn(x); }

 private:
  std::shared_ptr<ChildList<Cell>> cells_;
};

/// Calls a layer: its own (child "layer"), or one owned by another module.
class Turn : public torch::nn::Module {
 public:
  Turn(const std::shared_ptr<Layer>& layer, bool is_own) : layer_(layer) {
    if (is_own) register_module("layer", layer_);
  }
  at::Tensor forward(const at::Tensor& x) { return capture::call(layer_, x); }

 private:
  std::shared_ptr<Layer> layer_;
};

/// Ten turns, of which the third and the sixth call "common". With eight stages, two consist of that call alone; with
/// four, two begin with it.
class SplitTwice : public torch::nn::Module {
 public:
  static constexpr int turns = 10;
  static bool is_common(int turn) { return turn == 2 || turn == 5; }
  explicit SplitTwice(bool is_exact)
      : common_(register_module("common", layer(is_exact))),
        turns_(register_module("turns", std::make_shared<ChildList<Turn>>())) {
    for (int i = 0; i < turns; ++i) turns_->add(is_common(i) ? common_ : layer(is_exact), !is_common(i));
  }
  at::Tensor forward(const at::Tensor& x) { return turns_->in_turn(x); }

 private:
  static std::shared_ptr<Layer> layer(bool is_exact) {
    return std::make_shared<Layer>(width_of(is_exact), width_of(is_exact), activation_of(is_exact));
  }
  std::shared_ptr<Layer> common_;
  std::shared_ptr<ChildList<Turn>> turns_;
};

namespace {

template <class Net>
Family family(const std::string& name, bool is_exact, const std::vector<std::string>& split_points,
              const std::vector<split::SplitPoint>& fine_split_points) {
  const auto model = [=](reference::Dtype dtype, uint64_t seed) {
    const auto root = std::make_shared<Net>(is_exact);
    if (is_exact)
      set_exact_parameters(*root, dtype, seed, {.fans = {1}, .bias_hi = 2, .biased = 1});
    else
      set_real_parameters(*root, dtype, seed);
    return Model{.module = root,
                 .forward = [root](const std::vector<at::Tensor>& in) { return std::vector{root->forward(in[0])}; },
                 .input_names = {"x"},
                 .input_chunks = {microbatch::ChunkSpec{}},
                 .split_points = split_points,
                 .fine_split_points = fine_split_points};
  };
  const auto batch = [is_exact](reference::Dtype dtype, int rows, uint64_t seed, int step) {
    const auto data = [&](const char* what) {
      const std::vector<int64_t> sizes = {rows, width_of(is_exact)};
      return is_exact ? exact_data(sizes, 1, dtype, seed, step, what) : real_data(sizes, dtype, seed, step, what);
    };
    return Batch{.inputs = {data("x")}, .targets = data("target")};
  };
  return {(is_exact ? "exact-" : "") + name, model, batch};
}

std::string child_name(const std::string& list, int child) { return list + "." + std::to_string(child); }

std::vector<std::string> places(const std::string& list, const std::vector<int>& children) {
  std::vector<std::string> names;
  for (const int child : children) names.push_back(child_name(list, child));
  return names;
}

Family lopsided(bool is_exact) {
  std::vector<split::SplitPoint> fine;
  for (int i = 1; i < Lopsided::cells; ++i) fine.push_back({child_name("cells", i)});
  return family<Lopsided>("lopsided", is_exact, places("cells", {1, 2, 3, 4, 13, 14, 15}), fine);
}

/// Stages may begin with each turn, and within the first six that own a layer.
Family split_twice(bool is_exact) {
  std::vector<split::SplitPoint> fine;
  for (int i = 0; i < SplitTwice::turns; ++i) {
    if (i > 0) fine.push_back({child_name("turns", i)});
    if (!SplitTwice::is_common(i) && i < 8)
      fine.push_back({child_name("turns", i) + ".layer.fc", split::SplitPoint::Where::End});
  }
  return family<SplitTwice>("split-twice", is_exact, places("turns", {1, 2, 3, 5, 6, 7, 8}), fine);
}

}  // namespace

}  // namespace stage_models

std::vector<Family> stage_families() {
  using namespace stage_models;
  return {lopsided(false), lopsided(true), split_twice(false), split_twice(true)};
}

}  // namespace plumbline::models
