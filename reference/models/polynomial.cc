// Polynomials of independent, uniform leaves, for identity testing (parts/identity.h): exact-polynomial, and
// exact-polynomial-shared with a parameter of two stages and a skip.
//
// The degree of the data grows by 1 in each of the four linear parts, and doubles in the square: 1, 2, 3, 6, 7, 8.

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>

#include "reference/models/families.h"
#include "reference/models/parts/fill.h"
#include "reference/models/parts/identity.h"
#include "reference/models/parts/layers.h"
#include "reference/models/parts/parameters.h"
#include "runtime/capture/call.h"

namespace plumbline::models {
namespace polynomial_models {
namespace {

constexpr int part_count = 8, squared_part = 3, first_shared = 0, last_shared = 6;
/// With four linear parts, every sum over 16 rows fits into float64 whatever the leaves are (exact_test.cc).
constexpr int64_t width = 2;

}  // namespace

/// x [rows, 2] -> [rows, 2]: a linear part (child "fc"), or one that adds a bias and may then square.
class PolynomialPart : public torch::nn::Module {
 public:
  explicit PolynomialPart(std::shared_ptr<Linear> fc) : fc_(register_module("fc", std::move(fc))) {}
  explicit PolynomialPart(bool squares)
      : bias_(register_parameter("bias", at::zeros({width}))), squares_(squares) {}
  at::Tensor forward(const at::Tensor& x) {
    if (fc_) return capture::call(fc_, x);
    const at::Tensor sum = at::add(x, bias_);
    return squares_ ? at::mul(sum, sum) : sum;
  }

 private:
  std::shared_ptr<Linear> fc_;
  at::Tensor bias_;
  bool squares_ = false;
};

/// Eight parts. With `shares`, parts 0 and 6 are one linear layer, and the output of part 0 is also added to that of
/// part 6.
class Polynomial : public torch::nn::Module {
 public:
  explicit Polynomial(bool shares)
      : parts_(register_module("layers", std::make_shared<ChildList<PolynomialPart>>())), shares_(shares) {
    const auto shared = std::make_shared<Linear>(width, width);
    for (int i = 0; i < part_count; ++i) {
      if (i % 2 == 1)
        parts_->add(i == squared_part);
      else
        parts_->add(i == first_shared || (shares && i == last_shared) ? shared
                                                                      : std::make_shared<Linear>(width, width));
    }
  }
  at::Tensor forward(at::Tensor x) {
    at::Tensor first;
    for (int i = 0; i < part_count; ++i) {
      x = capture::call((*parts_)[i], x);
      if (i == first_shared) first = x;
      if (shares_ && i == last_shared) x = at::add(x, first);
    }
    return x;
  }

 private:
  std::shared_ptr<ChildList<PolynomialPart>> parts_;
  bool shares_;
};

namespace {

Model model(reference::Dtype dtype, uint64_t seed, bool shares) {
  const auto root = std::make_shared<Polynomial>(shares);
  set_uniform_parameters(*root, dtype, seed, largest_leaf(dtype));
  return {.module = root,
          .forward = [root](const std::vector<at::Tensor>& inputs) { return std::vector{root->forward(inputs[0])}; },
          .input_names = {"x"},
          .input_chunks = {microbatch::ChunkSpec{}},
          .split_points = later_children("layers", part_count)};
}

Batch batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  const at::Tensor x = at::empty({rows, width}, reference::scalar_type(dtype));
  fill_integers(x, seed, batch_stream(step, "x"), -largest_leaf(dtype), largest_leaf(dtype));
  return {.inputs = {x}, .target = {}};
}

}  // namespace

}  // namespace polynomial_models

std::vector<Family> polynomial_families() {
  using namespace polynomial_models;
  return {{"exact-polynomial", [](reference::Dtype dtype, uint64_t seed) { return model(dtype, seed, false); }, batch},
          {"exact-polynomial-shared",
           [](reference::Dtype dtype, uint64_t seed) { return model(dtype, seed, true); }, batch}};
}

}  // namespace plumbline::models
