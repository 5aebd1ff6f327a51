#include "runtime/microbatch/signature.h"

#include <algorithm>
#include <ranges>
#include <set>

#include "runtime/error.h"
#include "runtime/text/join.h"

namespace plumbline::microbatch {
namespace {

void check(const Signature& signature) {
  std::set<std::string> names;
  bool rest = false;
  for (const Parameter& parameter : signature.parameters) {
    if (!names.insert(parameter.name).second)
      throw InputError("inputs: the signature " + signature.text() + " has '" + parameter.name +
                       "' twice; give each input a name of its own");
    const bool last = &parameter == &signature.parameters.back();
    if (parameter.kind == ParameterKind::VarKeyword && !last)
      throw InputError("inputs: the signature " + signature.text() + " continues after '**" + parameter.name +
                       "'; that must be the last");
    if (parameter.kind != ParameterKind::VarPositional) continue;
    if (rest)
      throw InputError("inputs: the signature " + signature.text() + " has two '*'; one takes all that is left");
    rest = true;
  }
}

class Binder {
 public:
  Binder(const Signature& signature, const std::vector<at::Tensor>& positional,
         const std::map<std::string, at::Tensor>& keyword)
      : signature_(signature), positional_(positional), keyword_(keyword) {
    for (const Parameter& parameter : signature.parameters) {
      if (parameter.kind == ParameterKind::PositionalOrKeyword) own_.insert(parameter.name);
      takes_extra_ = takes_extra_ || parameter.kind == ParameterKind::VarKeyword;
    }
  }

  std::vector<capture::NamedTensor> bind() {
    refuse_unknown();
    for (const Parameter& parameter : signature_.parameters) {
      switch (parameter.kind) {
        case ParameterKind::PositionalOrKeyword:
          bind_one(parameter);
          break;
        case ParameterKind::VarPositional:
          bind_rest(parameter);
          break;
        case ParameterKind::VarKeyword:
          bind_extra();
          break;
      }
    }
    if (next_ < positional_.size())
      throw InputError("inputs: " + std::to_string(positional_.size()) + " positional inputs given, the model takes " +
                       std::to_string(next_) + ": " + signature_.text());
    return std::move(bound_);
  }

 private:
  void refuse_unknown() const {
    if (takes_extra_) return;
    for (const auto& [name, tensor] : keyword_)
      if (!own_.contains(name))
        throw InputError("inputs: the model has no input '" + name + "'; it takes " + signature_.text());
  }

  void bind_one(const Parameter& parameter) {
    at::Tensor tensor;
    if (!behind_rest_ && next_ < positional_.size()) tensor = positional_[next_++];
    if (const auto given = keyword_.find(parameter.name); given != keyword_.end()) {
      if (tensor.defined()) refuse_twice(parameter.name);
      tensor = given->second;
    }
    if (!tensor.defined()) {
      if (!parameter.default_value)
        throw InputError("inputs: '" + parameter.name + "' is missing; the model takes " + signature_.text());
      tensor = *parameter.default_value;
    }
    bound_.push_back({parameter.name, tensor});
  }

  void bind_rest(const Parameter& parameter) {
    behind_rest_ = true;
    for (int i = 0; next_ < positional_.size(); ++i)
      bound_.push_back({parameter.name + "." + std::to_string(i), positional_[next_++]});
  }

  void bind_extra() {
    for (const auto& [name, tensor] : keyword_) {
      if (own_.contains(name)) continue;
      if (std::ranges::find(bound_, name, &capture::NamedTensor::name) != bound_.end()) refuse_twice(name);
      bound_.push_back({name, tensor});
    }
  }

  [[noreturn]] void refuse_twice(const std::string& name) const {
    throw InputError("inputs: '" + name + "' is given twice, by position and by name; the model takes " +
                     signature_.text());
  }

  const Signature& signature_;
  const std::vector<at::Tensor>& positional_;
  const std::map<std::string, at::Tensor>& keyword_;
  std::set<std::string> own_;  // names that an extra input cannot have
  bool takes_extra_ = false, behind_rest_ = false;
  size_t next_ = 0;  // of positional_
  std::vector<capture::NamedTensor> bound_;
};

}  // namespace

Signature Signature::from_placeholders(const std::vector<std::string>& names) {
  Signature signature;
  for (const std::string& name : names) {
    if (name.starts_with("**"))
      signature.parameters.push_back({name.substr(2), ParameterKind::VarKeyword});
    else if (name.starts_with("*"))
      signature.parameters.push_back({name.substr(1), ParameterKind::VarPositional});
    else
      signature.parameters.push_back({name});
  }
  return signature;
}

std::string Signature::text() const {
  const auto text_of = [](const Parameter& parameter) {
    const char* stars = parameter.kind == ParameterKind::VarKeyword      ? "**"
                        : parameter.kind == ParameterKind::VarPositional ? "*"
                                                                         : "";
    return stars + parameter.name + (parameter.default_value ? "=default" : "");
  };
  return "(" + join(parameters | std::views::transform(text_of)) + ")";
}

std::vector<capture::NamedTensor> Signature::bind(const std::vector<at::Tensor>& positional,
                                                  const std::map<std::string, at::Tensor>& keyword) const {
  check(*this);
  return Binder(*this, positional, keyword).bind();
}

}  // namespace plumbline::microbatch
