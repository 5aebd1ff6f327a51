// The rounding error of a dtype, for tolerances that count roundings.
#pragma once

#include <string_view>

namespace plumbline::conformance {

/// Half the distance from 1 to the next number of a floating dtype, by its safetensors name ("F32").
inline double unit_roundoff(std::string_view dtype) {
  if (dtype == "F64") return 0x1p-53;
  if (dtype == "F32") return 0x1p-24;
  return dtype == "F16" ? 0x1p-11 : 0x1p-8;
}

}  // namespace plumbline::conformance
