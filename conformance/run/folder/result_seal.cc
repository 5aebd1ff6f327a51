#include "conformance/run/folder/result_seal.h"

#include <algorithm>
#include <set>
#include <utility>

#include "conformance/judge/rank_files.h"
#include "runtime/error.h"
#include "runtime/fnv1a.h"

namespace plumbline::conformance {
namespace {

uint64_t hash_of(const RegularFile& file, uint64_t size) {
  std::string piece(size_t{1} << 20, '\0');
  uint64_t hash = fnv1a("");
  for (uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min<uint64_t>(piece.size(), size - at));
    file.read(at, piece.data(), piece.size());
    hash = fnv1a(piece, hash);
  }
  return hash;
}

std::string said_of(const std::filesystem::path& file, const char* what) {
  return file.string() + ": " + what + " after its case was done; results must not change once they are announced";
}

}  // namespace

/// Large files are equal by their identity alone, others by their bytes.
bool ResultSeal::State::operator==(const State& other) const {
  if (!is_there || !other.is_there) return is_there == other.is_there;
  if (hash == 0 || other.hash == 0) return identity == other.identity;
  return hash == other.hash && identity.size == other.identity.size;
}

ResultSeal::ResultSeal(std::filesystem::path folder, List list) : folder_(std::move(folder)), list_(std::move(list)) {
  for (const std::filesystem::path& file : list_()) states_[file] = state_of(file);
}

ResultSeal::State ResultSeal::state_of(const std::filesystem::path& path) const {
  try {
    const RegularFile file(folder_, path.lexically_relative(folder_));
    State state{.is_there = true, .identity = file.identity()};
    if (state.identity.size <= kUsualResultBytes) state.hash = hash_of(file, state.identity.size);
    return state;
  } catch (const Error&) {  // the judge tells what is there instead
    return {};
  }
}

std::string ResultSeal::why_broken() const {
  const std::vector<std::filesystem::path> listed = list_();
  const std::set<std::filesystem::path> now(listed.begin(), listed.end());
  for (const auto& [file, was] : states_) {
    if (!now.contains(file)) return said_of(file, "removed");
    if (!(state_of(file) == was)) return said_of(file, "changed");
  }
  for (const std::filesystem::path& file : now)
    if (!states_.contains(file)) return said_of(file, "added");
  return "";
}

}  // namespace plumbline::conformance
