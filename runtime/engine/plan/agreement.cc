#include "runtime/engine/plan/agreement.h"

#include <cstring>

#include "runtime/error.h"
#include "runtime/transport/collectives.h"

namespace plumbline::engine {

/// The size of each text, then the text.
std::string packed(const Beliefs& beliefs) {
  std::string bytes;
  for (const std::string& belief : beliefs) {
    const uint64_t size = belief.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += belief;
  }
  return bytes;
}

Beliefs unpacked(std::span<const std::byte> bytes) {
  Beliefs beliefs;
  for (uint64_t size = 0; !bytes.empty(); bytes = bytes.subspan(sizeof size + size)) {
    std::memcpy(&size, bytes.data(), sizeof size);
    beliefs.emplace_back(reinterpret_cast<const char*>(bytes.data()) + sizeof size, size);
  }
  return beliefs;
}

void require_agreement(const Beliefs& mine, transport::Transport& transport, const transport::Deadline& deadline,
                       const std::function<std::string(std::span<const Beliefs> of_rank)>& contradiction) {
  if (transport.size() == 1) return;
  const std::string bytes = packed(mine);
  const auto gathered = transport::gather_bytes(transport, 0, std::as_bytes(std::span(bytes)), deadline);
  std::string text;
  if (transport.rank() == 0) {
    std::vector<Beliefs> of_rank;
    for (const std::vector<std::byte>& theirs : gathered) of_rank.push_back(unpacked(theirs));
    text = contradiction(of_rank);
  }
  const auto result = transport::broadcast_bytes(transport, 0, std::as_bytes(std::span(text)), deadline);
  if (!result.empty()) throw Error(std::string(reinterpret_cast<const char*>(result.data()), result.size()));
}

}  // namespace plumbline::engine
