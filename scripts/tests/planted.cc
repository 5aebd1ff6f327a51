// One error of each kind that a sanitizer finds: planted WHAT. Without sanitizers it ends well.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

void leak() {
  static char* volatile kept = nullptr;
  kept = static_cast<char*>(std::malloc(100));
  kept = nullptr;
}

void overflow() {
  const auto bytes = static_cast<char*>(std::malloc(8));
  volatile char* const behind = bytes + 8;
  std::printf("%d\n", *behind);
  std::free(bytes);
}

void shift() {
  volatile int by = 40;
  std::printf("%d\n", 1 << by);
}

/// Two threads write, and nothing orders them.
void race() {
  static int number = 0;
  std::thread other([] { number = 1; });
  // The sanitizer misses two accesses at one and the same moment.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  number = 2;
  other.join();
  std::printf("%d\n", number);
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc == 2 ? argv[1] : "";
  if (std::strcmp(what, "nothing") == 0) return 0;
  if (std::strcmp(what, "leak") == 0) return leak(), 0;
  if (std::strcmp(what, "overflow") == 0) return overflow(), 0;
  if (std::strcmp(what, "shift") == 0) return shift(), 0;
  if (std::strcmp(what, "race") == 0) return race(), 0;
  std::fputs("usage: planted nothing|leak|overflow|shift|race\n", stderr);
  return 2;
}
