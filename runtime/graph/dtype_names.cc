#include "runtime/graph/dtype_names.h"

#include "runtime/types/aten.h"

namespace plumbline::graph {

std::string dtype_name(at::ScalarType dtype) {
  for (const types::DtypeInfo& info : types::dtypes())
    if (types::to_aten(info.dtype) == dtype && !info.short_name.empty()) return std::string(info.short_name);
  return c10::toString(dtype);
}

std::optional<at::ScalarType> dtype_from_name(const std::string& name) {
  for (const types::DtypeInfo& info : types::dtypes())
    if (info.short_name == name && !name.empty()) return types::to_aten(info.dtype);
  // The rest goes by LibTorch's own names.
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i)
    if (name == c10::toString(static_cast<at::ScalarType>(i))) return static_cast<at::ScalarType>(i);
  return std::nullopt;
}

}  // namespace plumbline::graph
