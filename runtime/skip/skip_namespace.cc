#include "runtime/skip/skip_namespace.h"

#include <atomic>

namespace plumbline::skip {

SkipNamespace::SkipNamespace() {
  static std::atomic<uint64_t> made = 0;
  number_ = ++made;
}

}  // namespace plumbline::skip
