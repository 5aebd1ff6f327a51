// The typed errors of plumbline, and the check of internal invariants.
//
// Who throws what: whoever reads what a user wrote throws InputError, whose text is one line (what is wrong, where,
// what would be accepted); a wait past its deadline throws TimeoutError; a rank that stops only because another one
// failed throws PeerError, so that the first reason is never buried under its echoes. PLUMBLINE_CHECK guards
// invariants of our own: it stays on in every build and aborts with the place and the context.
#pragma once

#include <stdexcept>
#include <string>

namespace plumbline {

/// Base of all errors that plumbline throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the user gave cannot be accepted. One line; the program ends with exit code 2.
class InputError : public Error {
 public:
  using Error::Error;
};

/// A wait ended at its deadline; the text names what was waited for, and from whom.
class TimeoutError : public Error {
 public:
  using Error::Error;
};

/// Another rank failed first; the text repeats its reason.
class PeerError : public Error {
 public:
  using Error::Error;
};

/// Prints the failed invariant with its place and context to stderr, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& context);

}  // namespace plumbline

/// Aborts with context when an invariant of our own is broken; `context` is only evaluated then.
#define PLUMBLINE_CHECK(condition, context)                                 \
  do {                                                                      \
    if (!(condition)) [[unlikely]]                                          \
      ::plumbline::check_failed(#condition, __FILE__, __LINE__, (context)); \
  } while (false)
