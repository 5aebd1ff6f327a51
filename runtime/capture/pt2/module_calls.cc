#include "runtime/capture/pt2/module_calls.h"

namespace plumbline::capture::pt2 {
namespace {

struct Entry {
  std::string_view key, fqn, type;
};

std::string_view take(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return head;
}

std::vector<Entry> entries(std::string_view stack) {
  std::vector<Entry> out;
  while (!stack.empty()) {
    std::string_view item = take(stack, ';');
    Entry entry;
    entry.key = take(item, ',');
    entry.fqn = take(item, ',');
    entry.type = item;
    if (!entry.fqn.empty()) out.push_back(entry);
  }
  return out;
}

}  // namespace

void ModuleCallTracker::add(int32_t node, std::string_view stack) {
  if (!stack.empty()) {
    const std::vector<Entry> wanted = entries(stack);
    size_t common = 0;
    while (common < open_.size() && common < wanted.size() && open_[common].key == wanted[common].key) ++common;
    open_.resize(common);
    for (size_t i = common; i < wanted.size(); ++i) {
      Latest& latest = open_.empty() ? latest_in_root_ : latest_in_[open_.back().call];
      if (latest.key != wanted[i].key) {
        latest = {std::string(wanted[i].key), calls_.size()};
        calls_.push_back({std::string(wanted[i].fqn), std::string(wanted[i].type), node, node});
      }
      open_.push_back({latest.key, latest.call});
      latest_in_.resize(calls_.size());  // `latest` is not used beyond this
    }
  }
  for (const Open& open : open_) calls_[open.call].end = node + 1;
}

}  // namespace plumbline::capture::pt2
