// The user's choice of an NCCL library, as the option --nccl gives it.
#pragma once

#include <string>
#include <vector>

namespace plumbline::transport::nccl {

struct LibraryChoice {
  std::string library = "libnccl.so.2";  ///< a path, a name that the dynamic linker looks up, or "stub"
  std::string modes = {};                ///< of the stub, with commas between them; empty: its default
  bool headers = false;                  ///< send a header before each message, and check its tag, size and number
};

/// Returns "rendezvous", "eager", "late", "poison", "shuffle", "apart"; stub/modes.h says what they mean.
const std::vector<std::string>& stub_modes();

/// Parses LIBRARY[:WORD,...]. The words are "headers" and, if the library is "stub", its modes. An empty LIBRARY is the
/// default. Throws InputError for an unknown word, for a mode of the stub with another library, and for "eager"
/// together with "late" or "rendezvous".
LibraryChoice parse_library_choice(const std::string& text);

}  // namespace plumbline::transport::nccl
