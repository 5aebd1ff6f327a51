#include "reference/oracle/microbatches.h"

#include <ATen/ops/tensor_split.h>

#include "reference/loss.h"

namespace plumbline::reference {
namespace {

int64_t rows(const models::Model& model, const models::Batch& batch) {
  for (size_t i = 0; i < batch.inputs.size(); ++i)
    if (!model.input_chunks[i].replicate && batch.inputs[i].defined())
      return batch.inputs[i].size(model.input_chunks[i].dim);
  return 1;
}

}  // namespace

std::vector<models::Batch> divide(const models::Model& model, const models::Batch& batch, int parts,
                                  bool input_gradients) {
  std::vector<models::Batch> chunks(parts);
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    const at::Tensor& input = batch.inputs[i];
    const microbatch::ChunkSpec& spec = model.input_chunks[i];
    const std::vector<at::Tensor> pieces = spec.replicate || !input.defined()
                                               ? std::vector<at::Tensor>(parts, input)
                                               : at::tensor_split(input, parts, spec.dim);
    const bool is_leaf = input_gradients && input.defined() && input.is_floating_point();
    for (int m = 0; m < parts; ++m)
      chunks[m].inputs.push_back(is_leaf ? pieces[m].detach().requires_grad_() : pieces[m]);
  }
  if (!batch.target.defined()) return chunks;
  const std::vector<at::Tensor> pieces = at::tensor_split(batch.target, parts, model.target_chunk.dim);
  for (int m = 0; m < parts; ++m) chunks[m].target = pieces[m];
  return chunks;
}

double loss_weight(const Case& c, const models::Model& model, const models::Batch& chunk, const models::Batch& batch) {
  const double scale = c.optimizer.loss_scale;
  if (c.loss.reduction != Reduction::Mean || c.loss.equal_weights) return scale;
  const auto count = [&](const models::Batch& of) {
    return counts_targets(c.loss) ? counted_targets(c.loss, of.target) : static_cast<double>(rows(model, of));
  };
  return count(chunk) * c.microbatches / count(batch) * scale;
}

}  // namespace plumbline::reference
