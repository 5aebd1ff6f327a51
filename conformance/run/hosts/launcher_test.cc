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
  const Words shell = {"bash", "-c", "mpirun -n 9 build/plumbline"};
  EXPECT_EQ(launcher_among({shell, mpirun, {"srun", "-n", "1", "build/plumbline"}}, "build/plumbline", 3),
            (Words{"/usr/bin/mpirun", "--hostfile", "hosts", "-n", "3"}));
  EXPECT_EQ(launcher_among({{}, shell, {"orted", "--daemonize"}}, "build/plumbline", 3), (Words{"mpirun", "-n", "3"}));
  EXPECT_EQ(launcher_among({mpirun}, "plumbline", 2), (Words{"mpirun", "-n", "2"})) << "it started another program";
}

}  // namespace
}  // namespace plumbline::conformance
