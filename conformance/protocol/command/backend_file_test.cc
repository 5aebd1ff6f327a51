#include "conformance/protocol/command/backend_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/testing/refusal.h"

namespace plumbline::conformance {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

TEST(BackendFile, EveryKeyIsRead) {
  const BackendSpec spec = parse_backend_file(R"(
schema = "plumbline-backend/1"
name = "my pipeline"
argv = ["python3", "a dapter.py"]
launcher = ["mpirun", "-n", "{np}"]
launcher_verbs = ["run", "plan"]
folder = "src"
ranks = [4, 1]
waivers = "waivers.toml"
[environment]
A = "b c"
[timeouts]
start = 1.5
case = 2
silence = 30
)",
                                              "/some/where/b.toml");
  EXPECT_EQ(spec.name, "my pipeline");
  EXPECT_EQ(spec.given, "/some/where/b.toml");
  EXPECT_EQ(spec.folder, "/some/where/src");
  EXPECT_EQ(spec.waivers, "/some/where/waivers.toml");
  EXPECT_EQ(spec.ranks, (std::vector<int>{1, 4}));
  EXPECT_EQ(spec.environment, (std::map<std::string, std::string>{{"A", "b c"}}));
  EXPECT_EQ(spec.start, 1500ms);
  EXPECT_EQ(spec.one_case, 2s);
  EXPECT_EQ(spec.silence, 30s);
  EXPECT_TRUE(spec.foreign);
  EXPECT_EQ(words_for(spec, TransportKind::Own, "run", 4, "J", "D"),
            (Words{"mpirun", "-n", "4", "python3", "a dapter.py", "run", "--job", "J", "--out", "D"}));
  EXPECT_EQ(words_for(spec, TransportKind::Own, "plan", 1, "J", ""),
            (Words{"mpirun", "-n", "1", "python3", "a dapter.py", "plan", "--job", "J"}));
  EXPECT_EQ(words_for(spec, TransportKind::Own, "describe", 1, "", ""), (Words{"python3", "a dapter.py", "describe"}));
}

TEST(BackendFile, TwoKeysAreEnough) {
  const BackendSpec spec =
      parse_backend_file("schema = \"plumbline-backend/1\"\nargv = [\"bin/host\"]\n", "/some/where/b.toml");
  EXPECT_EQ(spec.name, "host");
  EXPECT_EQ(spec.folder, "/some/where/");
  EXPECT_TRUE(spec.launcher.empty() && spec.ranks.empty() && spec.waivers.empty());
  EXPECT_EQ(spec.one_case, 120s);
}

TEST(BackendFile, PlaceholdersInArgvAreReplaced) {
  BackendSpec spec{.argv = {"host", "--do={verb}", "--job={job}", "--to={out}", "{np}x{np}"}};
  EXPECT_EQ(words_for(spec, TransportKind::Own, "run", 12, "J", "D"),
            (Words{"host", "--do=run", "--job=J", "--to=D", "12x12"}));
  EXPECT_EQ(words_for(spec, TransportKind::Own, "describe", 1, "", ""), (Words{"host", "--do=describe", "1x1"}))
      << "a word with a placeholder that has no value for describe is left out";
}

TEST(BackendFile, OtherBracesAreLeftToTheProgram) {
  const std::string words = R"('echo ${HOME}', '{"a": 1}', '{}', '{ print }', '{np', 'np}', '{{job}')";
  EXPECT_EQ(parse_backend_file("schema = \"plumbline-backend/1\"\nargv = [" + words + "]", "b.toml").argv,
            (Words{"echo ${HOME}", "{\"a\": 1}", "{}", "{ print }", "{np", "np}", "{{job}"}));
}

TEST(BackendFile, ErrorsNameTheLine) {
  const std::string head = "schema = \"plumbline-backend/1\"\nargv = [\"a\"]\n";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"argv = [\"a\"]", "b.toml:1: the key 'schema' is missing"},
      {"\nschema = \"plumbline-backend/2\"",
       "b.toml:2: schema: expected \"plumbline-backend/1\", not \"plumbline-backend/2\""},
      {"schema = \"plumbline-backend/1\"", "b.toml:1: the key 'argv' is missing"},
      {"schema = \"plumbline-backend/1\"\nargv = \"python3 x.py\"",
       "b.toml:2: argv: expected a list of strings, such as"},
      {"schema = \"plumbline-backend/1\"\nargv = []", "b.toml:2: argv: expected a list of strings, such as"},
      {"schema = \"plumbline-backend/1\"\nargv = [\"\"]", "b.toml:2: argv: begins with an empty word"},
      {"schema = \"plumbline-backend/1\"\nargv = [\"a\",\n3]",
       "b.toml:3: argv: expected a string that is not empty, not 3"},
      {"schema = \"plumbline-backend/1\"\nargv = [\"a\",\n\"--rank={rank}\"]",
       "b.toml:3: argv: '{rank}' is unknown; expected one of {verb}, {job}, {out}, {np}"},
      {head + "launcher = [\"mpirun\", \"{np}{NP}\"]",
       "b.toml:3: launcher: '{NP}' is unknown; expected one of {verb}, "},
      {head + "argv = [\"b\"]", "b.toml:3: not TOML: "},
      {head + "name = ", "b.toml:3: not TOML: "},
      {head + "[\n[timeouts]", "b.toml:3: not TOML: "},
      {head + "nam = \"x\"", "b.toml:3: no key 'nam' is known; nearest: name, "},
      {head + "name = 3", "b.toml:3: name: expected a string that is not empty, not 3"},
      {head + "launcher_verbs = [\"go\"]",
       "b.toml:3: launcher_verbs: 'go' is unknown; expected one of describe, plan, run"},
      {head + "ranks = 4",
       "b.toml:3: ranks: expected a list of whole numbers from 1 to 4096, such as [1, 2, 4], not 4"},
      {head + "ranks = [0]", "b.toml:3: ranks: expected a whole number from 1 to 4096, not 0"},
      {head + "ranks = [1.5]", "b.toml:3: ranks: expected a whole number from 1 to 4096, not 1.5"},
      {head + "environment = 3", "b.toml:3: environment: expected a table, not 3"},
      {head + "[environment]\nA = 3", "b.toml:4: A: expected a string"},
      {head + "[environment]\nA = \"x\\u0000y\"", "b.toml:4: A: has a NUL byte"},
      {head + "[environment]\n\"A=B\" = \"c\"",
       "b.toml:4: A=B: the name of a variable must not be empty, nor have '='"},
      {head + "[environment]\n\"\" = \"c\"", "b.toml:4: the name of a variable must not be empty"},
      {head + "[timeouts]\nrun = 3", "b.toml:4: timeouts: no key 'run' is known; expected one of start, case, silence"},
      {head + "[timeouts]\ncase = 0", "b.toml:4: case: expected a number of seconds above 0"},
      {head + "[timeouts]\ncase = nan", "b.toml:4: case: expected a number of seconds above 0"},
      {head + "[timeouts]\ncase = \"3\"", "b.toml:4: case: expected a number of seconds above 0"},
  };
  for (const auto& [text, expected] : wrong) {
    testing::expect_line(testing::refusal([&] { parse_backend_file(text, "b.toml"); }), expected);
  }
}

/// toml++ recurses into the tables of such a key: a file of some 100 KiB would end the stack.
TEST(BackendFile, AKeyHasAtMost32Parts) {
  const auto parts = [](int count, const std::string& part) {
    std::string key = part;
    for (int i = 1; i < count; ++i) key += " . " + part;
    return key;
  };
  const auto refused = [](const std::string& text) {
    return testing::refusal([&] { parse_backend_file("\n" + text, "b.toml"); });
  };
  const std::string deep = "b.toml:2: a key has more than 32 parts; a.b.c has 3",
                    unknown = "b.toml:2: no key 'a' is known";
  EXPECT_EQ(refused(parts(1000000, "a") + " = 1"), deep);
  EXPECT_EQ(refused("[" + parts(1000000, "a") + "]"), deep);
  EXPECT_EQ(refused("x = {" + parts(33, "'a'") + " = 1}"), deep);
  EXPECT_EQ(refused("x = [{y = 1}, {" + parts(33, "\"a\"") + " = 1}]"), deep);
  EXPECT_EQ(refused(R"(x = ["""y"""", {)" + parts(33, "a") + " = 1}]"), deep);
  EXPECT_EQ(refused("x = ['''y''''', {" + parts(33, "a") + " = 1}]"), deep);
  testing::expect_line(refused(parts(32, "a") + " = 1"), unknown);
  // Dots elsewhere are no parts.
  const std::string dots(100, '.');
  testing::expect_line(refused("a = ['" + dots + "', \"\\\"" + dots + "\"] # " + dots + "\n#" + dots), unknown);
  testing::expect_line(refused("a = '''\n'" + dots + "'''\nb = \"\"\"\"" + dots + "\n" + dots + "\"\"\""), unknown);
  testing::expect_line(refused(R"(a = ["""say "hi"""", ")" + dots + "\"]"), unknown);
  testing::expect_line(refused("a = ['''''''', '" + dots + "']"), unknown);
}

/// toml++ has no defined behaviour where it looks for white space and finds U+00A1 to U+0499, or U+FB16 to U+FEFE: the
/// sanitizers and the fuzzer see that, a plain build only its answer.
TEST(BackendFile, OtherCharactersThanAscii) {
  const auto refused = [](const std::string& text) {
    return testing::refusal([&] { parse_backend_file(text, "b.toml"); });
  };
  for (const std::string letter : {"é", "ҙ", "ﷲ"}) {
    for (const std::string& text :
         {letter, letter + " = 1", "a = " + letter, "a = 'b' " + letter, "a = 1" + letter, "a = [2\"" + letter + "\"]",
          "a = \"\\" + letter + "\"", "a = \"\"\"\\" + letter + "\"\"\""})
      testing::expect_line(refused(text), "b.toml:1: not TOML: ");
    const auto argv = [&](const std::string& words) {
      return parse_backend_file("schema = 'plumbline-backend/1'\nargv = [" + words + "] # " + letter, "b.toml").argv;
    };
    EXPECT_EQ(argv("'" + letter + "', \"" + letter + "\\\\\""), (Words{letter, letter + "\\"}));
    EXPECT_EQ(argv("'''" + letter + "\\\n" + letter + "'''"), (Words{letter + "\\\n" + letter}));
    EXPECT_EQ(argv("\"\"\"a \\\n  \n " + letter + "\"\"\""), (Words{"a " + letter}));
    testing::expect_line(refused("'" + letter + "' = 1"), "b.toml:1: no key '" + letter + "' is known");
  }
}

TEST(BackendCommand, IsSplitAsAShellDoes) {
  EXPECT_EQ(read_backend("python3 -u 'my adapter.py' \"a \\\" b\" c\\ d ''").argv,
            (Words{"python3", "-u", "my adapter.py", "a \" b", "c d", ""}));
  EXPECT_EQ(read_backend("/usr/bin/python3 x.toml").argv, (Words{"/usr/bin/python3", "x.toml"}));
  EXPECT_EQ(read_backend("/usr/bin/python3 x").name, "python3");
  EXPECT_TRUE(read_backend("x").folder.empty());
  EXPECT_EQ(testing::refusal([] { read_backend("host {jobs}"); }),
            "--backend: '{jobs}' is unknown; expected one of {verb}, {job}, {out}, {np}");
  EXPECT_THROW(read_backend(""), InputError);
  EXPECT_THROW(read_backend("  "), InputError);
  EXPECT_THROW(read_backend("a 'b"), InputError);
  EXPECT_THROW(read_backend("nowhere.toml"), InputError);
}

TEST(BackendCommand, TheRuntimeHasDeadlinesForATimeoutOfAnyLength) {
  EXPECT_EQ(runtime_backend("plumbline", 5).silence, 70s);
  EXPECT_EQ(runtime_backend("plumbline", 1e300).silence, 1'000'000'000s);
}

TEST(BackendCommand, AFileIsRead) {
  const TemporaryFolder folder;
  const std::string file = (folder / "my backend.toml").string();
  std::ofstream(file) << "schema = \"plumbline-backend/1\"\nargv = [\"a\"]\n";
  EXPECT_EQ(read_backend(file).argv, Words{"a"});
}

}  // namespace
}  // namespace plumbline::conformance
