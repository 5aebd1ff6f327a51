#include "runtime/fnv1a.h"

namespace plumbline {

// Test vectors published by the authors of FNV.
static_assert(fnv1a("") == 0xcbf29ce484222325);
static_assert(fnv1a("a") == 0xaf63dc4c8601ec8c);
static_assert(fnv1a("foobar") == 0x85944171f73967e8);
static_assert(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));

}  // namespace plumbline
