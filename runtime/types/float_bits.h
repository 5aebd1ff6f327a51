// Binary floating-point numbers as the bits that hold them (IEEE 754 section 3.4; bfloat16 has the same form).
#pragma once

#include <cstdint>

#include "runtime/types/types.h"

namespace plumbline::types {

/// Returns the number that the lowest `format.bytes` bytes of `bits` hold. `format` must have digits, like those of the
/// functions below.
double value_of_bits(uint64_t bits, const DtypeInfo& format);

/// Returns the bits of the number of `format` nearest to `value`; of two, the even one. One beyond the largest gives
/// infinity; NaN gives the quiet NaN without a payload.
uint64_t nearest_bits(double value, const DtypeInfo& format);

/// Returns the signed number of steps between neighbouring numbers of `format` that lead from 0 to `value`, which must
/// be finite and one of them.
int64_t steps_from_zero(double value, const DtypeInfo& format);

}  // namespace plumbline::types
