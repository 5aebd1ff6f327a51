#include "runtime/transport/nccl/library_choice.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/text/join.h"

namespace plumbline::transport::nccl {
namespace {

constexpr const char* kHeaders = "headers";

void take_word(const std::string& word, LibraryChoice& choice) {
  if (word == kHeaders) {
    choice.headers = true;
    return;
  }
  if (choice.library != "stub")
    throw InputError("--nccl: " + choice.library + " has no mode '" + word + "'; expected " + kHeaders +
                     (std::ranges::find(stub_modes(), word) == stub_modes().end() ? "" : " (the stub has such modes)"));
  if (std::ranges::find(stub_modes(), word) == stub_modes().end())
    throw InputError("--nccl: '" + word + "' is unknown; expected " + join(stub_modes()) + ", " + kHeaders +
                     ", or several with commas between");
  choice.modes += (choice.modes.empty() ? "" : ",") + word;
}

}  // namespace

const std::vector<std::string>& stub_modes() {
  static const std::vector<std::string> words = {"rendezvous", "eager", "late", "poison", "shuffle", "apart"};
  return words;
}

LibraryChoice parse_library_choice(const std::string& text) {
  LibraryChoice choice;
  const size_t colon = std::min(text.find(':'), text.size());
  if (colon > 0) choice.library = text.substr(0, colon);
  for (size_t begin = colon + 1; begin <= text.size() && colon < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    take_word(text.substr(begin, end - begin), choice);
    begin = end + 1;
  }
  const std::string padded = ',' + choice.modes + ',';
  const auto has = [&](const char* mode) { return padded.find(',' + std::string(mode) + ',') != std::string::npos; };
  if (has("eager") && (has("late") || has("rendezvous")))
    throw InputError("--nccl: eager sends do not wait, so they go with neither rendezvous nor late");
  return choice;
}

}  // namespace plumbline::transport::nccl
