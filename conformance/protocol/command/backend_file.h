// A backend as the user names it (the runtime of this project, a file backend.toml, or a command in quotes), and its
// command line for each verb of the protocol (INTERPRETING.md, "Protocol").
//
//   schema = "plumbline-backend/1"
//   argv = ["python3", "adapter.py"]             # no shell; `{verb}`, `{job}`, `{out}`, `{np}` are replaced by their
//                                                # values; the verb, `--job J` and `--out D` are appended unless argv
//                                                # has their placeholders
//   name = "my pipeline"                         # default: the file name of argv's program
//   launcher = ["mpirun", "-n", "{np}"]          # starts the ranks; default: the backend starts its ranks itself
//   launcher_verbs = ["run"]                     # verbs that use the launcher (describe and plan: with one rank)
//   folder = "."                                 # working directory, relative to the folder of this file
//   ranks = [1, 2, 4]                            # possible numbers of ranks; default: any number
//   waivers = "waivers.toml"                     # relative to this file; used without --waivers
//   [environment]
//   NAME = "value"
//   [timeouts]                                   # seconds
//   start = 60                                   # for the answer of describe and plan; in run, for the first event and
//                                                # between the end of a case and the next event
//   case = 120                                   # for one case
//   silence = 120                                # without any output
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/protocol/transport_kind.h"

namespace plumbline::conformance {

struct BackendSpec {
  std::string name = {};   ///< in reports
  std::string given = {};  ///< value of --backend
  /// It reads cases from files and has its own transport; false for the runtime, which knows the corpus and takes the
  /// options of `plumbline run`.
  bool foreign = true;
  std::vector<std::string> argv = {};
  std::vector<std::string> launcher = {};  ///< empty: the backend starts its own ranks
  std::set<std::string> launcher_verbs = {"run"};
  std::map<std::string, std::string> environment = {};  ///< added to the environment of this process
  std::filesystem::path folder = {};                    ///< working directory; empty: that of this process
  std::vector<int> ranks = {};                          ///< possible numbers of ranks, ascending; empty: any number
  std::filesystem::path waivers = {};                   ///< used without --waivers; empty: none
  std::vector<std::string> run_words = {};              ///< of the runtime, after its --transport
  /// Deadlines, as in [timeouts]; 0: none.
  std::chrono::milliseconds start{60'000}, one_case{120'000}, silence{120'000};
};

/// The value of --backend that names the runtime.
inline constexpr const char* kRuntime = "runtime";

/// The runtime inside `program`, a plumbline executable: ranks are threads of that process, or processes under mpirun.
/// The ranks themselves report a wait for a message that exceeds `timeout_seconds`, so a case has no deadline.
BackendSpec runtime_backend(const std::string& program, double timeout_seconds);

/// Parses the text of a backend file. `path` names the file in errors, and its folder resolves relative paths. Throws
/// InputError of one line that starts with "FILE:LINE: " and names the expected values.
BackendSpec parse_backend_file(const std::string& text, const std::filesystem::path& path);

/// Reads a FILE.toml, or takes `given` as a command, with defaults for all other members. The command is split into
/// words as by a shell, with quotes and backslashes, but without expansion. A text that ends in .toml and contains a
/// blank is a command unless that file exists. Throws InputError for a file that is unreadable or malformed, an empty
/// command, an open quote, and an unknown placeholder.
BackendSpec read_backend(const std::string& given);

/// The backend that `given` names: kRuntime, or an argument of read_backend(). Throws InputError.
BackendSpec find_backend(const std::string& given, const std::string& program, double timeout_seconds);

/// The whole command line for the verb "describe", "plan" or "run". Omits `job` and `out` if they are empty, and each
/// word that contains the placeholder of an empty value. `transport`: TransportKind::Own for a foreign backend; the
/// runtime's command names it, and has no launcher for ranks that are threads.
std::vector<std::string> words_for(const BackendSpec& spec, TransportKind transport, const std::string& verb, int ranks,
                                   const std::string& job, const std::string& out);

}  // namespace plumbline::conformance
