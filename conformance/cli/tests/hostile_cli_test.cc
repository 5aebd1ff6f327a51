// Backends that do what no backend should, from the command line: nothing hangs, nothing is lost, nothing is believed.
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/cli/testing/backend_fixture.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::cli {
namespace {

using Hostile = ExampleInC;

/// A file that is put into the place of the result $f, and what is said of it.
struct Replacement {
  const char* command;
  const char* said;
};
const std::vector<Replacement> kReplacements = {
    {"rm $f; mkfifo $f", "rank0.safetensors: it is a FIFO; expected a regular file"},
    {"rm $f; mkdir $f", "rank0.safetensors: it is a folder; expected a regular file"},
    {"rm $f; ln -s /dev/zero $f", "rank0.safetensors: it is a symbolic link; expected a regular file"},
    {"rm $f; ln -s rank0.safetensors $f", "rank0.safetensors: it is a symbolic link; expected a regular file"},
    {"mv $f elsewhere; ln -s $PWD/elsewhere $f", "rank0.safetensors: it is a symbolic link; expected a regular file"},
    {"d=$(dirname $f); mv $d elsewhere; ln -s $PWD/elsewhere $d",
     "gpipe/exact-mlp-sum: it is a symbolic link; expected a folder"},
    {"rm $f; python3 -c 'import socket, os; d, n = os.path.split(\"'$f'\"); os.chdir(d); "
     "socket.socket(socket.AF_UNIX).bind(n)'",
     "rank0.safetensors: it is a socket; expected a regular file"},
    {"truncate -s 40G $f", "rank0.safetensors: 42949672960 bytes; expected at most 268435456"},
};

TEST_F(Hostile, WhatStandsInThePlaceOfAResultCostsItsCaseAlone) {
  for (const auto& [command, said] : some_of(kReplacements)) {
    fs::remove_all(folder_ / "elsewhere");
    const conformance::ProcessResult result = run(tampered(command), "exact-mlp-[ms]*");
    EXPECT_EQ(exit_code(result), 1) << command << "\n" << result.output;
    auto all = verdicts();
    EXPECT_EQ(all["exact-mlp-sum gpipe"].at("status"), "error") << command << "\n" << result.output;
    EXPECT_NE(all["exact-mlp-sum gpipe"].at("reason").get<std::string>().find(said), std::string::npos)
        << command << "\n"
        << result.output;
    EXPECT_EQ(all["exact-mlp-mean gpipe"].at("status"), "pass") << command << "\n" << result.output;
  }
}

TEST_F(Hostile, WhatStandsInThePlaceOfAResultLaterIsNotJudgedEither) {
  for (const auto& [command, said] : some_of(kReplacements, 1)) {
    fs::remove_all(folder_ / "elsewhere");
    ASSERT_EQ(exit_code(run(host_, "exact-mlp-[ms]*")), 0);
    conformance::ProcessOptions shell;
    shell.argv = {"sh", "-c", std::string("f=$1; ") + command, "sh",
                  (folder_ / "r/results/own-2/gpipe/exact-mlp-sum/rank0.safetensors").string()};
    shell.directory = folder_.path().string();
    ASSERT_EQ(exit_code(conformance::run_process(shell)), 0) << command;
    const conformance::ProcessResult result = start({"check", report("r")});
    EXPECT_EQ(exit_code(result), 2) << command << "\n" << result.output;
    EXPECT_EQ(times(result.output, said), 1u) << command << "\n" << result.output;
  }
}

TEST_F(Hostile, DoctorNamesWhatStandsInThePlaceOfAResult) {
  for (const auto& [command, said] : some_of(kReplacements, 2)) {
    fs::remove_all(folder_ / "elsewhere");
    const conformance::ProcessResult result = start({"doctor", "--backend", tampered(command)});
    EXPECT_EQ(exit_code(result), 1) << command << "\n" << result.output;
    EXPECT_EQ(times(result.output, "failed     result files: "), 1u) << command << "\n" << result.output;
    EXPECT_EQ(times(result.output, said), 1u) << command << "\n" << result.output;
  }
}

TEST_F(Hostile, DoctorJudgesByTheRulesOfARun) {
  const std::string backend =
      tampered("printf '\\010\\000\\000\\000\\000\\000\\000\\000{}      ' > ${f%0.safetensors}1.safetensors");
  const std::string said = "the file of rank 1 has no tensors";
  const conformance::ProcessResult examined = start({"doctor", "--backend", backend});
  EXPECT_EQ(exit_code(examined), 1) << examined.output;
  EXPECT_EQ(times(examined.output, "failed     first comparison: FAIL exact-mlp-sum x gpipe"), 1u) << examined.output;
  EXPECT_TRUE(has(examined, said)) << examined.output;
  const conformance::ProcessResult result = run(backend, "exact-mlp-sum");
  EXPECT_EQ(exit_code(result), 1) << result.output;
  EXPECT_TRUE(has(result, said)) << result.output;
}

TEST_F(Hostile, AResultThatChangesAfterItsCaseWasDoneIsNotBelieved) {
  // The change comes when the first case is judged for certain: its verdict is there.
  const std::string wait = "until grep -q exact-mlp-sum $5/../../results.jsonl; do sleep 0.05; done; ";
  for (const auto& [change, said] : std::vector<std::pair<std::string, std::string>>{
           {"printf 1234 | dd of=$f bs=1 seek=$(($(stat -c %s $f) - 4)) conv=notrunc 2> /dev/null",
            "rank0.safetensors: changed after its case was done"},
           {"cp $f t; printf x >> t; mv t $f", "rank0.safetensors: changed after its case was done"},
           {"rm $f", "rank0.safetensors: removed after its case was done"},
           {"cp $f t; rm ${f%0.*}1.safetensors; mv t ${f%0.*}1.safetensors",
            "rank1.safetensors: changed after its case was done"}}) {
    const std::string body = "if [ $1 != run ]; then exec '" + host_ +
                             "' \"$@\"; fi\nf=$5/gpipe/exact-mlp-sum/rank0.safetensors\n'" + host_ +
                             "' \"$@\" | while read line; do\n  echo \"$line\"\n  if [ \"$line\" = '@plumbline case 1 "
                             "begins' ]; then " +
                             wait + change + "; fi\ndone";
    const conformance::ProcessResult result = run(scripted(body), "exact-mlp-sum,exact-mlp-mean");
    EXPECT_EQ(exit_code(result), 1) << change << "\n" << result.output;
    auto all = verdicts();
    EXPECT_EQ(all["exact-mlp-sum gpipe"].at("status"), "error") << change << "\n" << result.output;
    EXPECT_EQ(times(result.output, said), 1u) << change << "\n" << result.output;
    EXPECT_EQ(all["exact-mlp-mean gpipe"].at("status"), "pass") << change << "\n" << result.output;
    EXPECT_EQ(exit_code(start({"check", report("r")})), 1) << "as recorded";
    fs::remove(folder_ / "r/report.json");  // as after an interruption: the later verdict of a case counts
    const conformance::ProcessResult checked = start({"check", report("r")});
    EXPECT_EQ(exit_code(checked), 1) << change << "\n" << checked.output;
    EXPECT_TRUE(has(checked, said)) << checked.output;
  }
}

TEST_F(Hostile, ALaterJobMayNotChangeTheResultsOfAnEarlierOne) {
  const std::string backend = scripted(
      "if [ $1 = run ]; then d=$5/../own-2/gpipe/exact-mlp-sum; test ! -e $d || test "
      "${5%own-2} != $5 || printf x >> $d/rank1.safetensors; fi; exec '" +
      host_ + "' \"$@\"");
  const conformance::ProcessResult result = start({"run", "--backend", backend, "--case", "exact-mlp-sum", "--schedule",
                                                   "gpipe", "--ranks", "2,4", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  EXPECT_EQ(times(result.output, "rank1.safetensors: changed after its case was done"), 1u) << result.output;
  EXPECT_TRUE(has(result, "pass 1 ")) << result.output;
}

TEST_F(Hostile, AStrayFileBesideTheResultsIsAnErrorOfItsCase) {
  for (const std::string name : {"rank-1", "rank99999999999999999999"}) {
    const std::string said = "exact-mlp-sum/" + name + ".safetensors: no such rank; the job has 2 ranks: 0 to 1";
    const conformance::ProcessResult result =
        run(tampered("cp $f $(dirname $f)/" + name + ".safetensors"), "exact-mlp-[ms]*");
    EXPECT_EQ(exit_code(result), 1) << result.output;
    EXPECT_TRUE(has(result, said)) << result.output;
    EXPECT_EQ(verdicts()["exact-mlp-mean gpipe"].at("status"), "pass") << result.output;
    const conformance::ProcessResult checked = start({"check", report("r")});
    EXPECT_EQ(times(checked.output, said), 1u) << checked.output;
    EXPECT_FALSE(has(checked, "no run of run.json leaves such a file")) << checked.output;
  }
}

TEST_F(Hostile, DoctorLeavesNothingWhenASignalEndsIt) {
  const std::string backend = scripted("touch begun; exec sleep 1000");
  const conformance::ProcessResult result =
      start({"doctor", "--backend", backend},
            {"sh", "-c",
             "mkdir t; TMPDIR=$PWD/t \"$@\" & p=$!; until test -e begun; do sleep 0.02; done; ls t | wc -l; "
             "kill -TERM $p; wait $p; echo \"code $?\"; ls t",
             "sh"});
  EXPECT_TRUE(has(result, "\n1\n")) << "a folder: " << result.output;
  EXPECT_TRUE(result.output.ends_with("code 143\n")) << result.output;
}

TEST_F(Cli, ASignalLeavesNoFilesOfMpirun) {
  if (!with_open_mpi()) GTEST_SKIP() << "another MPI has other files";
  const conformance::ProcessResult result =
      start({"run", "--transport", "mpi", "--ranks", "2", "--case", "exact-*", "--report", report("r")},
            {"sh", "-c",
             "mkdir t; export TMPDIR=$PWD/t OMPI_MCA_btl_vader_backing_directory=$PWD/t; \"$@\" > log 2>&1 & p=$!; "
             "until ls t | grep -q vader_segment; do sleep 0.02; done; kill -TERM $p; wait $p; echo \"code $?\"; ls t",
             "sh"});
  EXPECT_TRUE(result.output.ends_with("code 143\n")) << result.output;
}

TEST_F(Hostile, AResultThatIsWrittenAgainAsItWasPasses) {
  const std::string body = "if [ $1 != run ]; then exec '" + host_ +
                           "' \"$@\"; fi\nf=$5/gpipe/exact-mlp-sum/rank0.safetensors\n'" + host_ +
                           "' \"$@\"\ncp $f t; mv t $f";
  const conformance::ProcessResult result = run(scripted(body), "exact-mlp-sum");
  EXPECT_EQ(exit_code(result), 0) << result.output;
}

TEST_F(Hostile, TwoProcessesThatActAsRankZeroAreTold) {
  const std::string twice =
      "argv = [\"" + host_ + "\"]\nlauncher = [\"sh\", \"-c\", \"\\\"$@\\\" & \\\"$@\\\"; wait\", \"sh\"]\n";
  const std::string file = (folder_ / "twice.toml").string();
  std::ofstream(file) << "schema = \"plumbline-backend/1\"\n" << twice;
  const std::string said = "a second time; only one process may print events: do two act as rank 0?";
  const conformance::ProcessResult examined = start({"doctor", "--backend", file});
  EXPECT_EQ(exit_code(examined), 1) << examined.output;
  EXPECT_EQ(times(examined.output, "failed     run: `"), 1u) << examined.output;
  EXPECT_EQ(times(examined.output, said), 1u) << examined.output;
  const conformance::ProcessResult result = run(file, "exact-mlp-*");
  EXPECT_EQ(exit_code(result), 1) << result.output;
  EXPECT_EQ(times(result.output, "BROKEN "), 1u) << result.output;
  EXPECT_TRUE(has(result, said)) << result.output;
}

TEST_F(Hostile, EventsBehindALaunchersLabelsAreTold) {
  for (const std::string label : {"[rank0]: ", "[1,0]<stdout>:", "0: "}) {
    const std::string file = (folder_ / "labels.toml").string();
    std::ofstream(file)
        << "schema = \"plumbline-backend/1\"\nargv = [\"" << host_
        << "\"]\nlauncher = [\"sh\", \"-c\", \"for i in 1 2; do test $2 = -c && \\\"$@\\\"; done; test $2 = -c || "
           "\\\"$@\\\" | sed 's/^/" +
               label + "/'\", \"sh\"]\n";
    const std::string said = "\"" + label + "@plumbline case 0 begins\" on standard output is no event";
    const conformance::ProcessResult examined = start({"doctor", "--backend", file});
    EXPECT_EQ(exit_code(examined), 1) << examined.output;
    EXPECT_EQ(times(examined.output, said), 1u) << examined.output;
    const conformance::ProcessResult result = run(file, "exact-mlp-sum");
    EXPECT_EQ(exit_code(result), 1) << result.output;
    EXPECT_TRUE(has(result, said)) << result.output;
  }
}

/// Starts the program with `words`, kills it when the file `pids` is there, and waits until the processes named there
/// have ended: "gone", or "left" after a time that no working kernel needs.
std::string killed(const conformance::ProcessOptions& start, const std::string& words) {
  conformance::ProcessOptions options = start;
  options.argv = {
      "sh", "-c",
      "\"$PLUMBLINE_PROGRAM\" " + words +
          " > printed 2>&1 & p=$!\n"
          "for i in $(seq 600); do test -e pids && break; sleep 0.1; done\nkill -9 $p; wait $p 2> /dev/null\n"
          "for i in $(seq 150); do\n  left=; for q in $(cat pids); do\n"
          "    case $(sed 's/.*) //' /proc/$q/stat 2> /dev/null) in ''|Z*) ;; *) left=$q ;; esac\n  done\n"
          "  test -z \"$left\" && echo gone && exit; sleep 0.2\ndone; echo left"};
  return conformance::run_process(options).output;
}

TEST_F(Hostile, AKilledPlumblineLeavesNoBackend) {
  conformance::ProcessOptions options;
  options.directory = folder_.path().string();
  options.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  const std::string here = folder_.path().string();
  const std::string body = "if [ $1 != run ]; then exec '" + host_ +
                           "' \"$@\"; fi\ntrap '' TERM\nsleep 1000 & a=$!\nenv -i setsid sleep 1000 & b=$!\n"
                           "echo $$ $a $b >> " +
                           here + "/all\ntest $(wc -l < " + here + "/all) -lt ${RANKS:-1} || cp " + here + "/all " +
                           here + "/pids\nwait; wait";
  const std::string file = scripted(body);
  const std::string words = "run --backend " + file + " --case exact-mlp-sum --schedule gpipe --ranks 2 --report r";
  EXPECT_TRUE(killed(options, words).ends_with("gone\n"));
  if (!with_mpi()) return;
  fs::remove(folder_ / "pids");
  fs::remove(folder_ / "all");
  scripted(body, "launcher = [\"mpirun\", \"-n\", \"{np}\"]\n[environment]\nRANKS = \"2\"\n");
  EXPECT_TRUE(killed(options, words).ends_with("gone\n"));
}

TEST_F(Hostile, NothingIsLeftInTheTemporaryFolder) {
  const fs::path temporary = folder_ / "temporary";
  fs::create_directory(temporary);
  const std::string before = "TMPDIR=" + temporary.string();
  for (const char* what : {"rm $f; mkfifo $f", "kill -9 $$", "exit 3", "rm -rf $5"}) {
    start({"doctor", "--backend", tampered(what)}, {"env", before});
    start({"run", "--backend", tampered(what), "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks", "2",
           "--report", report("r")},
          {"env", before});
    EXPECT_TRUE(fs::is_empty(temporary)) << what;
  }
}

}  // namespace
}  // namespace plumbline::cli
