// A backend as the user names it: our runtime, a file backend.toml, or a command in quotes; and its command line for
// each verb of the protocol (INTERPRETING.md, "Protocol").
//
//   schema = "plumbline-backend/1"
//   argv = ["python3", "adapter.py"]             # no shell; `{verb}`, `{job}`, `{out}`, `{np}` are replaced by their
//                                                # values; without them, the verb, `--job J`, `--out D` are appended
//   name = "my pipeline"                         # default: argv's program
//   launcher = ["mpirun", "-n", "{np}"]          # starts the ranks; default: the backend starts its ranks itself
//   launcher_verbs = ["run"]                     # verbs that use it (describe and plan: with one rank)
//   folder = "."                                 # working directory, relative to this file; default: its folder
//   ranks = [1, 2, 4]                            # possible numbers of ranks; default: any number
//   waivers = "waivers.toml"                     # relative to this file; used without --waivers
//   [environment]
//   NAME = "value"
//   [timeouts]                                   # seconds
//   start = 60                                   # until the answer of describe and plan, and the first event of run
//   case = 120
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
  std::map<std::string, std::string> environment = {};
  std::filesystem::path folder = {};  ///< its working directory; empty: ours
  std::vector<int> ranks = {};        ///< ascending; empty: any number
  std::filesystem::path waivers = {};
  /// 0: none.
  std::chrono::milliseconds start{60'000}, one_case{120'000}, silence{120'000};
};

/// Value of --backend that names the runtime.
inline constexpr const char* kRuntime = "runtime";

/// The runtime inside `program`, a plumbline executable: ranks are its threads, or processes under mpirun. The ranks
/// themselves report a wait for a message that exceeds `timeout_seconds`.
BackendSpec runtime_backend(const std::string& program, double timeout_seconds);

/// Parses the text of a backend file. Throws InputError of one line that starts with "FILE:LINE: " and names the
/// expected values.
BackendSpec parse_backend_file(const std::string& text, const std::filesystem::path& path);

/// Reads a FILE.toml, or a command with defaults for the rest. The command is split as a shell does, with quotes and
/// backslashes, but without expansion. Throws InputError.
BackendSpec read_backend(const std::string& given);

/// The backend that `given` names: kRuntime, or an argument of read_backend(). Throws InputError.
BackendSpec find_backend(const std::string& given, const std::string& program, double timeout_seconds);

/// The whole command line for "describe", "plan" or "run". Omits `job` and `out` if they are empty, and each word of
/// argv that refers to an empty one. `transport`: TransportKind::Own for a foreign backend; the runtime's command names
/// it, and has no launcher for ranks that are threads.
std::vector<std::string> words_for(const BackendSpec& spec, TransportKind transport, const std::string& verb, int ranks,
                                   const std::string& job, const std::string& out);

}  // namespace plumbline::conformance
