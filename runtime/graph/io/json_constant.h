// Constant arguments of calls as JSON, without loss: null (None); true; 3; 0.5; "text"; {"float": "inf"} ("-inf",
// "nan"); {"float_bits": n} (another NaN); {"complex": [0.0, 1.0]}; {"device": "cuda:1"}; {"tensor": null} (an
// undefined tensor, which a kernel distinguishes from None); {"list": "int", "items": [1, 2]}, with the type of the
// elements.
#pragma once

#include <ATen/core/ivalue.h>

#include <nlohmann/json_fwd.hpp>

#include "runtime/io/json_place.h"

namespace plumbline::graph {

/// Throws Error naming the type for a constant without a JSON form (a generator, a defined tensor).
nlohmann::json constant_to_json(const c10::IValue& constant);

/// Throws InputError naming the place and the expected value.
c10::IValue constant_from_json(const JsonPlace& place);

}  // namespace plumbline::graph
