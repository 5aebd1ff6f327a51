// A backend of several processes under each launcher: mpirun, torchrun, and a stand-in for torchrun that needs no
// PyTorch. Each rank writes its file of the results that the example in C computes; rank 1 has one fault at a time.
#include <sys/types.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "conformance/cli/testing/cli_fixture.h"
#include "runtime/testing/processes.h"

namespace plumbline::cli {
namespace {

/// One rank. $host is the example in C, which computes all ranks of all cases; a fault redefines one of the functions.
constexpr const char* kRank = R"sh(here=$(cd "$(dirname "$0")" && pwd)
test $1 = run || exec "$host" "$@"
job=$3 out=$5
rank=${RANK:-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}} ranks=${WORLD_SIZE:-${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}}
private=$here/private.$PPID.$rank
say() { test $rank != 0 || echo "@plumbline case $*"; }
meet() { # waits for all ranks of a launch, which have one parent
  : > "$here/met.$PPID.$1.$rank"
  while [ $(ls "$here" | grep -c "^met\.$PPID\.$1\.") -lt $ranks ]; do sleep 0.02; done
}
work() { :; }                                                                       # results
publish() { cp "$private/$1$rank.safetensors" "$out/$1$rank.t" && mv "$out/$1$rank.t" "$out/$1$rank.safetensors"; } # results
. "$here/fault.sh"
echo $$ >> "$here/pids"
test $rank != 0 || echo $ranks >> "$here/launches"
"$host" run --job "$job" --out "$private" > "$private.log"
n=0
for results in $(sed -n 's/^ *"results": "\(.*\)",$/\1/p' "$job"); do
  say $n begins
  meet begin$n # so that no rank fails before the begin is reported
  work "$results"
  mkdir -p "$out/${results%/*}"
  publish "$results"
  meet end$n
  say $n done
  n=$((n + 1))
done
)sh";

/// Starts ranks as torchrun does, ends them all when one fails, and prints torchrun's last lines.
constexpr const char* kTorchrun = R"sh(#!/usr/bin/env bash
while :; do
  case $1 in
    --nproc-per-node) n=$2; shift 2 ;;
    --no-python | --standalone) shift ;;
    *) break ;;
  esac
done
for ((rank = 0; rank < n; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "$@" &
done
for ((rank = 0; rank < n; ++rank)); do
  wait -n || {
    code=$?
    kill $(jobs -p) 2> /dev/null
    wait
    printf 'torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n'
    printf 'Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : -%s\n' $((code - 128))
    exit 1
  } >&2
done
)sh";

struct Launched {
  const char* name;
  bool (*available)();
  std::vector<std::string> (*words)();
  const char* segfault;  ///< the reason given for a rank that a signal ended
};

std::string peer() {
  const char* path = std::getenv("PLUMBLINE_PEER");
  return path == nullptr ? "" : path;
}

bool has_peer() {
  conformance::ProcessOptions options;
  options.argv = {peer(), "2.15.0", "--check"};
  return !peer().empty() && conformance::run_process(options).succeeded();
}

class Launchers : public Cli, public ::testing::WithParamInterface<Launched> {
 protected:
  void SetUp() override {
    Cli::SetUp();
    const char* host = std::getenv("PLUMBLINE_C_HOST");
    ASSERT_NE(host, nullptr) << "set PLUMBLINE_C_HOST to the c_host executable";
    if (*host == 0) GTEST_SKIP() << "c_host is not built: no cJSON";
    if (!GetParam().available()) GTEST_SKIP() << GetParam().name << " is not set up";
    std::ofstream(folder_ / "rank.sh") << "host='" << host << "'\n" << kRank;
    fs::create_directory(folder_ / "bin");
    std::ofstream(folder_ / "bin" / "torchrun") << kTorchrun;
    fs::permissions(folder_ / "bin" / "torchrun", fs::perms::owner_all);
    path_ = std::getenv("PATH");
    setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    if (!path_.empty()) setenv("PATH", path_.c_str(), 1);
    Cli::TearDown();
  }

  /// Runs some cases on two ranks; `fault` strikes rank 1 in the first case, exact-mlp-sum.
  conformance::ProcessResult run(const std::string& fault) {
    for (const char* name : {"launches", "pids"}) fs::remove(folder_ / name);
    std::ofstream(folder_ / "fault.sh") << fault << "\n";
    std::ofstream file(folder_ / "backend.toml");
    file << "schema = \"plumbline-backend/1\"\nargv = [\"sh\", \"" << (folder_ / "rank.sh").string()
         << "\"]\nlauncher = [";
    for (const std::string& word : GetParam().words()) file << '"' << word << "\", ";
    file << "]\n[timeouts]\nstart = 120\ncase = 5\n";
    file.close();
    return start({"run", "--backend", "backend.toml", "--case", "exact-mlp-*", "--schedule", "gpipe", "--ranks", "2",
                  "--report", report("r")});
  }
  std::map<std::string, nlohmann::json> verdicts() const {
    std::map<std::string, nlohmann::json> all;
    const nlohmann::json json = nlohmann::json::parse(std::ifstream(folder_ / "r" / "report.json"));
    for (const auto& verdict : json.at("verdicts")) all[verdict.at("case").get<std::string>()] = verdict;
    return all;
  }
  int launches() const {
    int count = 0;
    std::ifstream lines(folder_ / "launches");
    for (int ranks = 0; lines >> ranks; ++count) EXPECT_EQ(ranks, 2);
    return count;
  }
  /// Expects that no rank and no child of one is alive.
  void expect_all_gone() const {
    std::ifstream pids(folder_ / "pids");
    for (pid_t pid = 0; pids >> pid;) {
      for (int tries = 0; tries < 500 && testing::is_alive(pid); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_FALSE(testing::is_alive(pid)) << "process " << pid;
    }
  }

  std::string path_;
};

TEST_P(Launchers, RunAForeignBackendsRanks) {
  const conformance::ProcessResult result = run("");
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(launches(), 1);
  for (const auto& [name, verdict] : verdicts())
    EXPECT_EQ(verdict.at("status"), name == "exact-mlp-bf16" ? "unsupported" : "pass") << verdict;
  EXPECT_EQ(exit_code(start({"check", report("r")})), 0);
}

TEST_P(Launchers, AFaultOfOneRankCostsItsCaseAlone) {
  struct Fault {
    const char* script;
    const char* status;
    const char* reason;
    int launches;
  };
  const std::string mine = "case $rank-$1 in 1-*/exact-mlp-sum/*) ";
  size_t number = std::string(GetParam().name) == "Mpirun" ? 0 : 1;  // of a sample every launcher has another half
  for (const Fault& fault : {
           Fault{"work() { @ echo 'plumbline: rank 1: out of memory' >&2; exit 3 ;; esac; }", "error",
                 "rank 1: out of memory", 2},
           Fault{"work() { @ kill -SEGV $$ ;; esac; }", "error", GetParam().segfault, 2},
           Fault{"work() { @ sleep 1000 ;; esac; }", "timeout", "no end of the case within 5 s", 2},
           Fault{"publish_all() { cp $private/$1$rank.safetensors $out/$1$rank.safetensors; }; publish() { @ ;; *) "
                 "publish_all $1 ;; esac; }",
                 "fail", "is missing", 1},
           Fault{
               "publish_all() { cp $private/$1$rank.safetensors $out/$1$rank.safetensors; }; publish() { @ head -c 200 "
               "$private/$1$rank.safetensors > $out/$1$rank.safetensors ;; *) publish_all $1 ;; esac; }",
               "error", "rank1.safetensors", 1},
       }) {
    if (!testing::in_sample(number++, 2)) continue;
    // MPICH's mpirun ends no rank for the exit code of another one that is not an MPI program.
    const bool ends_others = std::string(GetParam().name) != "Mpirun" || with_open_mpi();
    if (!ends_others && std::string(fault.reason) == "rank 1: out of memory") continue;
    std::string script = fault.script;
    script.replace(script.find('@'), 1, mine);
    const conformance::ProcessResult result = run(script);
    EXPECT_EQ(exit_code(result), 1) << script << "\n" << result.output;
    EXPECT_EQ(launches(), fault.launches) << script << "\n" << result.output;
    const auto all = verdicts();
    for (const auto& [name, verdict] : all)
      EXPECT_EQ(verdict.at("status"), name == "exact-mlp-bf16"  ? "unsupported"
                                      : name == "exact-mlp-sum" ? fault.status
                                                                : "pass")
          << script << "\n"
          << verdict;
    EXPECT_NE(all.at("exact-mlp-sum").at("sentence").get<std::string>().find(fault.reason), std::string::npos)
        << script << "\n"
        << all.at("exact-mlp-sum").at("sentence");
    expect_all_gone();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, Launchers,
    ::testing::Values(
        Launched{"Mpirun", with_mpi, [] { return std::vector<std::string>{"mpirun", "-n", "{np}"}; }, "signal 11"},
        Launched{"TorchrunStandIn", [] { return true; },
                 [] { return std::vector<std::string>{"torchrun", "--no-python", "--nproc-per-node", "{np}"}; },
                 "rank 1 failed first: exitcode -11"},
        Launched{"Torchrun", has_peer,
                 [] {
                   return std::vector<std::string>{
                       peer(),        "2.15.0",           "--",  "-m", "torch.distributed.run", "--standalone",
                       "--no-python", "--nproc-per-node", "{np}"};
                 },
                 "rank 1 failed first: exitcode -11"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace plumbline::cli
