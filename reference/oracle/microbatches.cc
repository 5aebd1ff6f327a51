#include "reference/oracle/microbatches.h"

#include <ATen/ops/tensor_split.h>

#include <functional>
#include <numeric>
#include <utility>

#include "reference/loss.h"

namespace plumbline::reference {
namespace {

int64_t rows(const models::Model& model, const models::Batch& batch) {
  for (size_t i = 0; i < batch.inputs.size(); ++i)
    if (!model.input_chunks[i].replicate && batch.inputs[i].defined())
      return batch.inputs[i].size(model.input_chunks[i].dim);
  return 1;
}

std::vector<models::Batch> pieces_of(const models::Model& model, const models::Batch& batch, int parts) {
  if (!batch.parts.empty()) return batch.parts;
  std::vector<models::Batch> chunks(parts);
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    const at::Tensor& input = batch.inputs[i];
    const microbatch::ChunkSpec& spec = model.input_chunks[i];
    const std::vector<at::Tensor> pieces = spec.replicate || !input.defined()
                                               ? std::vector<at::Tensor>(parts, input)
                                               : at::tensor_split(input, parts, spec.dim);
    for (int m = 0; m < parts; ++m) chunks[m].inputs.push_back(pieces[m]);
  }
  std::vector<std::vector<at::Tensor>> targets(parts);
  for (const at::Tensor& target : batch.targets) {
    const std::vector<at::Tensor> pieces = at::tensor_split(target, parts, model.target_chunk.dim);
    for (int m = 0; m < parts; ++m) targets[m].push_back(pieces[m]);
  }
  for (int m = 0; m < parts; ++m) chunks[m].targets = std::move(targets[m]);
  return chunks;
}

}  // namespace

models::Batch with_leaves(const models::Batch& batch) {
  models::Batch leaves = batch;
  for (at::Tensor& input : leaves.inputs)
    if (input.defined() && input.is_floating_point()) input = input.detach().requires_grad_();
  return leaves;
}

std::vector<models::Batch> divide(const Case& c, const models::Model& model, const models::Batch& batch, int parts,
                                  bool training) {
  std::vector<models::Batch> chunks = pieces_of(model, batch, parts);
  if (!training || !c.input_gradients || c.whole_gradients) return chunks;
  for (int m = 0; m < parts; ++m)
    if (requires_gradients(c, m)) chunks[m] = with_leaves(chunks[m]);
  return chunks;
}

double loss_weight(const Case& c, const models::Model& model, const models::Batch& chunk, const models::Batch& batch) {
  const double scale = c.optimizer.loss_scale;
  if (c.loss.reduction != Reduction::Mean || c.loss.equal_weights) return scale;
  const std::function<double(const models::Batch&)> count = [&](const models::Batch& of) {
    if (!of.parts.empty())
      return std::accumulate(of.parts.begin(), of.parts.end(), 0.0,
                             [&](double sum, const models::Batch& part) { return sum + count(part); });
    return counts_targets(c.loss) ? counted_targets(c.loss, of.targets) : static_cast<double>(rows(model, of));
  };
  return count(chunk) * c.microbatches / count(batch) * scale;
}

}  // namespace plumbline::reference
