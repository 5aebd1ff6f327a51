// The text of an exception, without the backtrace that LibTorch adds to its own exceptions.
#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace plumbline::graph {

inline std::string error_text(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error ? torch_error->what_without_backtrace() : error.what();
}

/// Its first line: the message of an operator may have several.
inline std::string error_line(const std::exception& error) {
  const std::string text = error_text(error);
  return text.substr(0, text.find('\n'));
}

}  // namespace plumbline::graph
