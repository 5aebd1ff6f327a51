#include "runtime/microbatch/chunk.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <numeric>

#include "runtime/error.h"
#include "runtime/microbatch/signature.h"
#include "runtime/text/join.h"

namespace plumbline::microbatch {
namespace {

void check_count(int microbatches) {
  if (microbatches < 1)
    throw InputError("micro-batches: " + std::to_string(microbatches) + " asked for; at least 1 is needed");
}

int64_t checked_rows(const std::string& what, const at::Tensor& tensor, int dim, int microbatches) {
  if (dim < 0 || dim >= tensor.dim())
    throw InputError("micro-batches: " + what + " has " + std::to_string(tensor.dim()) +
                     " dimensions, so it cannot be divided along dimension " + std::to_string(dim));
  const int64_t rows = tensor.size(dim);
  if (rows < microbatches)
    throw InputError("micro-batches: " + what + " has " + std::to_string(rows) + " rows along dimension " +
                     std::to_string(dim) + "; " + std::to_string(microbatches) +
                     " micro-batches need at least as many (or mark it as replicated)");
  return rows;
}

std::vector<at::Tensor> divide(const at::Tensor& tensor, int dim, int microbatches) {
  std::vector<at::Tensor> chunks;
  int64_t start = 0;
  for (int64_t rows : chunk_rows(tensor.size(dim), microbatches)) {
    chunks.push_back(tensor.narrow(dim, start, rows));
    start += rows;
  }
  return chunks;
}

/// Whether two tensors have the same dtype, sizes and elements; a NaN counts as equal to a NaN.
bool are_equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  return a.eq(b).logical_or(a.ne(a).logical_and(b.ne(b))).all().item<bool>();
}

/// The numbers of rows of tensors that are divided together.
class CommonRows {
 public:
  explicit CommonRows(int microbatches) : microbatches_(microbatches) {}

  /// Throws InputError if `rows` and the rows of the first tensor differ and do not both divide evenly.
  void add(const std::string& name, int64_t rows) {
    if (first_.empty()) {
      first_ = name;
      rows_ = rows;
    }
    if (rows != rows_ && (rows % microbatches_ != 0 || rows_ % microbatches_ != 0))
      throw InputError("micro-batches: " + name + " has " + std::to_string(rows) + " rows, " + first_ + " has " +
                       std::to_string(rows_) + "; they need the same number, or numbers that divide evenly");
  }

 private:
  int microbatches_;
  std::string first_;
  int64_t rows_ = 0;
};

}  // namespace

std::vector<at::Tensor> bind_inputs(const std::vector<std::string>& names, const std::vector<at::Tensor>& positional,
                                    const std::map<std::string, at::Tensor>& keyword) {
  std::vector<at::Tensor> inputs;
  Signature signature = Signature::from_placeholders(names);
  for (Parameter& parameter : signature.parameters)
    if (const auto given = keyword.find(parameter.name); given != keyword.end() && !given->second.defined())
      parameter.default_value = at::Tensor();
  for (capture::NamedTensor& input : signature.bind(positional, keyword)) inputs.push_back(std::move(input.tensor));
  return inputs;
}

std::vector<int64_t> chunk_rows(int64_t rows, int microbatches) {
  std::vector<int64_t> chunks(microbatches, rows / microbatches);
  for (int64_t m = 0; m < rows % microbatches; ++m) ++chunks[m];
  return chunks;
}

std::vector<std::vector<at::Tensor>> split_inputs(const std::vector<std::string>& names,
                                                  const std::vector<at::Tensor>& inputs,
                                                  const std::vector<ChunkSpec>& specs, int microbatches) {
  check_count(microbatches);
  if (specs.size() != inputs.size() || names.size() != inputs.size())
    throw InputError("micro-batches: " + std::to_string(inputs.size()) + " inputs, " + std::to_string(names.size()) +
                     " names and " + std::to_string(specs.size()) + " chunk specs; give one of each for every input");
  if (!inputs.empty() && std::ranges::none_of(inputs, &at::Tensor::defined))
    throw InputError("micro-batches: input '" + names[0] + "' is missing, and so are all others");
  std::vector<std::vector<at::Tensor>> chunks(microbatches, std::vector<at::Tensor>(inputs.size()));
  CommonRows common(microbatches);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    if (specs[i].replicate) {
      for (auto& chunk : chunks) chunk[i] = inputs[i];
      continue;
    }
    const std::string name = "input '" + names[i] + "'";
    common.add(name, checked_rows(name, inputs[i], specs[i].dim, microbatches));
    const std::vector<at::Tensor> parts = divide(inputs[i], specs[i].dim, microbatches);
    for (int m = 0; m < microbatches; ++m) chunks[m][i] = parts[m];
  }
  return chunks;
}

std::vector<Targets> split_targets(const Targets& targets, int microbatches, const ChunkSpec& spec) {
  check_count(microbatches);
  if (!targets.defined() || spec.replicate) return std::vector<Targets>(microbatches, targets);
  const auto name = [&](size_t i) {
    return targets.size() == 1 ? std::string("the target") : "target " + std::to_string(i);
  };
  std::vector<std::vector<at::Tensor>> chunks(microbatches);
  CommonRows common(microbatches);
  for (size_t i = 0; i < targets.size(); ++i) {
    common.add(name(i), checked_rows(name(i), targets[i], spec.dim, microbatches));
    const std::vector<at::Tensor> parts = divide(targets[i], spec.dim, microbatches);
    for (int m = 0; m < microbatches; ++m) chunks[m].push_back(parts[m]);
  }
  return {chunks.begin(), chunks.end()};
}

std::vector<at::Tensor> merge_outputs(const std::vector<std::vector<at::Tensor>>& outputs,
                                      const std::vector<ChunkSpec>& specs) {
  std::vector<at::Tensor> merged;
  if (outputs.empty()) return merged;
  for (size_t m = 1; m < outputs.size(); ++m)
    if (outputs[m].size() != outputs[0].size())
      throw InputError("micro-batches: micro-batch " + std::to_string(m) + " has " + std::to_string(outputs[m].size()) +
                       " outputs, micro-batch 0 has " + std::to_string(outputs[0].size()) +
                       "; merge those with the same number of outputs");
  for (size_t i = 0; i < outputs[0].size(); ++i) {
    const ChunkSpec spec = i < specs.size() ? specs[i] : ChunkSpec{};
    std::vector<at::Tensor> chunks;
    for (const auto& microbatch : outputs) chunks.push_back(microbatch[i]);
    for (size_t m = 1; m < chunks.size(); ++m)
      if (chunks[m].defined() != chunks[0].defined())
        throw InputError("micro-batches: output " + std::to_string(i) + " is None in micro-batch " +
                         std::to_string(chunks[m].defined() ? 0 : m) + " and not in all of them");
    if (!chunks[0].defined()) {
      merged.emplace_back();
      continue;
    }
    if (!spec.replicate) {
      if (spec.dim < 0 || spec.dim >= chunks[0].dim())
        throw InputError("micro-batches: output " + std::to_string(i) + " has " + std::to_string(chunks[0].dim()) +
                         " dimensions, so its chunks cannot be joined along dimension " + std::to_string(spec.dim));
      merged.push_back(at::cat(chunks, spec.dim));
      continue;
    }
    for (size_t m = 1; m < chunks.size(); ++m)
      if (!are_equal(chunks[0], chunks[m]))
        throw InputError("micro-batches: output " + std::to_string(i) + " is marked as replicated, but micro-batch " +
                         std::to_string(m) + " differs from 0");
    merged.push_back(chunks[0]);
  }
  return merged;
}

std::vector<double> mean_loss_weights(const std::vector<double>& divisors) {
  const double all = std::accumulate(divisors.begin(), divisors.end(), 0.0);
  std::vector<double> weights;
  for (double divisor : divisors) weights.push_back(divisor * static_cast<double>(divisors.size()) / all);
  return weights;
}

void check_microbatches(const std::vector<std::string>& names, const Microbatches& batch, int microbatches) {
  const auto refuse = [](const std::string& reason) { throw InputError("micro-batches: " + reason); };
  const auto text = [](size_t number) { return std::to_string(number); };
  if (std::ssize(batch.inputs) != microbatches)
    refuse("there are inputs for " + text(batch.inputs.size()) + ", the schedule has " + std::to_string(microbatches));
  if (!batch.targets.empty() && std::ssize(batch.targets) != microbatches)
    refuse("there are targets for " + text(batch.targets.size()) + ", the schedule has " +
           std::to_string(microbatches) + " micro-batches; give targets for each, or for none");
  for (size_t m = 0; m < batch.inputs.size(); ++m) {
    if (batch.inputs[m].size() != names.size())
      refuse("micro-batch " + text(m) + " has " + text(batch.inputs[m].size()) + " inputs; there are " +
             text(names.size()) + ": " + join(names));
    for (size_t i = 0; i < names.size(); ++i)
      if (batch.inputs[m][i].defined() != batch.inputs[0][i].defined())
        refuse("input '" + names[i] + "' is None in micro-batch " + text(batch.inputs[m][i].defined() ? 0 : m) +
               " and not in all of them");
    if (!batch.targets.empty() && batch.targets[m].size() != batch.targets[0].size())
      refuse("micro-batch " + text(m) + " has " + text(batch.targets[m].size()) + " targets, micro-batch 0 has " +
             text(batch.targets[0].size()));
  }
}

}  // namespace plumbline::microbatch
