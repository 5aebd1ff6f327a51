#include "conformance/proof/sums/normal_form.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "conformance/proof/sums/linear_operators.h"

namespace plumbline::proof {
namespace {

/// The value of " name=" among a term's attributes.
std::string attribute(const Term& term, const std::string& name) {
  const std::string key = " " + name + "=";
  const size_t begin = term.attributes.find(key);
  if (begin == std::string::npos) return {};
  const size_t from = begin + key.size();
  return term.attributes.substr(from, term.attributes.find(' ', from) - from);
}

/// "f32[2,3]": a sum's addends are broadcast to these sizes.
std::string type_of(const Term& term) { return term.attributes.substr(0, term.attributes.find(' ')); }

/// Whether the body has this type: an operator's attributes begin with it, a leaf's name it after its name.
bool has_type(const Term& body, const std::string& type) {
  const std::string attributes = " " + body.attributes.substr(0, body.attributes.find('=')) + " ";
  return attributes.find(" " + type + " ") != std::string::npos;
}

/// The sign of the second operand of an addition or a subtraction; 0 for another term.
int sign_of(const Term& term) {
  if (term.operands.size() != 2 || !rational_of(attribute(term, "alpha")) || type_of(term).starts_with("bool"))
    return 0;
  return term.op == "aten::add.Tensor" ? 1 : term.op == "aten::sub.Tensor" ? -1 : 0;
}

bool is_floating(const std::string& type) { return type.starts_with("f") || type.starts_with("bf"); }

const Linear* linearity(const Term& term) {
  static const Linear first{.operands = {0}};
  if (!is_floating(type_of(term))) return nullptr;  // whole numbers are rounded
  if (term.op == "cast") return &first;
  const auto known = linear_operators().find(term.op);
  return known == linear_operators().end() ? nullptr : &known->second;
}

/// The number by which the term multiplies its only tensor operand, if it does no more than that.
std::optional<Rational> scale_of(const Term& term, const Terms& terms) {
  if (term.op == "aten::neg") return Rational(-1);
  const bool times = term.op.starts_with("aten::mul."), over = term.op.starts_with("aten::div.");
  if (!times && !over) return std::nullopt;
  if (term.attributes.find(" rounding_mode=") != std::string::npos) return std::nullopt;
  std::string number = attribute(term, "other");
  if (number == "%") {
    const Term other = terms.at(term.operands.back());
    if (other.op != "number") return std::nullopt;
    number = other.attributes;
  }
  const std::optional<Rational> factor = rational_of(number);
  if (!factor || (over && *factor == 0)) return std::nullopt;
  return over ? Rational(1 / *factor) : *factor;
}

}  // namespace

/// Nested sums of one type are one sum.
NormalForms::Addends NormalForms::addends_of(const TermId& sum) const {
  const std::string type = type_of(terms_.at(sum));
  Addends found, open = {{1, sum}};
  while (!open.empty()) {
    const Addend next = std::move(open.back());
    open.pop_back();
    const Term term = terms_.at(next.id);
    const int sign = sign_of(term);
    if (sign == 0 || type_of(term) != type) {
      found.push_back(next);
      continue;
    }
    open.push_back({next.coefficient, term.operands[0]});
    open.push_back({next.coefficient * sign * *rational_of(attribute(term, "alpha")), term.operands[1]});
  }
  return found;
}

/// The terms whose normal forms that of `id` is made of.
std::vector<TermId> NormalForms::parts_of(const TermId& id) const {
  const Term term = terms_.at(id);
  if (sign_of(term) == 0) return term.operands;
  std::vector<TermId> parts;
  for (const Addend& addend : addends_of(id)) parts.push_back(addend.id);
  return parts;
}

const NormalForm& NormalForms::of(const TermId& id) {
  std::vector<std::pair<TermId, bool>> open = {{id, false}};
  while (!open.empty()) {
    auto& [next, parts_are_known] = open.back();
    if (known_.contains(next)) {
      open.pop_back();
    } else if (std::exchange(parts_are_known, true)) {
      const TermId done = next;
      known_.emplace(done, compute(done));
      open.pop_back();
    } else {
      for (const TermId& part : parts_of(next)) open.emplace_back(part, false);
    }
  }
  return known_.at(id);
}

NormalForm NormalForms::compute(const TermId& id) {
  const Term term = terms_.at(id);
  if (sign_of(term) != 0) return sum(id);
  if (term.op == "fill" || term.op == "number") return fill(term);
  if (const std::optional<Rational> factor = scale_of(term, terms_)) {
    const NormalForm& operand = known_.at(term.operands[0]);
    return *factor == 0 ? zero() : NormalForm{*factor * operand.factor, operand.body};
  }
  return applied(term);
}

NormalForm NormalForms::zero() { return {0, bodies_.add({"zero", "", {}})}; }

NormalForm NormalForms::fill(const Term& term) {
  const size_t end = term.attributes.find(' ');
  const std::optional<Rational> number = rational_of(term.attributes.substr(0, end));
  if (!number) return {1, bodies_.add(term)};
  if (*number == 0) return zero();
  const std::string rest = end == std::string::npos ? "" : term.attributes.substr(end);
  return {*number, bodies_.add({term.op, "1" + rest, {}})};
}

NormalForm NormalForms::sum(const TermId& id) {
  std::map<TermId, Rational> coefficients;
  for (const Addend& addend : addends_of(id)) {
    const NormalForm& form = known_.at(addend.id);
    const Rational factor = addend.coefficient * form.factor;
    const auto inner = sums_.find(form.body);
    // A sum of another type is broadcast or cast as a whole.
    if (inner == sums_.end() || type_of(bodies_.at(form.body)) != type_of(terms_.at(id))) {
      coefficients[form.body] += factor;
      continue;
    }
    for (const Addend& part : inner->second) coefficients[part.id] += factor * part.coefficient;
  }
  std::erase_if(coefficients, [](const auto& entry) { return entry.second == 0; });
  if (coefficients.empty()) return zero();
  const Rational factor = coefficients.begin()->second;
  if (coefficients.size() == 1 && has_type(bodies_.at(coefficients.begin()->first), type_of(terms_.at(id))))
    return {factor, coefficients.begin()->first};
  Term body{"sum", type_of(terms_.at(id)), {}};
  Addends addends;
  for (auto& [addend, coefficient] : coefficients) {
    coefficient /= factor;
    body.attributes += " " + to_string(coefficient);
    body.operands.push_back(addend);
    addends.push_back({coefficient, addend});
  }
  const TermId sum = bodies_.add(std::move(body));
  sums_.emplace(sum, std::move(addends));
  return {factor, sum};
}

NormalForm NormalForms::applied(const Term& term) {
  const Linear* linear = linearity(term);
  NormalForm form;
  Term body{term.op, term.attributes, {}};
  const auto factor_of = [&](size_t operand) { return known_.at(term.operands[operand]).factor; };
  bool shared = linear != nullptr && linear->jointly && !term.operands.empty();
  for (size_t i = 0; i < term.operands.size(); ++i) shared = shared && factor_of(i) == factor_of(0);
  if (shared) form.factor = factor_of(0);
  for (size_t i = 0; i < term.operands.size(); ++i) {
    body.operands.push_back(known_.at(term.operands[i]).body);
    if (shared) continue;
    if (linear != nullptr && std::ranges::find(linear->operands, i) != linear->operands.end())
      form.factor *= factor_of(i);
    else
      body.attributes += " times " + to_string(factor_of(i));
  }
  if (form.factor == 0) return zero();
  form.body = bodies_.add(std::move(body));
  return form;
}

TermRelation relation_between(NormalForms& forms, const TermId& expected, const TermId& found) {
  if (expected == found) return {};
  const NormalForm right = forms.of(expected), wrong = forms.of(found);
  if (right.body != wrong.body) return {Relation::AnotherSum, 1};
  if (right.factor == wrong.factor) return {Relation::SameSum, 1};
  return {Relation::Multiple, wrong.factor / right.factor};
}

}  // namespace plumbline::proof
