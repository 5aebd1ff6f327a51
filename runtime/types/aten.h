// Converts between plumbline::types and LibTorch's types. The enumerators have the same numbers on both sides.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include "runtime/error.h"
#include "runtime/types/types.h"

namespace plumbline::types {

inline c10::ScalarType to_aten(Dtype dtype) { return static_cast<c10::ScalarType>(dtype); }
inline c10::Layout to_aten(Layout layout) { return static_cast<c10::Layout>(layout); }
inline c10::MemoryFormat to_aten(MemoryFormat format) { return static_cast<c10::MemoryFormat>(format); }
inline c10::Device to_aten(Device device) {
  return {static_cast<c10::DeviceType>(device.kind), static_cast<c10::DeviceIndex>(device.index)};
}

/// Throws InputError for an element type that types::Dtype lacks (quantized ones, bits).
inline Dtype from_aten(c10::ScalarType type) {
  for (const DtypeInfo& info : dtypes())
    if (to_aten(info.dtype) == type) return info.dtype;
  throw InputError("element type " + std::string(c10::toString(type)) + " is not supported here");
}
inline Layout from_aten(c10::Layout layout) { return static_cast<Layout>(layout); }
inline MemoryFormat from_aten(c10::MemoryFormat format) { return static_cast<MemoryFormat>(format); }
inline Device from_aten(c10::Device device) { return {static_cast<Device::Kind>(device.type()), device.index()}; }

}  // namespace plumbline::types
