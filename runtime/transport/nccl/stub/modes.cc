#include "runtime/transport/nccl/stub/modes.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

namespace plumbline::transport::nccl::stub {
namespace {

Modes parse(const std::string& text) {
  Modes modes;
  const std::pair<const char*, bool*> known[] = {
      {"rendezvous", &modes.rendezvous}, {"eager", &modes.eager},     {"late", &modes.late},
      {"poison", &modes.poison},         {"shuffle", &modes.shuffle}, {"apart", &modes.apart}};
  std::string words_known;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    for (const auto& [name, mode] : known)
      if (word == name) {
        *mode = true;
        words_known += (words_known.empty() ? "" : ",") + word;
      }
  if (!words_known.empty()) modes.text = words_known;
  return modes;
}

/// Threads read modes while another one sets them, so none is ever changed or freed.
const Modes& kept(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;  // for threads that outlive main()
  static auto& all = *new std::map<std::string, Modes>;
  const std::lock_guard lock(mutex);
  const auto found = all.find(text);
  return found != all.end() ? found->second : all.emplace(text, parse(text)).first->second;
}

std::atomic<const Modes*>& current() {
  static std::atomic<const Modes*>& modes = *new std::atomic<const Modes*>([] {
    const char* text = std::getenv("PLUMBLINE_NCCL_STUB");
    return &kept(text == nullptr ? "" : text);
  }());
  return modes;
}

}  // namespace

const Modes& modes() { return *current(); }
void set_modes(const std::string& text) { current() = &kept(text); }

}  // namespace plumbline::transport::nccl::stub
