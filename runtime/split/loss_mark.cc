#include "runtime/split/loss_mark.h"

#include <algorithm>
#include <set>

#include "runtime/error.h"
#include "runtime/text/join.h"

namespace plumbline::split {
namespace {

LossMark collection(LossMark::Kind kind, std::vector<LossMark> items) {
  LossMark mark(false);
  mark.kind = kind;
  mark.items = std::move(items);
  return mark;
}

std::string keys_text(const std::vector<std::string>& keys) {
  return keys.empty() ? "no keys" : "the keys " + join(keys);
}

std::string describe(const graph::OutputTree& output) {
  switch (output.kind) {
    case graph::OutputTree::Kind::Value:
      return "a value";
    case graph::OutputTree::Kind::Constant:
      return "the constant " + output.constant;
    case graph::OutputTree::Kind::Tuple:
      return "a tuple of " + std::to_string(output.items.size());
    case graph::OutputTree::Kind::List:
      return "a list of " + std::to_string(output.items.size());
    case graph::OutputTree::Kind::Dict:
      return "a dict with " + keys_text(output.keys);
  }
  return "";
}

bool is_sequence(const graph::OutputTree& output) {
  return output.kind == graph::OutputTree::Kind::Tuple || output.kind == graph::OutputTree::Kind::List;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InputError("loss spec: " + path + " " + why);
}

std::optional<int> find(const graph::OutputTree& output, const LossMark& mark, const std::string& path);

[[noreturn]] void refuse_kind(const graph::OutputTree& output, const std::string& path, const std::string& kind) {
  refuse(path, "is " + describe(output) + ", but its spec is a " + kind + "; give true, false or the same nesting");
}

[[noreturn]] void refuse_without_loss(const std::string& path) {
  refuse(path, "has a spec without a true in it; mark the loss there, or say false for the whole of it");
}

std::optional<int> find_in_sequence(const graph::OutputTree& output, const LossMark& mark, const std::string& path) {
  if (!is_sequence(output)) refuse_kind(output, path, mark.kind == LossMark::Kind::Tuple ? "tuple" : "list");
  if (output.items.size() != mark.items.size())
    refuse(path, "is " + describe(output) + ", but its spec has " + std::to_string(mark.items.size()) +
                     " entries; give one for each");
  for (size_t i = 0; i < mark.items.size(); ++i)
    if (const auto loss = find(output.items[i], mark.items[i], path + "[" + std::to_string(i) + "]")) return loss;
  refuse_without_loss(path);
}

std::optional<int> find_in_dict(const graph::OutputTree& output, const LossMark& mark, const std::string& path) {
  if (output.kind != graph::OutputTree::Kind::Dict) refuse_kind(output, path, "dict");
  if (!std::ranges::is_permutation(output.keys, mark.keys))
    refuse(path, "is " + describe(output) + ", but its spec has " + keys_text(mark.keys) + "; give the same");
  for (size_t i = 0; i < mark.items.size(); ++i) {
    const auto key = std::ranges::find(output.keys, mark.keys[i]);
    const graph::OutputTree& item = output.items[key - output.keys.begin()];
    if (const auto loss = find(item, mark.items[i], path + "[\"" + mark.keys[i] + "\"]")) return loss;
  }
  refuse_without_loss(path);
}

std::optional<int> find(const graph::OutputTree& output, const LossMark& mark, const std::string& path) {
  switch (mark.kind) {
    case LossMark::Kind::Flag:
      if (!mark.is_loss) return std::nullopt;
      if (output.kind != graph::OutputTree::Kind::Value)
        refuse(path,
               "is marked as the loss, but it is " + describe(output) + "; mark one value that the model computes");
      return output.output;
    case LossMark::Kind::Tuple:
    case LossMark::Kind::List:
      return find_in_sequence(output, mark, path);
    case LossMark::Kind::Dict:
      return find_in_dict(output, mark, path);
    case LossMark::Kind::Unsupported:
      refuse(path, "has a spec of type " + mark.type + "; give true, false, or a tuple, list or dict of such");
  }
  return std::nullopt;
}

/// A forward that returns its loss in a list of one counts as one that returns the loss.
const graph::OutputTree& only_output(const graph::OutputTree& outputs) {
  return is_sequence(outputs) && outputs.items.size() == 1 ? only_output(outputs.items[0]) : outputs;
}

}  // namespace

LossMark LossMark::tuple(std::vector<LossMark> items) { return collection(Kind::Tuple, std::move(items)); }

LossMark LossMark::list(std::vector<LossMark> items) { return collection(Kind::List, std::move(items)); }

LossMark LossMark::dict(std::vector<std::pair<std::string, LossMark>> items) {
  LossMark mark = collection(Kind::Dict, {});
  std::set<std::string> seen;
  for (auto& [key, item] : items) {
    if (!seen.insert(key).second) throw InputError("loss spec: the key '" + key + "' is given twice; give each once");
    mark.keys.push_back(std::move(key));
    mark.items.push_back(std::move(item));
  }
  return mark;
}

LossMark LossMark::unsupported(std::string type) {
  LossMark mark = collection(Kind::Unsupported, {});
  mark.type = std::move(type);
  return mark;
}

std::optional<int> find_loss(const graph::OutputTree& outputs, const std::optional<LossMark>& mark,
                             bool trivial_loss_wrapper) {
  if (trivial_loss_wrapper) return find(only_output(outputs), true, "outputs");
  if (!mark) {
    if (outputs.kind != graph::OutputTree::Kind::Dict) return std::nullopt;
    const auto key = std::ranges::find(outputs.keys, "loss");
    if (key == outputs.keys.end()) return std::nullopt;
    const graph::OutputTree& loss = outputs.items[key - outputs.keys.begin()];
    return loss.kind == graph::OutputTree::Kind::Value ? std::optional(loss.output) : std::nullopt;
  }
  const std::optional<int> loss = find(outputs, *mark, "outputs");
  if (!loss) throw InputError("loss spec: false marks no output as the loss; mark one with true, or give no spec");
  return loss;
}

}  // namespace plumbline::split
