// Makes autograd nodes under LibTorch 2.15 (intrusive pointers) and before (shared ones).
#pragma once

#include <type_traits>
#include <utility>

#include "runtime/backward/halved_node.h"

namespace plumbline::backward {

/// Constructs a node of class `Made` from `arguments`.
template <class Made, class... Arguments>
NodeHandle make_node(Arguments&&... arguments) {
  if constexpr (std::is_constructible_v<NodeHandle, std::shared_ptr<Made>>)
    return std::make_shared<Made>(std::forward<Arguments>(arguments)...);
  else
    return NodeHandle(c10::make_intrusive<Made>(std::forward<Arguments>(arguments)...));
}

}  // namespace plumbline::backward
