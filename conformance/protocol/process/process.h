// Child processes of the supervisor: started without a shell, with captured output and a deadline, and never left
// running.
//
// A backend under test may hang, print without end, ignore SIGTERM, or leave ranks running. Therefore each child leads
// a new process group, and its captured output is capped. When the child ends or a deadline passes, the remaining
// processes of the group and all other descendants are killed (mpirun puts its ranks into separate groups).
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
  std::map<std::string, std::string> environment;  ///< added to the environment of this process
  std::string directory;                           ///< working directory; empty: that of this process
  std::chrono::milliseconds timeout{0};            ///< for the whole run; 0: none
  std::chrono::milliseconds silence_timeout{0};    ///< without any output; 0: none
  std::chrono::milliseconds grace{2000};           ///< between SIGTERM and SIGKILL
  size_t output_limit = 1 << 20;                   ///< bytes of output kept: half from the start, half from the end
  size_t errors_limit = 1 << 20;                   ///< the same of stderr, with `separate_errors`
  bool separate_errors = false;                    ///< stderr goes to `errors` only, not to `output` and on_output
  /// A deadline that moves with the child's progress, and ProcessResult::timeout_reason if it passes. Queried after
  /// each piece of output; empty: none.
  struct Due {
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::time_point::max();
    std::string reason;
  };
  std::function<Due()> due;
  /// Called with each piece of output as it arrives, uncapped, in the thread that called run_process. `hear_errors`
  /// first passes on what has arrived on stderr, with `separate_errors`.
  std::function<void(std::string_view piece, const std::function<void()>& hear_errors)> on_output;
  std::function<void(std::string_view piece)> on_errors;  ///< the same for stderr, with `separate_errors`
};

struct ProcessResult {
  std::optional<int> exit_code;  ///< nullopt: ended by a signal, or never started
  int signal = 0;                ///< the signal that ended the child; 0: none
  bool timed_out = false;        ///< a deadline passed, so that the child was sent SIGTERM and, after `grace`, SIGKILL
  std::string timeout_reason;    ///< "no end within 5 s", "no output for 5 s" or ProcessOptions::Due::reason
  std::string could_not_start;   ///< the reason why the child never ran (no such program, ...); empty if it ran
  std::string output;            ///< stdout and stderr in the order of arrival
  std::string errors;            ///< stderr with `separate_errors`, else empty
  double seconds = 0.0;          ///< duration of the run

  bool succeeded() const { return exit_code == 0 && !timed_out; }
};

/// Runs a program, whose standard input is /dev/null, to its end; the caller blocks. May be called from several
/// threads. Throws InputError if argv is empty, and Error if no pipe can be created. An exception of `on_output` or
/// `due` kills the child and is rethrown. A program that cannot start is no exception: see
/// ProcessResult::could_not_start.
ProcessResult run_process(const ProcessOptions& options);

/// `word` as one argument for a shell, in single quotes if needed.
std::string shell_word(const std::string& word);

/// "2.5 s"
std::string seconds_text(std::chrono::milliseconds duration);

/// The ending of a child: "exited with code 3", "killed by signal 11 (Segmentation fault)", "no end within 5 s", or why
/// it did not start.
std::string describe(const ProcessResult& result);

/// Installs handlers for SIGINT, SIGTERM and SIGHUP. They send the process groups of the running children of
/// run_process() one SIGTERM, wait until their processes have ended or are killed (Guard::kGrace), remove the
/// ScratchFolder, and then end this process as usual. Ctrl-C at the terminal does not reach the children's groups
/// itself.
void end_children_on_signals();

}  // namespace plumbline::conformance
