// The models of the corpus: real families, small enough for a test, and exact surrogates of the same structure whose
// data are whole numbers. Parameters and batches are functions of (seed, name, index) alone, see counter.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference/case.h"
#include "reference/models/names.h"
#include "runtime/graph/output_tree.h"
#include "runtime/microbatch/chunk_spec.h"
#include "runtime/split/split.h"

namespace plumbline::models {

struct Model {
  std::shared_ptr<torch::nn::Module> module;
  /// Positional, in the order of input_names. An input that a batch does not have, and an output, may be undefined
  /// (None). Output 0 is the one that the loss is made of.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> forward;
  std::vector<std::string> input_names;
  std::vector<microbatch::ChunkSpec> input_chunks;  ///< one for each input
  /// Qualified names of modules before which a stage may begin, in program order; seven, so that 2 to 8 stages work.
  std::vector<std::string> split_points;
  /// Where a stage may begin when there are more than those allow, in program order; may be empty. Fifteen in the zoo:
  /// the same eight parts in two pieces each.
  std::vector<split::SplitPoint> fine_split_points = {};
  microbatch::ChunkSpec target_chunk = {};
  /// How the outputs are nested (in a dict, say), by their positions in what forward gives; as it stands here: a list.
  graph::OutputTree outputs = {};
};

/// What results call an output of the model: its position, or, of nested ones, the keys and positions on the way to it
/// with dots between, as parameters are called: "states.last".
std::string output_name(const Model& model, size_t output);

/// Into how many stages a model can be cut.
int most_stages(const Model& model);

/// Where the stages of a model begin: evenly chosen of split_points, or, where there are too few, of
/// fine_split_points. Every oracle and every backend cuts there. Throws InputError for less than one stage and for more
/// than most_stages(), naming how many there may be.
std::vector<split::SplitPoint> stage_points(const Model& model, int stages);

struct Batch {
  std::vector<at::Tensor> inputs;  ///< in the order of Model::input_names
  at::Tensor target;               ///< of output 0, divided as target_chunk says; undefined where the model has none
};

/// Makes a model in training mode with its parameters set.
/// Errors: InputError for an unknown name (it lists the accepted ones), and for a dtype in which an exact model's sums
/// are not proven representable.
Model make_model(const std::string& name, reference::Dtype dtype, uint64_t seed);

/// Makes the batch of step `step` (from 0) with `rows` rows along the divided dimension. Errors: InputError as above,
/// and for rows < 1.
Batch make_batch(const std::string& name, reference::Dtype dtype, int rows, uint64_t seed, int step);

/// The batch of a case, with targets that are to be ignored where its loss has such: of each row from another place on,
/// never all. Errors: InputError as above, and for targets to ignore that are not [rows, places] of class indices.
Batch make_batch(const reference::Case& c, int rows, uint64_t seed, int step);

/// Lets make_model and make_batch know a model from outside under `name`, so that every oracle can run it. The
/// functions may be called from several threads at once, and must give the same values each time. A second one under
/// one name takes the first one's place.
void add_model(const std::string& name, std::function<Model(reference::Dtype dtype, uint64_t seed)> model,
               std::function<Batch(reference::Dtype dtype, int rows, uint64_t seed, int step)> batch);

}  // namespace plumbline::models
