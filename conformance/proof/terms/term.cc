#include "conformance/proof/terms/term.h"

#include <cstdio>

#include "runtime/error.h"
#include "runtime/io/sha256.h"

namespace plumbline::proof {
namespace {

void append_number(std::string& bytes, uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Different terms have different bytes: every text is preceded by its length.
std::string bytes_of(const Term& term) {
  std::string bytes;
  for (const std::string* text : {&term.op, &term.attributes}) {
    append_number(bytes, text->size());
    bytes += *text;
  }
  for (const TermId& operand : term.operands) {
    append_number(bytes, operand.high);
    append_number(bytes, operand.low);
  }
  return bytes;
}

}  // namespace

std::string to_string(const TermId& id) {
  std::string text(33, '\0');
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(id.high),
                static_cast<unsigned long long>(id.low));
  text.pop_back();
  return text;
}

TermId Terms::add(Term term) {
  const std::string digits = sha256(bytes_of(term));
  const TermId id{std::stoull(digits.substr(0, 16), nullptr, 16), std::stoull(digits.substr(16, 16), nullptr, 16)};
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = by_id_.try_emplace(id, nullptr);
  if (is_new) known->second = &terms_.emplace_back(std::move(term));
  return id;
}

const Term& Terms::at(const TermId& id) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_id_.find(id);
  PLUMBLINE_CHECK(known != by_id_.end(), "proof: no term " + to_string(id));
  return *known->second;
}

size_t Terms::size() const {
  const std::lock_guard lock(mutex_);
  return terms_.size();
}

}  // namespace plumbline::proof
