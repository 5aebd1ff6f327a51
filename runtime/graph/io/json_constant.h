// Constant arguments of calls as JSON, with nothing lost: None null; true; 3; 0.5; "text"; {"float": "inf"} ("-inf",
// "nan"); {"float_bits": n} (another NaN); {"complex": [0.0, 1.0]}; {"device": "cuda:1"}; {"tensor": null} (undefined,
// which is not None to a kernel); {"list": "int", "items": [1, 2]}, with the name of the elements' type.
#pragma once

#include <ATen/core/ivalue.h>

#include <nlohmann/json_fwd.hpp>

#include "runtime/io/json_place.h"

namespace plumbline::graph {

/// Throws Error naming a type that has no JSON form (a generator, a defined tensor).
nlohmann::json constant_to_json(const c10::IValue& constant);

/// Throws InputError naming the place.
c10::IValue constant_from_json(const JsonPlace& place);

}  // namespace plumbline::graph
