#include "runtime/transport/nccl/stub/modes.h"

#include <cstdlib>
#include <mutex>
#include <sstream>

namespace plumbline::transport::nccl::stub {
namespace {

Modes parse(const std::string& text) {
  Modes modes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    modes.rendezvous |= word == "rendezvous";
    modes.eager |= word == "eager";
    modes.late |= word == "late";
    modes.poison |= word == "poison";
    modes.shuffle |= word == "shuffle";
    modes.apart |= word == "apart";
  }
  if (!text.empty()) modes.text = text;
  return modes;
}

Modes& current() {
  static Modes& modes = *new Modes([] {  // for threads that outlive main()
    const char* text = std::getenv("PLUMBLINE_NCCL_STUB");
    return parse(text == nullptr ? "" : text);
  }());
  return modes;
}

}  // namespace

const Modes& modes() { return current(); }
void set_modes(const std::string& text) { current() = parse(text); }

}  // namespace plumbline::transport::nccl::stub
