// How the elements of a tensor lie in its storage.
#pragma once

#include <cstdint>
#include <utility>

#include "conformance/proof/terms/value.h"

namespace plumbline::proof {

/// In elements, not bytes.
struct Layout {
  int64_t offset = 0;
  Sizes sizes, strides;
  bool operator==(const Layout&) const = default;
};

/// Calls `visit` with the offset of each element, in row-major order.
template <class Visit>
void for_each_offset(const Layout& layout, Visit&& visit) {
  const Sizes& sizes = layout.sizes;
  const int64_t count = count_of(sizes);
  int64_t offset = layout.offset;
  Sizes index(sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(offset);
    for (size_t d = sizes.size(); d-- > 0;) {
      offset += layout.strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= layout.strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace plumbline::proof
