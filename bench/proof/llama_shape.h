// Models with the architecture of Llama 3 (arXiv 2407.21783, table 3). Parameters and batches are hollow tensors
// (hollow_memory.h), which take no memory and whose elements must not be accessed.
#pragma once

#include <cstdint>
#include <string>

namespace plumbline::bench {

/// The defaults are those of the model with 405 billion parameters. `width` must be a multiple of `heads`, and `heads`
/// must be a multiple of `kv_heads`; neither is checked.
struct LlamaShape {
  int64_t layers = 126;
  int64_t width = 16384;           ///< of the hidden states
  int64_t ffn_width = 53248;       ///< of the hidden layer of the feed-forward network
  int64_t heads = 128;             ///< of the queries, each width / heads wide
  int64_t kv_heads = 8;            ///< of the keys and values, as wide; each serves heads / kv_heads query heads
  int64_t vocabulary = 128256;     ///< tokens in the vocabulary
  int64_t sequence_length = 8192;  ///< tokens in a row of the batch
};

/// Registers the model under `name` (models::add_model()). It is a token embedding, the layers, RMSNorm, and an untied
/// output projection to the vocabulary. A layer is grouped-query causal attention with rotary embeddings, then a
/// feed-forward network with SwiGLU, each after RMSNorm and each with a residual connection. Every layer but the first
/// may begin a stage.
///
/// The inputs are "tokens" [rows, sequence_length] (int64), and "cosines" and "sines" of the rotary embeddings, both
/// [sequence_length, width / heads] in the model's dtype and replicated to every micro-batch. The target has the sizes
/// and dtype of "tokens".
void add_llama(const std::string& name, const LlamaShape& shape);

/// Returns the number of scalar parameters of the model.
int64_t parameter_count(const LlamaShape& shape);

}  // namespace plumbline::bench
