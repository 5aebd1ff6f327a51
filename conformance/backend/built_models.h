// The answers of ModelFacts from the models themselves: each model is built, captured, cut or partitioned.
#pragma once

#include <cstdint>
#include <memory>

#include "conformance/plan/model_facts.h"

namespace plumbline::conformance {

/// The models have this seed. Slow answers are cached: two cases given to why_not_partitioned() that have the same id
/// may differ in the number of micro-batches only.
std::unique_ptr<ModelFacts> built_models(uint64_t seed);

}  // namespace plumbline::conformance
