// Polynomials of independent, uniform leaves, for identity testing (parts/identity.h): exact-polynomial, and
// exact-polynomial-shared with a parameter of two stages and a skip.
//
// The degree of the data grows by 1 in each of the four linear parts, and doubles in the square: 1, 2, 3, 6, 7, 8.

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
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

at::Tensor turned(const at::Tensor& x) { return at::cat({x.slice(1, 1), x.slice(1, 0, 1)}, 1); }

}  // namespace

/// x [rows, 2] -> [rows, 2]. Several may share their parameters, [2, 2] and [2].
class Mix : public torch::nn::Module {
 public:
  Mix(const at::Tensor& weight, const at::Tensor& bias)
      : weight_(register_parameter("weight", weight)), bias_(register_parameter("bias", bias)) {}
  Mix() : Mix(at::zeros({width, width}), at::zeros({width})) {}
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight_, bias_); }
  std::shared_ptr<Mix> sharing() const { return std::make_shared<Mix>(weight_, bias_); }

 private:
  at::Tensor weight_, bias_;
};

/// x [rows, 2] -> [rows, 2], with a bias.
class Shift : public torch::nn::Module {
 public:
  Shift() : bias_(register_parameter("bias", at::zeros({width}))) {}
  at::Tensor forward(const at::Tensor& x) { return at::add(x, bias_); }

 private:
  at::Tensor bias_;
};

/// x [rows, 2] -> [rows, 2]: a Mix or a Shift (child "inner"), then the square, or an exchange of the columns.
class PolynomialPart : public torch::nn::Module {
 public:
  explicit PolynomialPart(std::shared_ptr<Mix> inner) : mix_(register_module("inner", std::move(inner))) {}
  explicit PolynomialPart(bool squares)
      : shift_(register_module("inner", std::make_shared<Shift>())), squares_(squares) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor h = mix_ ? capture::call(mix_, x) : capture::call(shift_, x);
    return squares_ ? at::mul(h, h) : turned(h);
  }

 private:
  std::shared_ptr<Mix> mix_;
  std::shared_ptr<Shift> shift_;
  bool squares_ = false;
};

/// Eight parts. With `shares`, parts 0 and 6 have the same parameters, and the output of part 0 is also added to that
/// of part 6.
class Polynomial : public torch::nn::Module {
 public:
  explicit Polynomial(bool shares)
      : parts_(register_module("layers", std::make_shared<ChildList<PolynomialPart>>())), shares_(shares) {
    const auto first = std::make_shared<Mix>();
    for (int i = 0; i < part_count; ++i) {
      if (i % 2 == 1)
        parts_->add(i == squared_part);
      else if (i == first_shared)
        parts_->add(first);
      else
        parts_->add(shares && i == last_shared ? first->sharing() : std::make_shared<Mix>());
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
  return listed_model(root, "x", "layers", part_count, {"inner", split::SplitPoint::Where::End});
}

Batch batch(reference::Dtype dtype, int rows, uint64_t seed, int step) {
  const auto uniform = [&](const std::string& name) {
    const at::Tensor data = at::empty({rows, width}, reference::scalar_type(dtype));
    fill_integers(data, seed, batch_stream(step, name), -largest_leaf(dtype), largest_leaf(dtype));
    return data;
  };
  // The sum needs no target, but some engines do.
  return {.inputs = {uniform("x")}, .targets = uniform("target")};
}

}  // namespace

}  // namespace polynomial_models

std::vector<Family> polynomial_families() {
  using namespace polynomial_models;
  return {{"exact-polynomial", [](reference::Dtype dtype, uint64_t seed) { return model(dtype, seed, false); }, batch},
          {"exact-polynomial-shared", [](reference::Dtype dtype, uint64_t seed) { return model(dtype, seed, true); },
           batch}};
}

}  // namespace plumbline::models
