// Modules and parameters with several uses: within a stage, in neighbouring stages, at both ends (on one rank under a
// V-shaped placement), in three stages, transposed, frozen, or with a separate dropout; parameters in one memory.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>

#include "reference/models/parts/parts.h"

namespace plumbline::models {
namespace sharing_models {

/// The place of a shared layer's parameters among those of a cell.
enum class Place { First, Between, Last };

/// A cell of two layers; a shared one follows each of them.
class SharingCell : public torch::nn::Module {
 public:
  SharingCell(int64_t width, const std::shared_ptr<Linear>& shared, Place place) : shared_(shared) {
    const auto share = [&](Place here) {
      if (place == here) register_module("shared", shared);
    };
    share(Place::First);
    left_ = register_module("left", std::make_shared<Linear>(width, width));
    share(Place::Between);
    right_ = register_module("right", std::make_shared<Linear>(width, width));
    share(Place::Last);
  }
  at::Tensor forward(at::Tensor x) {
    for (std::shared_ptr<Linear>* layer : {&left_, &shared_, &right_, &shared_})
      x = activate(capture::call(*layer, x), Activation::Abs);
    return x;
  }

 private:
  std::shared_ptr<Linear> left_, right_, shared_;
};

/// Eight cells; cells 0 to 2, 3 to 5, and 6 and 7 share a layer, whose parameters have another place in each group.
class SharedAtAnyPlace : public torch::nn::Module {
 public:
  explicit SharedAtAnyPlace(int64_t width)
      : cells_(register_module("parts", std::make_shared<ChildList<SharingCell>>())) {
    for (const auto& [place, count] : {std::pair{Place::First, 3}, {Place::Between, 3}, {Place::Last, 2}}) {
      const auto shared = std::make_shared<Linear>(width, width);
      for (int i = 0; i < count; ++i) cells_->add(width, shared, place);
    }
  }
  at::Tensor forward(const at::Tensor& x) { return cells_->in_turn(x); }

 private:
  std::shared_ptr<ChildList<SharingCell>> cells_;
};

namespace {

using Tensors = std::vector<at::Tensor>;

/// Calls "common" after each of `places`, as often as the place is listed.
auto common_after(const std::vector<int>& places) {
  return [places](Parts& net, const Tensors& in) -> Tensors {
    at::Tensor h = in[0];
    for (int i = 0; i < kParts; ++i) {
      h = net.chain(i, i, h);
      for (const int place : places)
        if (place == i) h = capture::call(net.extra("common"), h);
    }
    return {h};
  };
}

/// Uses the weight of "common", and near the end the same weight transposed.
Tensors transposed(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(1, 6, capture::call(net.extra("common"), net.chain(0, 0, in[0])));
  return {net.chain(7, 7, at::linear(h, net.extra("common")->fc().weight().t()))};
}

/// Two parts share a weight: one parameter with two names.
Tensors two_names(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(0, 4, in[0]);
  return {net.chain(5, 7, at::linear(h, net.part(1)->fc().weight(), net.part(2)->fc().bias()))};
}

/// Uses "common" near the beginning, and at the end once more, where it learns nothing.
Tensors detached_at_the_end(Parts& net, const Tensors& in) {
  const at::Tensor h = net.chain(1, 7, capture::call(net.extra("common"), net.chain(0, 0, in[0])));
  const Linear& common = net.extra("common")->fc();
  return {at::linear(h, common.weight().detach(), common.bias().detach())};
}

Tensors with_dropout(Parts& net, const Tensors& in) {
  at::Tensor h = in[0];
  for (int i = 0; i < kParts; ++i) {
    h = net.chain(i, i, h);
    if (i % 3 == 0) h = at::dropout(capture::call(net.extra("common"), h), 0.25, net.is_training());
  }
  return {h};
}

void freeze_common(Parts& net, reference::Dtype) {
  for (const at::Tensor& parameter : net.extra("common")->parameters()) parameter.set_requires_grad(false);
}

/// Makes all parameters views of one tensor, as flat optimizers and old cuDNN layers do.
void flatten_parameters(Parts& net, reference::Dtype) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> rows;
  for (const at::Tensor& parameter : net.parameters()) rows.push_back(parameter.detach().reshape({-1}));
  const at::Tensor flat = at::cat(rows);
  int64_t begin = 0;
  for (at::Tensor& parameter : net.parameters()) {
    parameter.set_data(flat.narrow(0, begin, parameter.numel()).view(parameter.sizes()));
    begin += parameter.numel();
  }
}

Family shared_at_any_place() {
  static constexpr int64_t width = 8;
  const auto data = [](int rows, reference::Dtype dtype, uint64_t seed, int step, const std::string& what) {
    return exact_data({rows, width}, 1, dtype, seed, step, what);
  };
  return {"exact-shared-places",
          [](reference::Dtype dtype, uint64_t seed) {
            const auto root = std::make_shared<SharedAtAnyPlace>(width);
            set_exact_parameters(*root, dtype, seed, {.fans = {1}, .bias_hi = 3, .biased = 3});
            return listed_model(root, "x", "parts", kParts, {"left", split::SplitPoint::Where::End});
          },
          [data](reference::Dtype dtype, int rows, uint64_t seed, int step) {
            return Batch{{data(rows, dtype, seed, step, "x")}, data(rows, dtype, seed, step, "target")};
          }};
}

}  // namespace

}  // namespace sharing_models

std::vector<Family> sharing_families() {
  using namespace sharing_models;
  const std::vector<std::string> extras = {"common"};
  const ExactParameters narrow = {.fans = {1}, .bias_hi = 2, .biased = 2};
  const std::vector<Variant> both = {
      {.name = "shared-ends", .forward = common_after({0, 7}), .extras = extras},
      {.name = "shared-three", .forward = common_after({0, 3, 6}), .extras = extras, .exact = narrow},
      {.name = "shared-transposed", .forward = transposed, .extras = extras},
      {.name = "flat-parameters", .forward = plain, .finish = flatten_parameters},
  };
  const std::vector<Variant> exact_only = {
      {.name = "shared-within", .forward = common_after({0, 0}), .extras = extras},
      {.name = "shared-neighbours", .forward = common_after({3, 4}), .extras = extras},
      {.name = "shared-everywhere",
       .forward = common_after({0, 1, 2, 3, 4, 5, 6, 7}),
       .extras = extras,
       .exact = narrow},
      {.name = "shared-parts", .forward = two_names},
      {.name = "shared-detached", .forward = detached_at_the_end, .extras = extras},
      {.name = "shared-frozen", .forward = common_after({1, 6}), .extras = extras, .finish = freeze_common},
  };
  std::vector<Family> all = families_of(both, exact_only);
  all.push_back(shared_at_any_place());
  all.push_back(real_twin({.name = "shared-dropout", .forward = with_dropout, .extras = extras}));
  return all;
}

}  // namespace plumbline::models
