// Lets tests check rejections and their reasons.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/error.h"

namespace plumbline::testing {

/// The text of the `Caught` that `call` throws; "accepted" if it throws nothing.
template <class Caught = Error, class Call>
std::string failure(Call&& call) try {
  call();
  return "accepted";
} catch (const Caught& error) {
  return error.what();
}

/// The reason for which `call` is rejected; "accepted" if it is not.
template <class Call>
std::string refusal(Call&& call) {
  return failure<InputError>(call);
}

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

/// `message` is one line that begins with a location and contains `part`.
inline void expect_line(const std::string& message, const std::string& beginning, const std::string& part = "") {
  EXPECT_TRUE(message.starts_with(beginning)) << message << "\ndoes not begin with: " << beginning;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message << "\nis more than one line";
  expect_part(message, part);
}

}  // namespace plumbline::testing
