// How tests ask what is refused, and why.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/error.h"

namespace plumbline {

/// Why `call` is refused; "accepted" where it is not.
template <class Call>
std::string refusal(Call&& call) try {
  call();
  return "accepted";
} catch (const InputError& error) {
  return error.what();
}

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

}  // namespace plumbline
