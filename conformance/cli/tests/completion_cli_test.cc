// The completion scripts, asked by the shells themselves. Every long option that --help prints must be offered.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "conformance/cli/testing/cli_fixture.h"

namespace plumbline::cli {
namespace {

struct Shell {
  const char* name;
  /// Prints what the shell offers for the last of "$@" after sourcing ./script, a word a line.
  const char* asking;
};

class Completion : public Cli, public ::testing::WithParamInterface<Shell> {
 protected:
  void SetUp() override {
    Cli::SetUp();
    conformance::ProcessOptions shell;
    shell.argv = {GetParam().name, "-c", "true"};
    if (!conformance::run_process(shell).succeeded()) GTEST_SKIP() << "no " << GetParam().name;
    fs::create_symlink(std::getenv("PLUMBLINE_PROGRAM"), folder_ / "plumbline");
    const conformance::ProcessResult script = start({"completion", GetParam().name});
    ASSERT_EQ(exit_code(script), 0);
    std::ofstream(folder_ / "script") << script.output;
    std::ofstream(folder_ / "ask") << GetParam().asking;
  }

  std::set<std::string> offered(const std::vector<std::string>& words) const {
    conformance::ProcessOptions shell;
    shell.argv = {GetParam().name, "ask", "./plumbline"};
    shell.argv.insert(shell.argv.end(), words.begin(), words.end());
    shell.directory = folder_.path().string();
    shell.environment = {{"HOME", folder_.path().string()}};
    const conformance::ProcessResult result = conformance::run_process(shell);
    EXPECT_TRUE(result.succeeded()) << result.output;
    std::set<std::string> all;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) all.insert(line.substr(0, line.find_first_of("\t ")));
    return all;
  }
};

using Offers = std::set<std::string>;

TEST_P(Completion, OffersEveryOptionThatHelpPrints) {
  const std::regex option("^  (?:-[a-z],)?(--[a-z0-9-]+)");
  for (const auto& command :
       std::vector<std::vector<std::string>>{{}, {"run"}, {"check"}, {"schedule"}, {"mutants"}, {"backend", "run"}}) {
    std::vector<std::string> help = command, begun = command;
    help.emplace_back("--help");
    begun.emplace_back("--");
    Offers expected;
    std::istringstream lines(start(help).output);
    for (std::string line; std::getline(lines, line);)
      if (std::smatch match; std::regex_search(line, match, option)) expected.insert(match[1]);
    EXPECT_TRUE(expected.contains("--help"));
    const Offers all = offered(begun);
    for (const std::string& name : expected) EXPECT_TRUE(all.contains(name)) << name;
  }
  EXPECT_TRUE(offered({"run", "--pol"}).contains("--policy")) << "an option of a group";
}

TEST_P(Completion, OffersSubcommandsValuesAndNames) {
  EXPECT_EQ(offered({"sche"}), Offers{"schedule"});
  EXPECT_EQ(offered({"backend", "de"}), Offers{"describe"});
  EXPECT_EQ(offered({"run", "--transport", ""}), (Offers{"threads", "mpi", "nccl"}));
  EXPECT_EQ(offered({"schedule", "--format", "c"}), (Offers{"compute", "comms"}));
  EXPECT_EQ(offered({"run", "--list", "--case", "exact-mlp-me"}), Offers{"exact-mlp-mean"});
  EXPECT_EQ(offered({"run", "--schedule", "zb-h"}), (Offers{"zb-h1", "zb-h2"}));
  EXPECT_EQ(offered({"schedule", "zb-h"}), (Offers{"zb-h1", "zb-h2"}));
  EXPECT_EQ(offered({"run", "--schedule", "gpipe,1f"}), Offers{"gpipe,1f1b"});
  EXPECT_EQ(offered({"run", "--profile", "smo"}), Offers{"smoke"});
  EXPECT_EQ(offered({"run", "--mutant", "drop-last-m"}), Offers{"drop-last-microbatch"});
}

INSTANTIATE_TEST_SUITE_P(Shells, Completion,
                         ::testing::Values(Shell{"bash", R"sh(. ./script
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_plumbline
printf '%s\n' "${COMPREPLY[@]}"
)sh"},
                                           Shell{"zsh", R"sh(. ./script
compadd() {
  while [[ $1 != - ]]; do shift; done
  for word in "${@[2,-1]}"; do [[ $word = ${words[CURRENT]}* ]] && print -r -- "$word"; done
}
_default() { return 1; }
words=("$@") CURRENT=$#
_bash_complete -o default -F _plumbline || true
)sh"},
                                           Shell{"fish", R"sh(source ./script
complete -C (string join ' ' -- $argv)
)sh"}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace plumbline::cli
