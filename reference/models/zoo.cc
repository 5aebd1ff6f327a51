#include "reference/models/zoo.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "reference/loss.h"
#include "reference/models/families.h"
#include "reference/models/parts/counter.h"
#include "reference/models/parts/fill.h"
#include "reference/models/parts/parameters.h"
#include "runtime/error.h"
#include "runtime/text/join.h"

namespace plumbline::models {
namespace {

using models::Family;

std::vector<Family> all_families() {
  std::vector<Family> all;
  for (auto* const families :
       {models::mlp_families,       models::skip_families,     models::multi_io_families,  models::transformer_families,
        models::tied_families,      models::resnet_families,   models::unet_families,      models::stash_families,
        models::border_families,    models::presence_families, models::dict_families,      models::dimension_families,
        models::stage_families,     models::sharing_families,  models::gradient_families,  models::sequence_families,
        models::expert_families,    models::image_families,    models::auxiliary_families, models::crossing_families,
        models::polynomial_families})
    for (Family& family : families()) all.push_back(std::move(family));
  return all;
}

/// The models that users registered.
struct Guests {
  std::mutex mutex;
  std::map<std::string, Family> families;
};

Guests& guests() {
  static Guests guests;
  return guests;
}

/// The family, checked to support that dtype.
Family find(const std::string& name, reference::Dtype dtype) {
  static const std::vector<Family> families = all_families();
  {
    const std::lock_guard<std::mutex> lock(guests().mutex);
    if (const auto guest = guests().families.find(name); guest != guests().families.end()) return guest->second;
  }
  const auto found = std::find_if(families.begin(), families.end(), [&](const Family& f) { return f.name == name; });
  if (found == families.end())
    throw InputError("model: unknown model '" + name + "', expected one of " + join(model_names()));
  if (dtype == reference::Dtype::BF16 && is_exact_model(name) && name != "exact-mlp")
    throw InputError("model: the sums of '" + name + "' are not proven exact in bf16; use exact-mlp or f32");
  return *found;
}

/// The path to an output within `tree`, each step prefixed by a dot; empty if it is absent.
std::string way_to(const graph::OutputTree& tree, int output) {
  for (size_t i = 0; i < tree.items.size(); ++i) {
    const graph::OutputTree& item = tree.items[i];
    const std::string step = "." + (tree.kind == graph::OutputTree::Kind::Dict ? tree.keys[i] : std::to_string(i));
    if (item.kind == graph::OutputTree::Kind::Value && item.output == output) return step;
    if (const std::string rest = way_to(item, output); !rest.empty()) return step + rest;
  }
  return {};
}

/// Its parameters are named as reference::kLossParameters if it is registered as "loss".
struct LossFunction : torch::nn::Module {
  explicit LossFunction(at::ScalarType dtype)
      : scale(register_parameter("scale", at::empty({1}, dtype))),
        shift(register_parameter("shift", at::empty({1}, dtype))) {}
  at::Tensor scale, shift;
};

/// In the first input of divided numbers, multiplies one element of each row by 1, 9, 17, ..., in bf16 by 1, 3, 5, ...:
/// factors that are odd, as the elements are, and as far apart as the dtype has room for sums, so that biases hardly
/// make up for the difference.
void tell_rows_apart(const std::vector<at::Tensor>& inputs, const std::vector<microbatch::ChunkSpec>& chunks,
                     uint64_t seed, const std::string& stream) {
  const Counter places(seed, stream);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].is_floating_point() || chunks[i].replicate) continue;
    const int64_t step = inputs[i].scalar_type() == at::kBFloat16 ? 2 : 8;
    for (int64_t row = 0; row < inputs[i].size(chunks[i].dim); ++row) {
      at::Tensor element = inputs[i].select(chunks[i].dim, row);
      int64_t place = places.below(static_cast<uint64_t>(row), element.numel());
      while (element.dim() > 0) {
        const int64_t inner = element.numel() / element.size(0);
        element = element.select(0, place / inner);
        place %= inner;
      }
      // Not a product of tensors, which the proof of exactness would take for one of the model's.
      element.fill_(element.item<double>() * static_cast<double>(step * row + 1));
    }
    return;
  }
}

}  // namespace

std::string output_name(const Model& model, size_t output) {
  const std::string way = way_to(model.outputs, static_cast<int>(output));
  return way.empty() ? std::to_string(output) : way.substr(1);
}

int most_stages(const Model& model) {
  return static_cast<int>(std::max(model.split_points.size(), model.fine_split_points.size())) + 1;
}

std::vector<split::SplitPoint> stage_points(const Model& model, int stages) {
  const int most = most_stages(model);
  if (stages < 1 || stages > most)
    throw InputError("model: " + std::to_string(stages) + " stages requested; its " + std::to_string(most - 1) +
                     " split points are enough for " + std::to_string(most) + " stages");
  if (stages <= static_cast<int>(model.split_points.size()) + 1)
    return split::choose_split_points(model.split_points, stages);
  std::vector<split::SplitPoint> points;
  for (int s = 1; s < stages; ++s) points.push_back(model.fine_split_points[s * most / stages - 1]);
  return points;
}

void require_loss(const reference::Case& c, int compared_outputs, int auxiliary_losses) {
  const bool has_auxiliary = c.loss.auxiliary != reference::AuxiliaryLosses::None;
  const bool has_targets = c.loss.kind == reference::LossKind::Mse || c.loss.kind == reference::LossKind::CrossEntropy;
  if (compared_outputs > 1 && (!has_targets || c.loss.ignores_targets || c.loss.class_weights || has_auxiliary))
    throw InputError("model: '" + c.model + "' has several targets, but the loss of case " + c.id +
                     " does not fit; expected kind \"mse\" or \"cross-entropy\", without ignored targets, class "
                     "weights and auxiliary losses");
  if (has_auxiliary && auxiliary_losses == 0)
    throw InputError("model: '" + c.model + "' makes no auxiliary losses, but case " + c.id + " has some");
}

split::SplitOptions case_split(const reference::Case& c, const Model& model, int stages) {
  using reference::AuxiliaryLosses;
  split::SplitOptions split;
  split.points = stage_points(model, stages);
  split.loss_outputs.emplace(model.compared_outputs);
  std::iota(split.loss_outputs->begin(), split.loss_outputs->end(), 0);
  split.exits_early = model.exits_early;
  if (c.loss.parameters) split.loss_parameters = {reference::kLossParameters.begin(), reference::kLossParameters.end()};
  require_loss(c, model.compared_outputs, model.auxiliary_losses);
  if (c.loss.auxiliary == AuxiliaryLosses::None) return split;
  std::vector<int>& losses = c.loss.auxiliary == AuxiliaryLosses::Added ? *split.loss_outputs : split.local_losses;
  for (int i = 1; i <= model.auxiliary_losses; ++i) losses.push_back(i);
  return split;
}

Model make_model(const std::string& name, reference::Dtype dtype, uint64_t seed) {
  return find(name, dtype).model(dtype, seed);
}

Model make_model(const reference::Case& c, uint64_t seed) {
  Model model = make_model(c.model, c.dtype, seed);
  if (!c.loss.parameters) return model;
  const auto loss = std::make_shared<LossFunction>(reference::scalar_type(c.dtype));
  if (is_exact_model(c.model)) {
    fill_signed_integers(loss->scale, seed, reference::kLossParameters[0], 1);  // larger sums might not be exact
    fill_integers(loss->shift, seed, reference::kLossParameters[1], 1, 3);
  } else {
    fill_uniform(loss->scale, seed, reference::kLossParameters[0], 0.8, 1.2);
    fill_uniform(loss->shift, seed, reference::kLossParameters[1], -0.1, 0.1);
  }
  model.module->register_module("loss", loss);
  model.loss_parameters = {loss->scale, loss->shift};
  return model;
}

Batch make_batch(const std::string& name, reference::Dtype dtype, int rows, uint64_t seed, int step) {
  if (rows < 1) throw InputError("model: a batch of " + std::to_string(rows) + " rows; at least 1 is needed");
  return find(name, dtype).batch(dtype, rows, seed, step);
}

namespace {

Batch make_whole_batch(const reference::Case& c, int rows, uint64_t seed, int step) {
  if (c.data > 0) seed = splitmix64(seed, static_cast<uint64_t>(c.data));
  Batch batch = make_batch(c.model, c.dtype, rows, seed, step);
  if (c.data > 0 && is_exact_model(c.model))
    tell_rows_apart(batch.inputs, make_model(c.model, c.dtype, seed).input_chunks, seed, batch_stream(step, "size"));
  if (!c.loss.ignores_targets) return batch;
  if (batch.targets.size() != 1 || batch.targets[0].scalar_type() != at::kLong || batch.targets[0].dim() != 2)
    throw InputError("model: targets of '" + c.model + "' cannot be ignored; they are not [rows, places] of classes");
  const Counter lengths(seed, "batch/" + std::to_string(step) + "/length");
  const at::Tensor padded = batch.targets[0].clone();
  for (int64_t row = 0; row < padded.size(0); ++row) {
    const bool is_ignored = row >= padded.size(0) - c.loss.ignored_rows;
    const int64_t length = is_ignored ? 0 : 1 + lengths.below(static_cast<uint64_t>(row), padded.size(1));
    padded[row].slice(0, length).fill_(reference::kIgnoredTarget);
  }
  batch.targets = padded;
  return batch;
}

/// From a batch and its parts.
void drop_targets(Batch& batch) {
  batch.targets = {};
  for (Batch& part : batch.parts) drop_targets(part);
}

}  // namespace

Batch make_batch(const reference::Case& c, int rows, uint64_t seed, int step) {
  if (!c.divided) return make_whole_batch(c, rows, seed, step);
  Batch batch;
  for (int m = 0; m < c.microbatches; ++m) {
    const int of_one = rows / c.microbatches + (m < rows % c.microbatches ? 1 : 0);
    batch.parts.push_back(make_whole_batch(c, of_one, seed, step * c.microbatches + m));
  }
  return batch;
}

Batch make_batch(const reference::Case& c, const reference::Step& of, uint64_t seed, int step) {
  Batch batch = make_batch(c, reference::rows_of(c, of), seed, step);
  if (!of.has_target) drop_targets(batch);
  return batch;
}

void add_model(const std::string& name, std::function<Model(reference::Dtype dtype, uint64_t seed)> model,
               std::function<Batch(reference::Dtype dtype, int rows, uint64_t seed, int step)> batch) {
  const std::lock_guard<std::mutex> lock(guests().mutex);
  guests().families.insert_or_assign(name, Family{name, std::move(model), std::move(batch)});
}

}  // namespace plumbline::models
