// Progress of a run: on a terminal one live line, "12/46 ok 11 fail 1 | transformer-lm x 1f1b", with each failure above
// it; elsewhere (a file, a CI log) one plain line for each finished case.
#pragma once

#include <ostream>
#include <string>

#include "conformance/judge/verdict.h"

namespace plumbline::conformance {

/// True when `fd` is a terminal that understands cursor movement (TERM is set and not "dumb").
bool is_live_terminal(int fd);

/// True for is_live_terminal() without NO_COLOR in the environment.
bool wants_colour(int fd);

/// Columns of the terminal behind `fd`; 80 when it is not a terminal.
int terminal_columns(int fd);

/// Not thread safe. Writes to `out`, which must outlive it.
class Progress {
 public:
  struct Options {
    int total = 0;      ///< cases to come
    bool live = false;  ///< redraw one line (is_live_terminal), else plain lines
    bool colour = false;
    int columns = 80;  ///< the live line is cut to this, since a wrapped line cannot be redrawn
  };

  Progress(std::ostream& out, Options options);
  /// Erases the live line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `what` ("transformer-lm x 1f1b") in the live line; prints nothing on plain output.
  void working_on(const std::string& what);

  /// A case is finished.
  void finished(const Verdict& verdict);

  /// A line that stays, above the live one.
  void note(const std::string& line);

 private:
  void draw();
  void erase();

  std::ostream& out_;
  Options options_;
  int done_ = 0;
  int ok_ = 0;
  int failed_ = 0;
  int other_ = 0;
  std::string current_;
  bool drawn_ = false;
};

}  // namespace plumbline::conformance
