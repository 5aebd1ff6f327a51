// A transformer with as many layers as one likes, and very narrow: proofs depend on the operators of a model, not on
// the width of its values.
#pragma once

#include <string>

namespace plumbline::bench {

/// Makes the model available to models::make_model(). Its input "x" has the sizes [rows, 2, 8]; each layer is a norm,
/// attention with two heads, a norm and a perceptron, each half added to its input. Every layer may begin a stage.
void add_deep_transformer(const std::string& name, int layers);

}  // namespace plumbline::bench
