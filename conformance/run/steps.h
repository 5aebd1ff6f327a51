// The findings of `plumbline doctor`, one line each.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "runtime/error.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {

/// Prints the finding of each step; after a failure the steps that depend on it are not tried.
class Steps {
 public:
  explicit Steps(std::ostream& out) : out_(out) {}

  /// `body` returns its finding, or throws Error with the fault and its remedy.
  void needed(const std::string& name, const std::function<std::string()>& body) {
    if (failed_) {
      out_ << "not tried  " << name << "\n";
      return;
    }
    on_its_own(name, body);
  }
  /// A step on which no later one depends.
  void on_its_own(const std::string& name, const std::function<std::string()>& body) {
    try {
      const std::string found = body();  // before anything is printed
      out_ << "ok         " << name << ": " << one_line(found) << "\n";
    } catch (const Error& error) {
      failed_ = true;
      out_ << "failed     " << name << ": " << one_line(error.what()) << "\n";
    }
    out_.flush();
  }
  int exit_code() const { return failed_ ? 1 : 0; }

 private:
  std::ostream& out_;
  bool failed_ = false;
};

}  // namespace plumbline::conformance
