// The name of a parameterised test after its parameter, for INSTANTIATE_TEST_SUITE_P.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace plumbline::testing {

/// A text as a test's name may be: letters and digits stay, everything else becomes an underscore.
struct ParameterName {
  template <class Parameter>
  std::string operator()(const ::testing::TestParamInfo<Parameter>& info) const {
    std::string name = info.param;
    std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
  }
};

}  // namespace plumbline::testing
