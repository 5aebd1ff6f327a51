// A backend as the user names it: our own runtime, a file backend.toml, or a command in quotes; and the words that
// start it for each verb of the protocol (INTERPRETING.md, "Protocol").
//
//   schema = "plumbline-backend/1"
//   argv = ["python3", "adapter.py"]             # no shell; `{verb}`, `{job}`, `{out}`, `{np}` are filled in where
//   they
//                                                # stand, else the verb, `--job J` and `--out D` are appended
//   name = "my pipeline"                         # default: argv's program
//   launcher = ["mpirun", "-n", "{np}"]          # starts the ranks; left out: the backend starts its own
//   launcher_verbs = ["run"]                     # verbs that go through it (describe and plan: with one rank)
//   folder = "."                                 # where it starts, from here; default: the folder of this file
//   ranks = [1, 2, 4]                            # how many it can be; left out: any number
//   waivers = "waivers.toml"                     # from here; where no --waivers is given
//   [environment]
//   NAME = "value"
//   [timeouts]                                   # seconds
//   start = 60                                   # until describe and plan have answered, and run its first event
//   case = 120
//   silence = 120                                # without any output
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace plumbline::conformance {

struct BackendSpec {
  std::string name = {};   ///< for people
  std::string given = {};  ///< as the user gave it: "runtime", the file, the command
  std::vector<std::string> argv = {};
  std::vector<std::string> launcher = {};  ///< empty: the backend starts its own ranks
  std::set<std::string> launcher_verbs = {"run"};
  std::vector<std::string> run_words = {};  ///< appended for the verb run
  std::map<std::string, std::string> environment = {};
  std::filesystem::path folder = {};  ///< empty: where we are
  std::vector<int> ranks = {};        ///< ascending; empty: any number
  std::filesystem::path waivers = {};
  /// 0: none.
  std::chrono::milliseconds start{60'000}, one_case{120'000}, silence{120'000};

  bool is_runtime() const { return given == "runtime"; }
};

/// The runtime that `program`, a plumbline executable, holds: ranks are its threads, or processes under mpirun. Ranks
/// name a wait for a message that is too long themselves, after `timeout_seconds`.
BackendSpec runtime_backend(const std::string& program, bool mpi, double timeout_seconds);

/// The text of such a file. Throws InputError of one line, opened by "FILE:LINE: ", that says what would be accepted.
BackendSpec parse_backend_file(const std::string& text, const std::filesystem::path& path);

/// A FILE.toml, or a command with defaults for all else; its words are taken as a shell takes them, with quotes and
/// backslashes, but nothing is expanded. Throws InputError.
BackendSpec read_backend(const std::string& given);

/// The whole command line for "describe", "plan" or "run". `job` and `out` are left out where they are empty: a word of
/// argv that asks for one of them too.
std::vector<std::string> words_for(const BackendSpec& spec, const std::string& verb, int ranks, const std::string& job,
                                   const std::string& out);

}  // namespace plumbline::conformance
