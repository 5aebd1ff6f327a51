// Exact chains with values that skip stages: exact-skip (added, concatenated) and exact-wide (one value, three
// readers).

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>

#include "reference/models/families.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "reference/models/parts/parts.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace skip_models {
namespace {

constexpr int part_count = 8;
constexpr int64_t width = 8;

}  // namespace

/// In four stages of two parts: the output of part 0 skips a stage and is added before part 5; that of part 1 skips two
/// stages and is concatenated before part 7.
class Skip : public torch::nn::Module {
 public:
  Skip() : parts_(register_module("parts", std::make_shared<ChildList<Layer>>())) {
    for (int i = 0; i < part_count; ++i) parts_->add(i == 7 ? 2 * width : width, width, Activation::Abs);
  }
  at::Tensor forward(const at::Tensor& x) {
    ChildList<Layer>& parts = *parts_;
    const at::Tensor first = capture::call(parts[0], x);
    const at::Tensor second = capture::call(parts[1], first);
    at::Tensor h = capture::call(parts[4], capture::call(parts[3], capture::call(parts[2], second)));
    h = capture::call(parts[6], capture::call(parts[5], at::add(h, first)));
    return capture::call(parts[7], at::cat({h, second}, 1));
  }

 private:
  std::shared_ptr<ChildList<Layer>> parts_;
};

/// Parts 2, 5 and 7 read the output of part 1: in four stages of two parts, all three later stages.
class Wide : public torch::nn::Module {
 public:
  Wide() : parts_(register_module("parts", std::make_shared<ChildList<Layer>>())) {
    for (int i = 0; i < part_count; ++i) parts_->add(width, width, Activation::Abs);
  }
  at::Tensor forward(const at::Tensor& x) {
    ChildList<Layer>& parts = *parts_;
    const at::Tensor wide = capture::call(parts[1], capture::call(parts[0], x));
    at::Tensor h = capture::call(parts[4], capture::call(parts[3], capture::call(parts[2], wide)));
    h = capture::call(parts[6], capture::call(parts[5], at::add(h, wide)));
    return capture::call(parts[7], at::add(h, wide));
  }

 private:
  std::shared_ptr<ChildList<Layer>> parts_;
};

namespace {

template <class Root>
Model make(reference::Dtype dtype, uint64_t seed) {
  const auto root = std::make_shared<Root>();
  set_exact_parameters(*root, dtype, seed,
                       is_narrow(dtype) ? ExactParameters{.fans = {1}, .bias_hi = 2, .biased = 1} : ExactParameters{});
  return listed_model(root, "x", "parts", part_count, {"fc", split::SplitPoint::Where::End});
}

Batch batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  const int64_t max = is_narrow(dtype) ? 1 : 3;
  return {.inputs = {exact_data({rows, width}, max, dtype, seed, step, "x")},
          .targets = exact_data({rows, width}, max, dtype, seed, step, "target")};
}

}  // namespace

}  // namespace skip_models

std::vector<Family> skip_families() {
  using namespace skip_models;
  return {{"exact-skip", make<Skip>, batch}, {"exact-wide", make<Wide>, batch}};
}

}  // namespace plumbline::models
