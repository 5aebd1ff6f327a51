// Foreign backends from the command line: the example in C, and mistakes that others make.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "conformance/cli/testing/backend_fixture.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"

namespace plumbline::cli {
namespace {

TEST_F(ExampleInC, PassesTheExactChains) {
  const conformance::ProcessResult result = run(host_, "exact-*", "1f1b,interleaved-1f1b,zb-v");
  EXPECT_EQ(exit_code(result), 0) << result.output;
  std::map<std::string, nlohmann::json> all = verdicts();
  for (const char* run :
       {"exact-mlp-sum 1f1b", "exact-mlp-sum interleaved-1f1b", "exact-mlp-sum zb-v", "exact-mlp-mean zb-v",
        "exact-few-microbatches 1f1b", "exact-one-microbatch 1f1b", "exact-accumulate 1f1b", "exact-undivided 1f1b"}) {
    EXPECT_EQ(all[run].at("status"), "pass") << all[run];
    EXPECT_EQ(all[run].at("checked"), (nlohmann::json{"backward", "forward", "grad", "loss", "output", "partial"}));
  }
  const nlohmann::json& bf16 = all["exact-mlp-bf16 1f1b"];
  EXPECT_EQ(bf16.at("status"), "unsupported");
  EXPECT_EQ(bf16.at("reason"), "another element type than F32");
}

// Rounding flips the signs of a whole-number model at its kinks: bounds would be as wide as the gradients.
TEST_F(ExampleInC, AnExactCaseThatIsExactNoMoreIsNotJudgedByBounds) {
  const conformance::ProcessResult result = start({"run", "--backend", host_, "--case", "exact-mlp-mean", "--schedule",
                                                   "1f1b", "--microbatches", "3", "--report", report("r")});
  const nlohmann::json verdict = verdicts().at("exact-mlp-mean 1f1b");
  EXPECT_EQ(verdict.at("status"), "skipped") << result.output;
  EXPECT_EQ(verdict.at("reason"),
            "judged as same-order: dividing by 3 micro-batches is not exact, and then as bounded: the backend does not "
            "compute with LibTorch, and whole numbers may lie at the kink of a function, where rounding changes a "
            "gradient by its whole size");
}

TEST_F(BackendCli, TheReasonOfADemotionStandsBesideThatOfItsOracle) {
  const conformance::ProcessResult result = start({"run", "--case", "exact-tied", "--schedule", "gpipe", "--ranks", "2",
                                                   "--microbatches", "3", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_EQ(verdicts().at("exact-tied gpipe").at("reason"),
            "compared with the detached stages only: whole numbers may lie at the kink of a function, where rounding "
            "changes a gradient by its whole size; judged as same-order: dividing by 3 micro-batches is not exact");
}

TEST_F(ExampleInC, AResumedRunJudgesNoFilesOfTheInterruptedOne) {
  const std::vector<std::string> words = {
      "run",     "--backend", host_,      "--case",   "exact-mlp-sum,exact-mlp-mean", "--schedule", "gpipe",
      "--ranks", "2",         "--report", report("r")};
  ASSERT_EQ(exit_code(start(words)), 0);
  const fs::path log = folder_ / "r" / "results.jsonl", results = folder_ / "r/results/own-2/gpipe";
  const std::string lines = read_file(log), first = lines.substr(0, lines.find('\n') + 1);
  write_file(log, first);
  const bool sum_is_judged = nlohmann::json::parse(first).at("case") == "exact-mlp-sum";
  const std::string judged = sum_is_judged ? "exact-mlp-sum" : "exact-mlp-mean",
                    interrupted = sum_is_judged ? "exact-mlp-mean" : "exact-mlp-sum";
  write_file(results / interrupted / "rank2.safetensors", "of a rank that is there no more");
  const auto written = fs::last_write_time(results / judged / "rank0.safetensors");
  std::vector<std::string> resuming = words;
  resuming.emplace_back("--resume");
  const conformance::ProcessResult result = start(resuming);
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_TRUE(has(result, "resumed: 1 of 2")) << result.output;
  EXPECT_FALSE(fs::exists(results / interrupted / "rank2.safetensors"));
  EXPECT_TRUE(fs::exists(results / interrupted / "rank0.safetensors"));
  EXPECT_EQ(fs::last_write_time(results / judged / "rank0.safetensors"), written);
}

TEST_F(ExampleInC, AResumedRunMayNotChangeWhatWasJudgedBefore) {
  // The second case to run damages the results of the first one.
  const std::string file = scripted(
      "if [ $1 = run ] && test -e damage; then for f in $5/gpipe/*/rank0.safetensors; do printf 1234 | dd of=$f bs=1 "
      "seek=$(($(stat -c %s $f) - 4)) conv=notrunc 2> /dev/null; done; fi; exec '" +
      host_ + "' \"$@\"");
  ASSERT_EQ(exit_code(run(file, "exact-mlp-[ms]*")), 0);
  const fs::path log = folder_ / "r" / "results.jsonl";
  const std::string lines = read_file(log), first = lines.substr(0, lines.find('\n') + 1);
  write_file(log, first);
  write_file(folder_ / "damage", "");
  const conformance::ProcessResult result = start({"run", "--backend", file, "--case", "exact-mlp-[ms]*", "--schedule",
                                                   "gpipe", "--ranks", "2", "--report", report("r"), "--resume"});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  for (const auto& [name, verdict] : verdicts()) {
    if (verdict.at("case") != nlohmann::json::parse(first).at("case")) {
      EXPECT_EQ(verdict.at("status"), "pass") << name;
      continue;
    }
    EXPECT_EQ(verdict.at("status"), "error") << name;
    EXPECT_NE(verdict.at("reason").get<std::string>().find("changed after its case was done"), std::string::npos);
  }
}

TEST_F(ExampleInC, RefusesFilesThatAreNotAsTheContractHasThem) {
  ASSERT_EQ(
      exit_code(start({"export", "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks", "2", "-o", "cases"})), 0);
  const std::string folder = "cases/exact-mlp-sum/gpipe-2/";
  write_file(
      folder_ / "job.json",
      R"({"format": "plumbline-job/1", "ranks": 2, "seed": 1, "timeout_seconds": 60.0, "cases": [{"id": "exact-mlp-sum",
                 "schedule": "gpipe", "folder": ")" +
          folder + R"(", "results": "gpipe/exact-mlp-sum/rank"}]})");
  conformance::ProcessOptions options;
  options.argv = {host_, "run", "--job", "job.json", "--out", "out"};
  options.directory = folder_.path().string();
  const conformance::ProcessResult good = conformance::run_process(options);
  ASSERT_EQ(exit_code(good), 0) << good.output;
  // The first occurrence of `from` is replaced by `to`; an empty `from` cuts the file in half.
  for (const auto& [file, from, to, expected] :
       std::vector<std::tuple<std::string, std::string, std::string, std::string>>{
           {"case.json", "", "", "case.json: cannot be read, or is not JSON"},
           {"case.json", "\"stages\": 2", "\"stages\": 3", "program.json: not as many stages as in case.json"},
           {"case.json", "\"microbatches\": 4", "\"microbatches\": -4",
            "case.json: microbatches: expected a whole number"},
           {"case.json", "\"program\":0", "\"program\":9",
            "case.json: a micro-batch's program: expected a whole number"},
           {"program.json", "", "", "program.json: cannot be read, or is not JSON"},
           {"program.json", "{\"dtype\":\"F32\",\"shape\":[2,", "{\"dtype\":\"F32\",\"shape\":[2,1",
            "program.json: aten::linear of shapes that do not fit"},
           {"program.json", "\"value\":0", "\"value\":4000000000", "program.json: a value: expected a whole number"},
           {"schedule.csv", "0F0", "7F0", "schedule.csv: 7F0 is not an action of this case"},
           {"schedule.csv", "0F1", "0F0", "schedule.csv: 0F0, or a part of it, occurs twice"},
           {"tensors.safetensors", "", "", "lies beyond the end of the file"},
           {"tensors.safetensors", "[8,8]", "[4,8]", "has another size than its shape"},
           {"tensors.safetensors", "step/0/input/x", "step/0/input/y", "has no step/0/input/x of F32"},
           {"tensors.safetensors", std::string("\0\0\0\0\0", 5), std::string("\0\0\1\0\0", 5), "a header of 4294"},
       }) {
    const fs::path path = folder_ / (folder + file);
    const std::string before = read_file(path);
    std::string text = before;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << file << " has no " << from;
    write_file(path, from.empty() ? text.substr(0, text.size() / 2) : text.replace(at, from.size(), to));
    const conformance::ProcessResult result = conformance::run_process(options);
    write_file(path, before);
    EXPECT_EQ(exit_code(result), 2) << result.output;
    EXPECT_NE(result.output.find(expected), std::string::npos) << result.output;
    EXPECT_EQ(times(result.output, "\n"), 2u) << "the case begins, and one line: " << result.output;
  }
}

TEST_F(BackendCli, OurRuntimeAsACommandPasses) {
  const conformance::ProcessResult result =
      run(std::string("'") + std::getenv("PLUMBLINE_PROGRAM") + "' backend", "exact-mlp-mean", "1f1b");
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_NE(result.output.find("+ pass 1\n"), std::string::npos) << result.output;
}

TEST_F(ExampleInC, WrongResultsCostTheirCaseAlone) {
  struct Wrong {
    const char* name;
    const char* tamper;
    const char* status;
    const char* message;
  };
  for (const Wrong& wrong : {
           Wrong{"truncated", "head -c 300 $f > t && mv t $f", "error", "rank0.safetensors"},
           Wrong{"empty", ": > $f", "error", "rank0.safetensors"},
           Wrong{"wrong key", "LC_ALL=C sed -i s,0/partial/0/0/,0/partly//0/0/, $f", "error", "0/partly//0/0/"},
           Wrong{"extra tensor", "LC_ALL=C sed -i s,0/grad/-/-/,0/loss/-/9/, $f", "fail", "was not expected"},
           Wrong{"a rank that there is not", "cp $f ${f%0.*}2.safetensors", "error",
                 "rank2.safetensors: no such rank; the job has 2 ranks: 0 to 1"},
           Wrong{"a rank's file is missing", "rm $f", "fail", "missing"},
           Wrong{"other values", "printf 1234 | dd of=$f bs=1 seek=$(($(stat -c %s $f) - 4)) conv=notrunc 2> /dev/null",
                 "fail", "expected"},
           Wrong{"no file", "rm $f ${f%0.*}1.safetensors", "error", "said to be done, but there is no file"},
       }) {
    const conformance::ProcessResult result = run(tampered(wrong.tamper), "exact-mlp-[ms]*");
    EXPECT_EQ(exit_code(result), 1) << wrong.name << "\n" << result.output;
    std::map<std::string, nlohmann::json> all = verdicts();
    EXPECT_EQ(all["exact-mlp-sum gpipe"].at("status"), wrong.status) << wrong.name << "\n" << result.output;
    EXPECT_NE(result.output.find(wrong.message), std::string::npos) << wrong.name << "\n" << result.output;
    EXPECT_EQ(all["exact-mlp-mean gpipe"].at("status"), "pass") << wrong.name << "\n" << result.output;
  }
}

TEST_F(ExampleInC, ABackendThatCannotBeTalkedToIsToldOnceAndNotJudged) {
  const std::string good = "exec '" + host_ + "' \"$@\"";
  for (const auto& [body, expected] : std::vector<std::pair<std::string, std::string>>{
           {"echo hello", "backend: describe: \"hello\" on standard output is not JSON"},
           {"echo loading; " + good, "backend: describe: \"loading\" on standard output before the JSON"},
           {"test $1 != plan || echo done; " + good, "backend: plan: \"done\" on standard output before the JSON"},
           {"echo 'no licence' >&2; exit 4", "describe: no licence (exited with code 4)"},
           {"test $1 != plan || exit 7; " + good, "plan: exited with code 7"},
           {"test $1 != run || { echo 'ImportError: no torch' >&2; exit 1; }; " + good,
            "run: ImportError: no torch (exited with code 1)"}}) {
    const conformance::ProcessResult result = run(scripted(body, "name = \"backend\"\n"), "exact-mlp-[ms]*");
    EXPECT_EQ(exit_code(result), 3) << body << "\n" << result.output;
    EXPECT_EQ(times(result.output, expected), 1u) << body << "\n" << result.output;
  }
}

TEST_F(ExampleInC, ACrashIsRepeatableAndItsWordsAreKept) {
  const std::string file = scripted(
      "test $1 != run || { echo '@plumbline case 0 begins'; echo 'Traceback:' >&2; echo 'ValueError: no' >&2; "
      "exit 1; }; exec '" +
      host_ + "' \"$@\"");
  const conformance::ProcessResult result = run(file, "exact-mlp-sum");
  EXPECT_EQ(exit_code(result), 1) << result.output;
  const std::string log = "results/own-2/logs/gpipe/exact-mlp-sum/backend.log";
  EXPECT_NE(result.output.find("ValueError: no (exited with code 1) (see " + report("r") + "/" + log + ")\n"),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("/plumbline run --case exact-mlp-sum --schedule gpipe --backend " + file +
                               " --ranks 2 --seed 1 --report " + report("r") + "-repeat\n"),
            std::string::npos)
      << result.output;
  EXPECT_EQ(read_file(folder_ / "r" / log), "Traceback:\nValueError: no\n");
  EXPECT_EQ(verdicts().at("exact-mlp-sum gpipe").at("log"), log);
  EXPECT_NE(read_file(folder_ / "r/matrix.html").find("<a href=\"" + log + "\">"), std::string::npos);
  EXPECT_EQ(exit_code(start({"report", "r", "-o", "page.html"})), 0);
  EXPECT_NE(read_file(folder_ / "page.html").find("<a href=\"r/" + log + "\">"), std::string::npos);
}

TEST_F(ExampleInC, WhatIsToldOutsideOfTheCasesIsKeptAsWell) {
  const std::string file = scripted("test $1 != run || { echo 'no device' >&2; exit 1; }; exec '" + host_ + "' \"$@\"");
  const conformance::ProcessResult result = run(file, "exact-mlp-sum");
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_NE(result.output.find("no device (exited with code 1) (see " + report("r") + "/results/own-2/backend.log)\n"),
            std::string::npos)
      << result.output;
  EXPECT_EQ(read_file(folder_ / "r/results/own-2/backend.log"), "no device\n");
}

TEST_F(ExampleInC, FilesOfPassingRunsNeedNotStay) {
  const conformance::ProcessResult result =
      start({"run", "--backend", tampered("rm $f"), "--case", "exact-mlp-[ms]*", "--schedule", "gpipe", "--ranks", "2",
             "--keep", "failures", "--report", report("r")});
  EXPECT_EQ(exit_code(result), 1) << result.output;
  const fs::path out = folder_ / "r/results/own-2";
  EXPECT_FALSE(fs::exists(out / "gpipe/exact-mlp-mean"));
  EXPECT_FALSE(fs::exists(out / "cases/gpipe/exact-mlp-mean"));
  EXPECT_TRUE(fs::exists(out / "gpipe/exact-mlp-sum/rank1.safetensors"));
  EXPECT_TRUE(fs::exists(out / "cases/gpipe/exact-mlp-sum/case.json"));
  const conformance::ProcessResult checked = start({"check", report("r")});
  EXPECT_EQ(exit_code(checked), 1) << checked.output;
  EXPECT_NE(checked.output.find("2 runs, 1 passes as recorded, 0 problems"), std::string::npos) << checked.output;
}

TEST_F(BackendCli, BadInputIsOneLineAndCodeTwo) {
  const std::string file = scripted("", "ranks = [1, 4]\n");
  std::ofstream(folder_ / "broken.toml") << "schema = \"plumbline-backend/1\"\nargv = [\"a\"]\nlaunch = 3\n";
  expect_refused({
      {{"run", "--backend", "broken.toml"}, "broken.toml:3: no key 'launch' is known; nearest: launcher, "},
      {{"run", "--backend", "nowhere.toml"}, "nowhere.toml"},
      {{"run", "--backend", ""}, "a FILE.toml or a command in quotes"},
      {{"run", "--backend", file, "--ranks", "2"}, "--ranks: 2 given; the backend's file says 1, 4"},
      {{"run", "--backend", file, "--mutant", "swap-microbatches"}, "--mutant is about our own runtime"},
      {{"run", "--backend", file, "--transport", "mpi"}, "--transport is about our own runtime"},
      {{"run", "--backend", file, "--program", "m.pt2"}, "--backend is about cases"},
  });
}

TEST_F(ExampleInC, DoctorGoesThroughEveryStep) {
  const conformance::ProcessResult good = start({"doctor", "--backend", host_});
  EXPECT_EQ(exit_code(good), 0) << good.output;
  EXPECT_EQ(times(good.output, "ok         "), 10u) << good.output;
  EXPECT_NE(good.output.find("first comparison: PASS exact-mlp-sum x gpipe"), std::string::npos) << good.output;

  const std::string rest = "; exec '" + host_ + "' \"$@\"";
  const auto of_schedules = [](const std::string& names) {
    return R"(test $1 != describe || { echo '{"protocol": 1, "name": "n", "version": "1", "schedules": [)" + names +
           R"(], "delivers": ["loss"], "level": "program"}'; exit; })";
  };
  for (const auto& [body, more, expected, not_tried] :
       std::vector<std::tuple<std::string, std::string, std::string, size_t>>{
           {"", "ranks = 3\n", "failed     file: ", 9},
           {"", "launcher = [\"no-such-launcher\"]\n", "failed     launcher: no program 'no-such-launcher' in PATH", 7},
           {"", "launcher = [\"sh\", \"-c\", \"echo rank\"]\n", "failed     launcher: ", 7},
           {"echo hello", "", "failed     describe: ", 6},
           {of_schedules("\"gpipe\", \"own\", \"mine.csv\", \"1fb1\""), "",
            "failed     schedules: no case comes under '1fb1', which describe names; near: 1f1b, ", 5},
           {of_schedules("\"gpipe\", \"own\", \"mine.csv\", \"1f1b\"") + "; exit 7", "",
            "ok         schedules: 4, each known", 4},
           {"test $1 != plan || exit 7" + rest, "", "failed     plan: sh: plan: exited with code 7", 4},
           {"test $1 != run || exit 0" + rest, "", "failed     run: it said nothing; rank 0 has to print", 3},
           {"test $1 != run || { cd \"$5\"; mkdir -p gpipe/exact-mlp-sum; : > gpipe/exact-mlp-sum/rank2.safetensors; "
            "echo '@plumbline case 0 begins'; echo '@plumbline case 0 done'; exit 0; }" +
                rest,
            "", "gpipe/exact-mlp-sum/rank2.safetensors: no such rank; the job has 2 ranks: 0 to 1", 2},
           {"test $1 != run || { echo '@plumbline case 0 done'; exit 0; }" + rest, "",
            "failed     result files: none below --out; for rank 0 there should be gpipe/exact-mlp-sum/rank0", 2}}) {
    const conformance::ProcessResult result = start({"doctor", "--backend", scripted(body, more)});
    EXPECT_EQ(exit_code(result), 1) << body << "\n" << result.output;
    EXPECT_NE(result.output.find(expected), std::string::npos) << expected << "\n" << result.output;
    EXPECT_EQ(times(result.output, "not tried  "), not_tried) << result.output;
  }
  const conformance::ProcessResult missing = start({"doctor", "--backend", "no-such-program"});
  EXPECT_EQ(exit_code(missing), 1);
  EXPECT_NE(missing.output.find("failed     program: no program 'no-such-program' in PATH"), std::string::npos);
}

// The example, which says that it has other schedules than it has.
TEST_F(ExampleInC, DoctorTakesAScheduleThatTheQuickCasesHave) {
  const auto with_schedules = [&](const std::string& names, const std::string& more = "") {
    return start({"doctor", "--backend",
                  scripted("if [ $1 = describe ]; then '" + host_ + "' \"$@\" | sed 's/\"any\"/[" + names +
                               "]/'; else exec '" + host_ + "' \"$@\"; fi",
                           more)});
  };
  const conformance::ProcessResult good = with_schedules(R"("own", "mine.csv", "forward-only", "1f1b", "zb-v")");
  EXPECT_EQ(exit_code(good), 0) << good.output;
  EXPECT_NE(good.output.find("first comparison: PASS exact-mlp-sum x 1f1b"), std::string::npos) << good.output;
  // Two replicas do not come on three ranks.
  EXPECT_EQ(exit_code(with_schedules("\"gpipe\"", "ranks = [3]\n")), 0);
  const conformance::ProcessResult none = with_schedules(R"("own", "mine.csv")");
  EXPECT_EQ(exit_code(none), 1) << none.output;
  EXPECT_NE(none.output.find("failed     plan: no quick case comes under own, mine.csv on 2 ranks; "),
            std::string::npos)
      << none.output;
}

TEST_F(BackendCli, DoctorLooksAtTheMachine) {
  const conformance::ProcessResult result = start({"doctor"});
  for (const char* step : {"  temporary folder: ", "  open files: ", "  mpirun: ", "  more ranks than cores: ",
                           "  LibTorch: ", "  CUDA: ", "  Python: "})
    EXPECT_EQ(times(result.output, step), 1u) << result.output;
  EXPECT_NE(result.output.find("ok         LibTorch: 2."), std::string::npos) << result.output;
  if (with_mpi()) {
    EXPECT_NE(result.output.find("ok         more ranks than cores"), std::string::npos) << result.output;
  }
}

}  // namespace
}  // namespace plumbline::cli
