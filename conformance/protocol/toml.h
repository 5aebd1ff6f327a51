// toml++ for files that users write. Its assertions are off: they end the program at a malformed key ("[" at the end of
// a line), which its parser refuses in words right after them.
#pragma once

#ifndef TOML_ASSERT
#define TOML_ASSERT(expr) static_assert(true)
#endif
#include <toml++/toml.h>
