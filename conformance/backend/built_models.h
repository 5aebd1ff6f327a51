// The answers of ModelFacts from the models themselves: each model is built, captured, cut or partitioned.
#pragma once

#include <cstdint>
#include <memory>

#include "conformance/plan/model_facts.h"

namespace plumbline::conformance {

/// Models of this seed. Answers that take long are cached.
std::unique_ptr<ModelFacts> built_models(uint64_t seed);

}  // namespace plumbline::conformance
