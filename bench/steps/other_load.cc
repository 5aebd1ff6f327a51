#include "bench/steps/other_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <string>

namespace plumbline::bench {
namespace {

double seconds_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

OtherLoad::OtherLoad() : begin_(now()) {}

OtherLoad::Times OtherLoad::now() {
  std::ifstream file("/proc/stat");  // "cpu user nice system idle iowait irq softirq steal", in ticks
  std::string word;
  std::array<double, 8> ticks{};
  file >> word;
  for (double& count : ticks) file >> count;
  const double per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {.all = std::accumulate(ticks.begin(), ticks.end(), 0.0) / per_second,
          .idle = (ticks[3] + ticks[4]) / per_second,
          .own = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN)};
}

double OtherLoad::share() const {
  const Times end = now();
  const double all = end.all - begin_.all;
  if (!(all > 0)) return 0;
  return std::clamp((all - (end.idle - begin_.idle) - (end.own - begin_.own)) / all, 0.0, 1.0);
}

}  // namespace plumbline::bench
