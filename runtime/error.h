// The typed errors of plumbline, and the check of internal invariants.
//
// Code that reads user input throws InputError, whose text is one line: the mistake, its place and the accepted values.
// A wait that exceeds its deadline throws TimeoutError. A rank that stops only because another rank failed throws
// PeerError, so that secondary failures never hide the first reason. PLUMBLINE_CHECK guards internal invariants: it is
// active in every build and aborts the process with the place and the context.
#pragma once

#include <stdexcept>
#include <string>

namespace plumbline {

/// Base of all errors that plumbline throws deliberately.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// User input that cannot be accepted. The text is one line; the program exits with code 2.
class InputError : public Error {
 public:
  using Error::Error;
};

/// A wait exceeded its deadline; the text names the awaited thing and the rank that should have provided it.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

/// Another rank failed first; the text repeats that rank's reason.
class PeerError : public Error {
 public:
  using Error::Error;
};

/// Prints the failed invariant with its place and context to stderr, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& context);

}  // namespace plumbline

/// Aborts with context when an internal invariant is broken; `context` is evaluated only then.
#define PLUMBLINE_CHECK(condition, context)                                 \
  do {                                                                      \
    if (!(condition)) [[unlikely]]                                          \
      ::plumbline::check_failed(#condition, __FILE__, __LINE__, (context)); \
  } while (false)
