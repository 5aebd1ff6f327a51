#include "runtime/skip/skippable.h"

#include <c10/util/Type.h>

#include <algorithm>
#include <utility>

#include "runtime/error.h"
#include "runtime/text/in_quotes.h"
#include "runtime/text/join.h"

namespace plumbline::skip {
namespace {

/// "'a', 'b'"
template <class Names>
std::string quoted_all(const Names& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(in_quotes(name));
  return join(texts, ", ");
}

std::string declared(const std::set<std::string>& names) {
  return names.empty() ? "none is" : "declared: " + quoted_all(names);
}

}  // namespace

SkippableBase::SkippableBase(const SkipNames& names)
    : stashable_(names.stash.begin(), names.stash.end()), poppable_(names.pop.begin(), names.pop.end()) {}

SkipKey SkippableBase::key(const std::string& name) const {
  const auto found = namespaces_.find(name);
  return {found == namespaces_.end() ? SkipNamespace::common() : found->second, name};
}

void SkippableBase::isolate_names(SkipNamespace ns, const std::vector<std::string>& only) {
  for (const std::string& name : only)
    if (!stashable_.contains(name) && !poppable_.contains(name)) {
      std::set<std::string> all = stashable_;
      all.insert(poppable_.begin(), poppable_.end());
      throw InputError("isolate: " + in_quotes(name) + " has not been declared as stashable or as poppable (" +
                       declared(all) + ")");
    }
  for (const std::string& name : only) namespaces_.insert_or_assign(name, ns);
}

void SkippableBase::isolate_all(SkipNamespace ns) {
  for (const auto* names : {&stashable_, &poppable_})
    for (const std::string& name : *names) namespaces_.insert_or_assign(name, ns);
}

SkippableBase::Exchange::Exchange(const SkippableBase& module) : module_(module) {
  for (const std::string& name : module_.poppable_) {
    std::optional<at::Tensor> tensor = current_skip_tracker().load(module_.key(name));
    if (!tensor) throw InputError(in_quotes(name) + " has not been stashed");
    to_pop_.emplace(name, std::move(*tensor));
  }
}

void SkippableBase::Exchange::stash(const std::string& name, const at::Tensor& tensor) {
  if (!module_.stashable_.contains(name))
    throw InputError(in_quotes(name) + " has not been declared as stashable (" + declared(module_.stashable_) + ")");
  if (!stashed_.emplace(name, tensor).second) throw InputError(in_quotes(name) + " has been stashed already");
}

at::Tensor SkippableBase::Exchange::pop(const std::string& name) {
  if (!module_.poppable_.contains(name))
    throw InputError(in_quotes(name) + " has not been declared as poppable (" + declared(module_.poppable_) + ")");
  auto fetched = to_pop_.extract(name);
  if (fetched.empty()) throw InputError(in_quotes(name) + " has been popped already");
  return std::move(fetched.mapped());
}

void SkippableBase::Exchange::finish() {
  std::vector<std::string> missing;
  for (const std::string& name : module_.stashable_)
    if (!stashed_.contains(name)) missing.push_back(name);
  if (!missing.empty()) throw InputError(quoted_all(missing) + " must be stashed but have not");
  for (const auto& [name, tensor] : to_pop_) missing.push_back(name);
  if (!missing.empty()) throw InputError(quoted_all(missing) + " must be popped but have not");
  for (auto& [name, tensor] : stashed_) current_skip_tracker().save(module_.key(name), std::move(tensor));
}

std::string detail::body_name(const std::type_info& body) { return c10::demangle(body.name()); }

}  // namespace plumbline::skip
