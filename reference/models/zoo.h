// The models of the corpus: real families, small enough for tests, and exact surrogates of the same structure with
// whole numbers as data. Parameters and batches depend only on (seed, name, index), see counter.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference/case.h"
#include "reference/models/parts/names.h"
#include "runtime/graph/output_tree.h"
#include "runtime/microbatch/chunk_spec.h"
#include "runtime/microbatch/targets.h"
#include "runtime/split/split.h"

namespace plumbline::models {

/// A model and the ways to call, divide and cut it. For use by one thread at a time.
struct Model {
  std::shared_ptr<torch::nn::Module> module;
  /// Calls `module` with positional inputs, in the order of input_names; returns the outputs. An input that a batch
  /// lacks, or an output, may be undefined (None). The loss is computed from the first `compared_outputs`.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> forward;
  std::vector<std::string> input_names;
  std::vector<microbatch::ChunkSpec> input_chunks;  ///< indexed as input_names
  /// Qualified names of the modules before which a stage may begin, in program order. Every model of the zoo has at
  /// least seven, so 1 to 8 stages work.
  std::vector<std::string> split_points;
  /// The points at which a stage may begin if there are more stages than split_points allow, in program order; may be
  /// empty. Most models of the zoo have fifteen: the same eight parts, each in two pieces.
  std::vector<split::SplitPoint> fine_split_points = {};
  /// How the targets are divided into micro-batches.
  microbatch::ChunkSpec target_chunk = {};
  /// The nesting of the outputs (a dict, for example), by their positions in the result of `forward`; the default is a
  /// list.
  graph::OutputTree outputs = {};
  /// The loss compares this many outputs, the first ones, each with a target of its own.
  int compared_outputs = 1;
  /// The nesting of several targets, each in the place of the output with which it is compared; the default is a lone
  /// target.
  graph::OutputTree targets = {};
  /// The last outputs are this many auxiliary losses: scalars that early parts make. For LossSpec::auxiliary.
  int auxiliary_losses = 0;
  /// In evaluation mode `forward` returns early for some inputs: later modules are not entered.
  bool exits_early = false;
  /// As reference::kLossParameters, parameters of `module` that `forward` does not read; empty without
  /// LossSpec::parameters.
  std::vector<at::Tensor> loss_parameters = {};
};

/// The name of output number `output` in results: its position, or, for nested outputs, the keys and positions on its
/// path, joined by dots as for parameters: "states.last".
std::string output_name(const Model& model, size_t output);

/// The largest number of stages into which a model can be cut.
int most_stages(const Model& model);

/// The stages - 1 points at which stages 1, 2, ... of a model begin: evenly chosen from split_points, or, if these are
/// too few, from fine_split_points. Every oracle and every backend cuts there. Throws InputError for less than one
/// stage and for more than most_stages(), naming the possible number.
std::vector<split::SplitPoint> stage_points(const Model& model, int stages);

/// Throws InputError if the loss of `c` does not fit a model with so many compared outputs and auxiliary losses
/// (Model): it does not take several targets, or the case has auxiliary losses and the model none.
void require_loss(const reference::Case& c, int compared_outputs, int auxiliary_losses);

/// How to cut the model of `c` into stages: at stage_points(), with a gradient for the values on which the losses of
/// the case depend. Throws InputError as stage_points() and require_loss() do.
split::SplitOptions case_split(const reference::Case& c, const Model& model, int stages);

struct Batch {
  std::vector<at::Tensor> inputs;  ///< in the order of Model::input_names
  microbatch::Targets targets;     ///< by output, not yet divided: one, for output 0, or none for most models
  /// The micro-batches of a batch that the user divides (Case::divided), in place of the above.
  std::vector<Batch> parts = {};
};

/// Makes a new model in training mode with its parameters set. Throws InputError for an unknown name (listing the
/// zoo's), and for a dtype in which the sums of an exact model are not proven representable.
Model make_model(const std::string& name, reference::Dtype dtype, uint64_t seed);

/// The same for a case, with the parameters of its loss.
Model make_model(const reference::Case& c, uint64_t seed);

/// Makes batch number `step` with `rows` rows along the divided dimension. Batches are numbered from 0; in a case the
/// number counts Train and Eval steps only. Throws InputError as make_model() does, and for rows < 1.
Batch make_batch(const std::string& name, reference::Dtype dtype, int rows, uint64_t seed, int step);

/// The same for a case. If its loss ignores targets, those of each row from a random position on are ignored, never the
/// first. Each positive Case::data is another draw, in which the rows of an exact model's input differ in size:
/// otherwise rows of -1 and +1 would be equal after one absolute value, and exchanged micro-batches would go unnoticed.
/// With Case::divided, `parts` are micro-batches with as many rows as torch.tensor_split gives them; micro-batch m of
/// batch number `step` is the model's batch number step * Case::microbatches + m. Throws InputError as above, and if
/// targets are to be ignored but are not [rows, places] of class indices.
Batch make_batch(const reference::Case& c, int rows, uint64_t seed, int step);

/// The same for a Train or Eval step of a case, with its rows, and without targets if the step has none.
Batch make_batch(const reference::Case& c, const reference::Step& of, uint64_t seed, int step);

/// Registers a user's model under `name`, so that make_model, make_batch and every oracle can use it. The functions are
/// copied, may be called from several threads at once, and must return the same values each time. A second model of one
/// name replaces the first, also one of the zoo. May be called by several threads at once.
void add_model(const std::string& name, std::function<Model(reference::Dtype dtype, uint64_t seed)> model,
               std::function<Batch(reference::Dtype dtype, int rows, uint64_t seed, int step)> batch);

}  // namespace plumbline::models
