#include "runtime/skip/testing/skip_layers.h"

#include <ATen/ops/add.h>

namespace plumbline::skip {

SkipForward<> LayerBody::forward(at::Tensor x) {
  for (const std::string& name : skips.stash) co_yield stash(name, x);
  for (const std::string& name : skips.pop) {
    const at::Tensor popped = co_yield pop(name);
    if (popped.defined()) x = at::add(x, popped);
  }
  co_return x;
}

}  // namespace plumbline::skip
