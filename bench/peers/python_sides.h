// The scripts that are Python's side of `plumbline bench peers`, for `python -c`: the program carries them, so that it
// works wherever it is installed.
#pragma once

#include <string_view>

namespace plumbline::bench {

extern const std::string_view minimum_cut_py, split_backward_py;

}  // namespace plumbline::bench
