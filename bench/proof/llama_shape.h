// Models of the shape of Llama 3 (arXiv 2407.21783, table 3), as hollow tensors: no parameter takes memory.
#pragma once

#include <cstdint>
#include <string>

namespace plumbline::bench {

/// The defaults are the model of 405 billion parameters.
struct LlamaShape {
  int64_t layers = 126, width = 16384, inner = 53248, heads = 128, key_heads = 8, vocabulary = 128256, tokens = 8192;
};

/// Makes the model available to models::make_model(): token embedding, layers, norm, and a projection to the
/// vocabulary. A layer has attention with rotated positions and shared keys, and a gated perceptron, each after a norm.
/// The input "tokens" has the sizes [rows, tokens], and so has the target. Every layer may begin a stage.
void add_llama(const std::string& name, const LlamaShape& shape);

/// The number of its parameters.
int64_t parameter_count(const LlamaShape& shape);

}  // namespace plumbline::bench
