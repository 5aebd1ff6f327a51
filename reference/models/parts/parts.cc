#include "reference/models/parts/parts.h"

#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "reference/models/parts/counter.h"

namespace plumbline::models {
namespace {

constexpr int64_t real_width = 16, exact_width = 8, id_count = 8;

at::Tensor values(bool is_exact, at::IntArrayRef sizes, reference::Dtype dtype, uint64_t seed, int step,
                  const std::string& name) {
  return is_exact ? exact_data(sizes, is_narrow(dtype) ? 1 : 3, dtype, seed, step, name)
                  : real_data(sizes, dtype, seed, step, name);
}

at::Tensor mask(at::IntArrayRef sizes, reference::Dtype dtype, uint64_t seed, int step, const std::string& name) {
  at::Tensor out = at::empty(sizes, at::kDouble);
  const Counter stream(seed, batch_stream(step, name));
  for (int64_t i = 0; i < out.numel(); ++i)
    out.mutable_data_ptr<double>()[i] = stream.below(static_cast<uint64_t>(i), 8) > 0;
  return out.to(reference::scalar_type(dtype));
}

Family family(const Variant& variant, bool is_exact) {
  const auto model = [variant, is_exact](reference::Dtype dtype, uint64_t seed) {
    const auto root = is_exact ? std::make_shared<Parts>(exact_width, Activation::Abs)
                               : std::make_shared<Parts>(real_width, Activation::Gelu);
    for (const std::string& extra : variant.extras) root->add_extra(extra);
    if (variant.prepare) variant.prepare(*root);
    if (is_exact)
      set_exact_parameters(*root, dtype, seed,
                           is_narrow(dtype) ? ExactParameters{.fans = {1}, .bias_hi = 2, .biased = 1} : variant.exact);
    else
      set_real_parameters(*root, dtype, seed);
    if (variant.finish) variant.finish(*root, dtype);
    Model made{.module = root,
               .forward = [root, forward = variant.forward](
                              const std::vector<at::Tensor>& inputs) { return forward(*root, inputs); },
               .input_names = {},
               .input_chunks = {},
               .split_points = later_children("parts", kParts),
               .fine_split_points = halved_children("parts", kParts, {"fc", split::SplitPoint::Where::End}),
               .target_chunk = {.dim = variant.target_in_columns ? 1 : 0},
               .outputs = variant.outputs,
               .compared_outputs = variant.compared_outputs,
               .targets = variant.targets,
               .auxiliary_losses = variant.auxiliary_losses};
    for (const auto& [name, content] : variant.inputs) {
      made.input_names.push_back(name);
      made.input_chunks.push_back({.replicate = content == Content::Scale,
                                   .dim = content == Content::Columns  ? 1
                                          : content == Content::Halves ? 2
                                                                       : 0});
    }
    return made;
  };
  const auto batch = [variant, is_exact](reference::Dtype dtype, int rows, uint64_t seed, int step) {
    const int64_t width = is_exact ? exact_width : real_width;
    const auto target = [&] {
      return variant.target_in_columns ? values(is_exact, {width, rows}, dtype, seed, step, "target")
                                       : values(is_exact, {rows, width}, dtype, seed, step, "target");
    };
    Batch made;
    for (const auto& [name, content] : variant.inputs) {
      switch (content) {
        case Content::Values:
          made.inputs.push_back(values(is_exact, {rows, width}, dtype, seed, step, name));
          break;
        case Content::Ids:
          made.inputs.push_back(index_data({rows}, id_count, seed, step, name));
          break;
        case Content::Columns:
          made.inputs.push_back(values(is_exact, {width, rows}, dtype, seed, step, name));
          break;
        case Content::Halves:
          made.inputs.push_back(values(is_exact, {2, width / 2, rows}, dtype, seed, step, name));
          break;
        case Content::Mask:
          made.inputs.push_back(mask({rows, width}, dtype, seed, step, name));
          break;
        case Content::FirstMask:
        case Content::LaterMask:
        case Content::SecondMask: {
          const bool there =
              content == Content::LaterMask ? step > 0 : step % 2 == (content == Content::FirstMask ? 0 : 1);
          made.inputs.push_back(there ? mask({rows, width}, dtype, seed, step, name) : at::Tensor());
          break;
        }
        case Content::SecondSpike:
          made.inputs.push_back(
              at::full({rows, width}, step % 2 == 1 ? 3e38 : 0.0, at::TensorOptions(reference::scalar_type(dtype))));
          break;
        case Content::Scale:
          made.inputs.push_back(is_exact ? exact_data({width}, 1, dtype, seed, step, name)
                                         : real_data({width}, dtype, seed, step, name));
          break;
        case Content::Target:
          made.inputs.push_back(target());
          break;
      }
    }
    if (!variant.has_target) return made;
    std::vector<at::Tensor> targets = {target()};
    for (int i = 1; i < variant.compared_outputs; ++i)
      targets.push_back(values(is_exact, {rows, width}, dtype, seed, step, "target." + std::to_string(i)));
    made.targets = std::move(targets);
    return made;
  };
  return {(is_exact ? "exact-" : "") + variant.name, model, batch};
}

}  // namespace

at::Tensor turned(const Linear& layer, const at::Tensor& x) {
  return at::add(at::bmm(layer.weight().unsqueeze(0), x.t().unsqueeze(0)).squeeze(0).t(), layer.bias());
}

Part::Part(int64_t width, Activation activation)
    : width_(width), fc_(register_module("fc", std::make_shared<Linear>(width, width))), activation_(activation) {}

void Part::begin_with(Opening opening) {
  opening_ = opening;
  if (opening == Opening::Turned) turn_ = register_module("turn", std::make_shared<Linear>(width_, width_));
  if (opening == Opening::Row) row_ = register_parameter("row", at::zeros({1, width_}));
}

at::Tensor Part::forward(const at::Tensor& x) {
  at::Tensor opened = x;
  if (opening_ == Opening::View)
    opened = x.view({-1, 2, width_ / 2}).transpose(1, 2).reshape({-1, width_});
  else if (opening_ == Opening::InPlace)
    opened.add_(2);
  else if (opening_ == Opening::Turned)
    opened = turned(*turn_, x);
  else if (opening_ == Opening::Sum)
    opened = at::sum(x, 1, /*keepdim=*/true).expand({-1, width_});
  else if (opening_ == Opening::Expand)
    opened = x.expand({-1, width_});
  else if (opening_ == Opening::Row)
    opened = at::add(x, row_);
  return activate(capture::call(fc_, opened), activation_);
}

at::Tensor Part::forward(const at::Tensor& x, const at::Tensor& other, Meeting meeting) {
  if (!other.defined()) return forward(x);
  return forward(meeting == Meeting::Factor ? at::mul(x, other) : at::add(x, other));
}

Parts::Parts(int64_t width, Activation activation)
    : width(width), activation(activation), parts_(register_module("parts", std::make_shared<ChildList<Part>>())) {
  for (int i = 0; i < kParts; ++i) parts_->add(width, activation);
}

at::Tensor Parts::chain(int first, int last, at::Tensor x) {
  for (int i = first; i <= last; ++i) x = capture::call(part(i), x);
  return x;
}

std::vector<at::Tensor> plain(Parts& net, const std::vector<at::Tensor>& in) { return {net.chain(0, 7, in[0])}; }

void Parts::add_extra(const std::string& name) {
  extras_[name] = register_module(name, std::make_shared<Layer>(width, width, activation));
}

std::vector<Family> twins(const Variant& variant) { return {real_twin(variant), exact_twin(variant)}; }
Family real_twin(const Variant& variant) { return family(variant, false); }
Family exact_twin(const Variant& variant) { return family(variant, true); }

std::vector<Family> families_of(const std::vector<Variant>& both, const std::vector<Variant>& exact_only) {
  std::vector<Family> all;
  for (const Variant& variant : both) all.insert(all.end(), {real_twin(variant), exact_twin(variant)});
  for (const Variant& variant : exact_only) all.push_back(exact_twin(variant));
  return all;
}

bool is_narrow(reference::Dtype dtype) { return dtype == reference::Dtype::BF16 || dtype == reference::Dtype::F16; }

}  // namespace plumbline::models
