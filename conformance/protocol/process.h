// Child processes of the supervisor: started without a shell, with captured output and a deadline, and never left
// running.
//
// A backend under test may hang, print without end, ignore SIGTERM, or leave ranks running. So each child leads a new
// process group, and its output is capped. When it ends or its deadline passes, the remaining processes of the group
// and all other descendants are killed (mpirun puts its ranks into separate groups).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::conformance {

struct ProcessOptions {
  std::vector<std::string> argv;                   ///< argv[0] is looked up in PATH unless it contains a slash
  std::map<std::string, std::string> environment;  ///< added to ours; the child's standard input is /dev/null
  std::string directory;                           ///< its working directory; empty: ours
  std::chrono::milliseconds timeout{0};            ///< for the whole run; 0: none
  std::chrono::milliseconds silence_timeout{0};    ///< without any output; 0: none
  std::chrono::milliseconds grace{2000};           ///< between SIGTERM and SIGKILL
  size_t output_limit = 1 << 20;                   ///< bytes of output kept: half from the start, half from the end
  bool separate_errors = false;                    ///< stderr goes to `errors` only, not to `output` and on_output
  /// A deadline that moves with the child's progress, queried after each piece of output, and the reason to report.
  struct Due {
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::time_point::max();
    std::string reason;
  };
  std::function<Due()> due;
  /// Called with each piece of output as it arrives, uncapped, in the thread that called run_process.
  std::function<void(std::string_view)> on_output;
};

struct ProcessResult {
  std::optional<int> exit_code;  ///< if it exited
  int signal = 0;                ///< if a signal ended it
  bool timed_out = false;        ///< we ended it, or tried to, because its deadline had passed
  std::string timeout_reason;    ///< "no end within 5 s" or "no output for 5 s", or that of `due`
  std::string could_not_start;   ///< why it never ran (no such program, ...); empty if it ran
  std::string output;            ///< stdout and stderr in the order of arrival
  std::string errors;            ///< stderr, with separate_errors
  double seconds = 0.0;

  bool succeeded() const { return exit_code == 0 && !timed_out; }
};

/// Runs a program to its end; the caller blocks. Throws InputError if argv is empty. Rethrows exceptions of on_output
/// after killing the child; throws nothing else.
ProcessResult run_process(const ProcessOptions& options);

/// `word` as one argument for a shell, in single quotes if needed.
std::string shell_word(const std::string& word);

/// "2.5 s"
std::string seconds_text(std::chrono::milliseconds duration);

/// How it ended: "exited with code 3", "killed by signal 11 (Segmentation fault)", "no end within 5 s".
std::string describe(const ProcessResult& result);

/// From now on SIGINT, SIGTERM and SIGHUP are first forwarded to the running children of run_process, and then end this
/// process as usual. The children are in separate process groups, which a Ctrl-C at the terminal does not reach.
void end_children_on_signals();

}  // namespace plumbline::conformance
