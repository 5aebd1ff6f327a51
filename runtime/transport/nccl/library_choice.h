// The user's choice of an NCCL library, as the option --nccl gives it.
#pragma once

#include <string>
#include <vector>

namespace plumbline::transport::nccl {

struct LibraryChoice {
  std::string library = "libnccl.so.2";  ///< a path, a name that the dynamic linker looks up, or "stub"
  std::string modes = {};                ///< of the stub, with commas between; empty: its default
  bool headers = false;                  ///< a header with tag, size and number before each message, which is checked
};

/// "rendezvous", "eager", "late", "poison", "shuffle", "apart"; stub/modes.h says what they mean.
const std::vector<std::string>& stub_modes();

/// Reads LIBRARY[:WORD,...]: words are "headers" and, if the library is "stub", its modes. An empty text is the
/// default. Throws InputError for another word.
LibraryChoice parse_library_choice(const std::string& text);

}  // namespace plumbline::transport::nccl
