// Gives each reader the files of its corpus, each of them changed at random, and large texts of many small values: what
// a change breaks at once is seen without a fuzzer.
//
//   replay_readers CORPUS CHANGES SEED
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "runtime/io/tensor_file.h"
#include "scripts/fuzz/readers.h"

namespace {

namespace fs = std::filesystem;

/// What is being read, for the last words of a crash.
std::array<char, 512> now;

void tell_and_die(int signal) {
  std::signal(signal, SIG_DFL);
  if (write(STDERR_FILENO, now.data(), std::strlen(now.data())) < 0) _exit(1);
  raise(signal);
}

/// A few bytes lost, doubled, exchanged or replaced, or a part of another file put in.
std::string changed(std::string text, const std::vector<std::string>& others, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  // What readers of numbers, of nested values and of text take badly.
  static const std::vector<std::string> awkward = {"-1",
                                                   "9223372036854775807",
                                                   "18446744073709551615",
                                                   "1e999",
                                                   "null",
                                                   "[[[[",
                                                   "{\"a\":",
                                                   "\"",
                                                   "\\u0000",
                                                   "\xff\xfe",
                                                   "\n",
                                                   std::string(1, '\0'),
                                                   "../../x",
                                                   "\x1b[2J"};
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t at = below(text.size() + 1), count = std::min(below(16), text.size() - at);
    switch (below(7)) {
      case 0:
        text.erase(at, count);
        break;
      case 1:
        text.insert(at, text.substr(at, count));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 3:
        text.replace(at, count, awkward[below(awkward.size())]);
        break;
      case 4: {
        const std::string& other = others[below(others.size())];
        const size_t from = below(other.size() + 1);
        text.insert(at, other.substr(from, below(64)));
        break;
      }
      case 5: {  // a list or nest of many
        const std::string part = text.substr(at, count);
        for (size_t times = below(4) == 0 ? 1000 : 4; times > 0; --times) text.insert(at, part);
        break;
      }
      default:
        text.resize(at);
    }
  }
  return text;
}

/// 64 KiB each of the shortest values, nested and in lists: what takes the most memory for a byte; and nests that are
/// deeper than the stack, for a reader that calls itself for each level.
std::vector<std::string> dense_texts() {
  const auto many = [](std::string text, const char* part, const char* end, size_t bytes = size_t{1} << 16) {
    while (text.size() < bytes) text += part;
    return text + end;
  };
  constexpr size_t kDeep = size_t{1} << 22;
  return {many("", "[", "", kDeep),
          many("", "{\"\":", "", kDeep),
          many("", "a.", "a=0", kDeep),
          many("[0", ",0", "]"),
          many("[[]", ",[]", "]"),
          many("[{}", ",{}", "]"),
          many("{\"a\":0", ",\"a\":0", "}"),
          many("", "\n", ""),
          many("", "0,", ""),
          many("a,0\n", "0,\n", ""),
          many("", "[[a]]\n", ""),
          many("a=[", "[],", "]"),
          many("", "0\n", "")};
}

/// Beyond what is mapped before anything is read: LibTorch alone is larger than what is left to the readers.
void limit_memory([[maybe_unused]] size_t bytes) {
#ifndef __SANITIZE_ADDRESS__  // whose shadow is larger
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const size_t most = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit memory{most, most};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

int replay(const fs::path& corpus, long changes, unsigned long long seed) {
  long taken = 0, given = 0;
  for (const plumbline::fuzz::Reader& reader : plumbline::fuzz::readers()) {
    std::vector<fs::path> files;
    if (fs::exists(corpus / reader.name))
      for (const auto& entry : fs::directory_iterator(corpus / reader.name)) files.push_back(entry.path());
    std::ranges::sort(files);
    std::vector<std::string> texts;
    for (const fs::path& file : files) texts.push_back(plumbline::read_file(file));
    const std::vector<std::string> dense = dense_texts();
    for (size_t i = 0; i < dense.size(); ++i) {
      std::snprintf(now.data(), now.size(), "replay_readers: %s: dense text %zu\n", reader.name, i);
      plumbline::fuzz::accepts(reader, dense[i]);
    }
    given += static_cast<long>(dense.size());
    long of_reader = 0;
    for (size_t i = 0; i < files.size(); ++i)
      for (long change = 0; change <= changes; ++change) {
        std::snprintf(now.data(), now.size(), "replay_readers: %s: %s, change %ld of seed %llu\n", reader.name,
                      files[i].filename().c_str(), change, seed);
        std::seed_seq mixed{seed, static_cast<unsigned long long>(i), static_cast<unsigned long long>(change)};
        std::mt19937_64 random(mixed);
        const std::string text = change == 0 ? texts[i] : changed(texts[i], texts, random);
        of_reader += plumbline::fuzz::accepts(reader, text);
        ++given;
      }
    if (of_reader == 0) {
      std::fprintf(stderr, "replay_readers: %s took none of its %zu files\n", reader.name, files.size());
      return 1;
    }
    taken += of_reader;
  }
  std::printf("%ld texts given, %ld of them read\n", given, taken);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: replay_readers CORPUS CHANGES SEED\n", stderr);
    return 2;
  }
  static std::array<char, 1 << 16> stack;  // for the end of the other one
  const stack_t other{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&other, nullptr);
  struct sigaction action{};
  action.sa_handler = tell_and_die;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) sigaction(signal, &action, nullptr);
  limit_memory(size_t{1} << 30);  // 256 times the longest text
  return replay(argv[1], std::atol(argv[2]), std::strtoull(argv[3], nullptr, 10));
}
