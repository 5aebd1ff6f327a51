#include "conformance/run/hosts/launcher.h"

#include <gtest/gtest.h>

#include "runtime/error.h"

namespace plumbline::conformance {
namespace {

using Words = std::vector<std::string>;

TEST(Launcher, TheNumberOfRanksHasAPlace) {
  EXPECT_EQ(launcher_words(parse_launcher("mpirun --hostfile 'my hosts' -n {np}"), 4),
            (Words{"mpirun", "--hostfile", "my hosts", "-n", "4"}));
  EXPECT_EQ(launcher_words(parse_launcher("srun --ntasks={np} --nodes={np}"), 16),
            (Words{"srun", "--ntasks=16", "--nodes=16"}));
  for (const char* wrong : {"", "mpirun -n 4", "mpirun -n {np"}) {
    try {
      parse_launcher(wrong);
      ADD_FAILURE() << "accepted: " << wrong;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("--launcher: no {np}")) << error.what();
    }
  }
  EXPECT_THROW(parse_launcher("mpirun -n '{np}"), InputError);
}

TEST(Launcher, IsTheNearestAncestorThatStartsRanks) {
  const Words mpirun = {"/usr/bin/mpirun", "--hostfile", "hosts", "-n", "3", "build/plumbline", "run", "--seed", "2"};
  const Words shell = {"bash", "-c", "mpirun -n 9 build/plumbline"}, slurms = {"slurmstepd: [7.0]"};
  const Words srun = {"srun", "--mpi=pmix", "-n", "3"}, fallback = {"mpirun", "-n", "3"};
  const auto found = [&](const std::vector<Words>& ancestors, const std::string& program = "build/plumbline") {
    return launcher_among(ancestors, srun, program, 3);
  };
  EXPECT_EQ(found({shell, mpirun, {"srun", "-n", "1", "build/plumbline"}}),
            (Words{"/usr/bin/mpirun", "--hostfile", "hosts", "-n", "3"}));
  EXPECT_EQ(found({{}, shell, {"orted", "--daemonize"}}), fallback);
  EXPECT_EQ(found({mpirun}, "plumbline"), fallback) << "it started another program";
  EXPECT_EQ(found({shell, slurms}), srun);
  EXPECT_EQ(found({mpirun, slurms}), (Words{"/usr/bin/mpirun", "--hostfile", "hosts", "-n", "3"})) << "in a job";
  EXPECT_EQ(found({{"/usr/bin/orted", "--tree-spawn"}, slurms}), fallback) << "mpirun is on another host of the job";
}

}  // namespace
}  // namespace plumbline::conformance
