// Where the ranks of a run compute.
#pragma once

#include <array>
#include <string_view>

namespace plumbline::conformance {

inline constexpr std::array<std::string_view, 2> kDeviceWords = {"cpu", "cuda"};

}  // namespace plumbline::conformance
