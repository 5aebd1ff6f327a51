// Lets tests check whether a process has ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace plumbline::testing {

/// An ended process stays in the table (as a zombie) until its parent waits for it.
inline bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.substr(name_end + 2, 1) != "Z";
}

/// A killed process ends asynchronously, hence the polling.
inline bool ends(pid_t pid) {
  for (int tries = 0; tries < 1000 && is_alive(pid); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !is_alive(pid);
}

}  // namespace plumbline::testing
