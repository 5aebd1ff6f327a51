// How tests ask what is refused, and why.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/error.h"

namespace plumbline {

/// What `call` throws, if that is a `Caught`; "accepted" where it throws nothing.
template <class Caught = Error, class Call>
std::string failure(Call&& call) try {
  call();
  return "accepted";
} catch (const Caught& error) {
  return error.what();
}

/// Why `call` is refused; "accepted" where it is not.
template <class Call>
std::string refusal(Call&& call) {
  return failure<InputError>(call);
}

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

}  // namespace plumbline
