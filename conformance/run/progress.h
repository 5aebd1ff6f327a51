// Progress of a run. On a terminal: one live line, "12/46: 11 passed, 1 failed, about 3 min left | transformer-lm x
// 1f1b", with the failures above it. Elsewhere (a file, a CI log): the failures, and a line after every tenth of the
// runs. Verbose: a line for each verdict.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>

#include "conformance/judge/verdict/verdict.h"

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
    int total = 0;      ///< runs to come
    bool live = false;  ///< redraw one line (is_live_terminal), else plain lines
    bool colour = false;
    int columns = 80;                   ///< the live line is cut to this, since a wrapped line cannot be redrawn
    bool verbose = false;               ///< print every verdict
    std::filesystem::path report = {};  ///< the folder that contains Verdict::log
  };

  Progress(std::ostream& out, Options options);
  ~Progress();  ///< end()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `what` ("transformer-lm x 1f1b") in the live line; prints nothing on plain output.
  void working_on(const std::string& what);

  /// A run is finished.
  void finished(const Verdict& verdict);

  /// A finished run has another verdict than it had.
  void replaced(const Verdict& was, const Verdict& verdict);

  /// Prints a failure of a run that is none of those to come.
  void tell_failure(const Verdict& verdict);

  /// A line that stays, above the live one.
  void note(const std::string& line);

  /// Erases the live line for good.
  void end();

 private:
  void count(const Verdict& verdict, int by);
  std::string counts() const;
  std::string time_left() const;
  void draw();
  void erase();

  std::ostream& out_;
  Options options_;
  int done_ = 0;
  int passed_ = 0;
  int failed_ = 0;
  int executed_ = 0;      ///< all except Unsupported
  double seconds_ = 0.0;  ///< of the executed runs
  std::string current_;
  bool drawn_ = false;
};

}  // namespace plumbline::conformance
