// `plumbline run --transport nccl` over the stub, and what it and `--device cuda` say where there is no library or
// device.
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/cli/testing/cli_fixture.h"
#include "runtime/testing/in_full.h"

namespace plumbline::cli {
namespace {

using Words = std::vector<std::string>;

class NcclCli : public Cli {
 protected:
  Words run(const std::string& name, const Words& more) const {
    Words words = {"run", "--case", "exact-mlp-mean,exact-stash", "--schedule", "1f1b,zb-v", "--report", report(name)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  std::string context(const std::string& name) const {
    return nlohmann::json::parse(std::ifstream(folder_ / name / "report.json")).at("context").dump();
  }

  std::string bytes(const std::string& file) const {
    std::ifstream in(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(NcclCli, EveryModeGivesTheBytesOfThreads) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  const conformance::ProcessResult threads = start(run("threads", {"--ranks", "2"}));
  ASSERT_EQ(exit_code(threads), 0) << threads.output;
  const std::string file = "1f1b/exact-mlp-mean/rank0.safetensors";
  const std::string expected = bytes("threads/results/threads-2/" + file);
  ASSERT_FALSE(expected.empty());
  for (const std::string modes : {"late,poison,shuffle", "rendezvous", "eager,poison,apart"}) {
    const conformance::ProcessResult result =
        start(run("r", {"--ranks", "2", "--transport", "nccl", "--nccl", "stub:headers," + modes}));
    ASSERT_EQ(exit_code(result), 0) << modes << "\n" << result.output;
    EXPECT_EQ(bytes("r/results/nccl-2/" + file), expected) << modes;
    EXPECT_NE(context("r").find("nccl (stub: " + modes + ")"), std::string::npos) << context("r");
    if (!testing::in_full()) return;
  }
}

TEST_F(NcclCli, RunsUnderMpirunAsWell) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  const conformance::ProcessResult result =
      start(run("r", {"--transport", "nccl", "--nccl", "stub:late"}), {"mpirun", "-n", "2"});
  EXPECT_EQ(exit_code(result), 0) << result.output;
  EXPECT_NE(context("r").find("nccl (stub: late)"), std::string::npos) << context("r");
}

TEST_F(NcclCli, WithoutALibraryItSaysSoAndCannotJudge) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  const conformance::ProcessResult result =
      start(run("r", {"--ranks", "2", "--transport", "nccl", "--nccl", "/nowhere/libnccl.so.2"}));
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_NE(result.output.find("/nowhere/libnccl.so.2"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("--nccl names its path, or `--nccl stub` takes the stub"), std::string::npos)
      << result.output;
}

TEST_F(NcclCli, RefusesOptionsThatDoNotFit) {
  expect_refused({{run("r", {"--nccl", "stub"}), "--nccl goes with --transport nccl"},
                  {run("r", {"--transport", "nccl", "--nccl", "stub:fast"}), "'fast' is unknown; expected rendezvous"},
                  {run("r", {"--transport", "nccl", "--nccl", "stub:eager,late"}), "eager sends do not wait"},
                  {{"doctor", "--nccl", "stub", "--backend", "b.toml"}, "excludes"}});
}

TEST_F(NcclCli, WithoutADeviceItSaysSoAndCannotJudge) {
  const Words hidden = {"env", "CUDA_VISIBLE_DEVICES=-1"};
  const conformance::ProcessResult result = start(run("r", {"--device", "cuda"}), hidden);
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_NE(result.output.find("--device cuda"), std::string::npos) << result.output;
  const conformance::ProcessResult doctor = start({"doctor"}, hidden);
  EXPECT_NE(doctor.output.find("CUDA: none: "), std::string::npos) << doctor.output;
}

TEST_F(NcclCli, DeviceCudaRefusesWhatItDoesNotHave) {
  const auto on_cuda = [&](const Words& more) {
    Words words = run("r", {"--device", "cuda"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_refused({{run("r", {"--device", "gpu"}), "--device"},
                  {on_cuda({"--backend", "b.toml"}), "goes with our own runtime only"},
                  {on_cuda({"--remat", "default"}), "--remat partitions stages for the CPU only"},
                  {on_cuda({"--wire", "poison"}), "--wire takes slow only"},
                  {on_cuda({"--wire", "slow", "--transport", "mpi"}), "--wire takes slow only"},
                  {on_cuda({"--transport", "nccl", "--nccl", "stub"}), "the stub of NCCL passes no memory of a device"},
                  {on_cuda({"--throughput"}), "--throughput measures on the CPU only"}});
}

/// Two libraries named libnccl.so.2, of which only the newer one, in the folder `torch`, has what LibTorch's part for
/// CUDA needs. That part is a stand-in, which LD_LIBRARY_PATH puts before the real one.
class TwoNccls : public NcclCli {
 protected:
  void SetUp() override {
    NcclCli::SetUp();
    std::string both;
    for (const char* name : {"ncclGetErrorString",
                             "ncclGetLastError",
                             "ncclGetUniqueId",
                             "ncclCommInitRankConfig",
                             "ncclCommGetAsyncError",
                             "ncclCommFinalize",
                             "ncclCommDestroy",
                             "ncclCommAbort",
                             "ncclSend",
                             "ncclRecv",
                             "cudaGetErrorString",
                             "cudaGetDeviceCount",
                             "cudaGetDevice",
                             "cudaSetDevice",
                             "cudaStreamCreateWithFlags",
                             "cudaStreamDestroy",
                             "cudaStreamWaitEvent",
                             "cudaEventCreateWithFlags",
                             "cudaEventDestroy",
                             "cudaEventRecord",
                             "cudaEventQuery",
                             "cudaHostAlloc",
                             "cudaFreeHost",
                             "cudaPointerGetAttributes",
                             "cudaMemcpyAsync",
                             "cudaLaunchHostFunc"})
      both += "int " + std::string(name) + "() { return 0; }\n";
    const auto of_version = [&](int version) {
      return both + "int ncclGetVersion(int* version) { *version = " + std::to_string(version) + "; return 0; }\n";
    };
    make("old/libnccl.so.2", of_version(22809), {"-Wl,-soname,libnccl.so.2"});
    make("torch/libnccl.so.2", of_version(22907) + "int ncclCommGrow() { return 0; }\n", {"-Wl,-soname,libnccl.so.2"});
    make("cuda/libtorch_cuda.so", "int ncclCommGrow();\nint (*needed)() = ncclCommGrow;\n",
         {(folder_ / "torch/libnccl.so.2").string(), "-Wl,-rpath," + (folder_ / "torch").string()});
  }

  /// With the stand-in, and what is in these folders before it.
  conformance::ProcessResult start_beside(const Words& words, const std::string& folders = "") const {
    return start(words, {"env", "CUDA_VISIBLE_DEVICES=-1", "LD_LIBRARY_PATH=" + folders + (folder_ / "cuda").string()});
  }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  void make(const std::string& name, const std::string& source, const Words& more) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / "source.c") << source;
    conformance::ProcessOptions compiler;
    compiler.argv = {"cc", "-shared", "-fPIC", "-o", file(name), file("source.c")};
    compiler.argv.insert(compiler.argv.end(), more.begin(), more.end());
    const conformance::ProcessResult result = conformance::run_process(compiler);
    ASSERT_TRUE(result.succeeded()) << result.output;
  }
};

TEST_F(TwoNccls, TheNamedOneDoesNotTakeThePlaceOfLibTorchs) {
  if (!with_mpi()) GTEST_SKIP() << "built without MPI";
  const conformance::ProcessResult result =
      start_beside(run("r", {"--device", "cuda", "--transport", "nccl", "--nccl", file("old/libnccl.so.2")}));
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_TRUE(has(result, "--device cuda: LibTorch finds no CUDA device")) << result.output;
}

TEST_F(TwoNccls, AnOlderOneInThePathIsNamed) {
  const conformance::ProcessResult result = start_beside(run("r", {"--device", "cuda"}), file("old") + ":");
  EXPECT_EQ(exit_code(result), 3) << result.output;
  EXPECT_TRUE(has(result, "undefined symbol: ncclCommGrow; --device cuda: this LibTorch needs a newer NCCL than"))
      << result.output;
}

TEST_F(TwoNccls, DoctorSaysThatABareNameIsLibTorchs) {
  const conformance::ProcessResult name = start_beside({"doctor", "--nccl", "libnccl.so.2"});
  EXPECT_TRUE(has(name, "ok         NCCL: nccl 2.29.7, " + file("torch/libnccl.so.2") +
                            ", which LibTorch brings along (without --device cuda: the one that the linker finds)"))
      << name.output;
  const conformance::ProcessResult path = start_beside({"doctor", "--nccl", file("old/libnccl.so.2")});
  EXPECT_TRUE(has(path, "ok         NCCL: nccl 2.28.9, " + file("old/libnccl.so.2") + "; CUDA runtime "))
      << path.output;
}

TEST_F(NcclCli, DoctorSaysWhichLibrary) {
  const conformance::ProcessResult stub = start({"doctor", "--nccl", "stub:late"});
  EXPECT_NE(stub.output.find("ok         NCCL: nccl (stub: late), "), std::string::npos) << stub.output;
  EXPECT_NE(stub.output.find("libplumbline_nccl_stub.so; a stub: it proves"), std::string::npos) << stub.output;
  const conformance::ProcessResult none = start({"doctor", "--nccl", "/nowhere/libnccl.so.2"});
  EXPECT_EQ(exit_code(none), 1) << none.output;
  EXPECT_NE(none.output.find("failed     NCCL: /nowhere/libnccl.so.2"), std::string::npos) << none.output;
}

}  // namespace
}  // namespace plumbline::cli
