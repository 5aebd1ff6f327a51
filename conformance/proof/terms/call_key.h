// Call keys: calls that differ in the values of their tensors alone have the same key. Steps repeat their calls
// micro-batch by micro-batch, so the consequences of a key are found once.
#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string>

namespace c10 {
class OperatorHandle;
}

namespace plumbline::proof {

/// Writes the key of a call to `key`. Calls of one operator have equal keys only if their arguments are equal up to the
/// values, the memory and the histories of tensors; those that are numbers (wrapped ones) have equal values.
void write_call_key(std::string& key, const c10::OperatorHandle& op, std::span<const c10::IValue> arguments);

}  // namespace plumbline::proof
