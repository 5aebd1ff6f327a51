// How a backend is started: the runtime, a file backend.toml, or a command in quotes; and its command line for each
// verb of the protocol (INTERPRETING.md, "Protocol").
//
//   schema = "plumbline-backend/1"
//   argv = ["python3", "adapter.py"]             # no shell; `{verb}`, `{job}`, `{out}`, `{np}` are replaced; without
//                                                # them the verb, `--job J` and `--out D` are appended
//   name = "my pipeline"                         # default: argv's program
//   launcher = ["mpirun", "-n", "{np}"]          # starts the ranks; left out: the backend starts its own
//   launcher_verbs = ["run"]                     # verbs that go through it (describe and plan: with one rank)
//   folder = "."                                 # where it starts, from here; default: the folder of this file
//   ranks = [1, 2, 4]                            # numbers of ranks that it supports; left out: any
//   waivers = "waivers.toml"                     # from here; where no --waivers is given
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
  std::string name = {};   ///< for people
  std::string given = {};  ///< value of --backend
  /// It reads cases from files and has its own transport; false for the runtime, which knows the corpus and takes the
  /// options of `plumbline run`.
  bool foreign = true;
  std::vector<std::string> argv = {};
  std::vector<std::string> launcher = {};  ///< empty: the backend starts its own ranks
  std::set<std::string> launcher_verbs = {"run"};
  std::map<std::string, std::string> environment = {};
  std::filesystem::path folder = {};  ///< empty: the current one
  std::vector<int> ranks = {};        ///< ascending; empty: any number
  std::filesystem::path waivers = {};
  /// 0: none.
  std::chrono::milliseconds start{60'000}, one_case{120'000}, silence{120'000};
};

/// Value of --backend that names the runtime.
inline constexpr const char* kRuntime = "runtime";

/// The runtime as `program`, a plumbline executable, runs it: its ranks are threads, or processes under mpirun. A rank
/// itself fails when a wait for a message lasts longer than `timeout_seconds`.
BackendSpec runtime_backend(const std::string& program, double timeout_seconds);

/// The text of such a file. Throws InputError of one line, opened by "FILE:LINE: ", that names the accepted values.
BackendSpec parse_backend_file(const std::string& text, const std::filesystem::path& path);

/// A FILE.toml, or a command with defaults for all else; its words are split as a shell splits them, with quotes and
/// backslashes, but nothing is expanded. Throws InputError.
BackendSpec read_backend(const std::string& given);

/// The backend that `given` names: kRuntime, or as read_backend() takes it. Throws InputError.
BackendSpec find_backend(const std::string& given, const std::string& program, double timeout_seconds);

/// The whole command line for "describe", "plan" or "run". `job` and `out` are left out where they are empty, and so is
/// a word of argv with the placeholder of one. `transport`: TransportKind::Own for a foreign backend; the runtime is
/// told which one it is, and its ranks as threads need no launcher.
std::vector<std::string> words_for(const BackendSpec& spec, TransportKind transport, const std::string& verb, int ranks,
                                   const std::string& job, const std::string& out);

}  // namespace plumbline::conformance
