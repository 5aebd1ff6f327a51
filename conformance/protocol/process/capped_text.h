// Text of unknown length that is kept in bounded memory: its beginning and its end, without the middle.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace plumbline::conformance {

class CappedText {
 public:
  /// Keeps `limit` bytes: half from the beginning, half from the end.
  explicit CappedText(size_t limit) : half_(std::max<size_t>(limit / 2, 1)) {}

  void add(std::string_view piece) {
    const size_t to_head = std::min(half_ - head_.size(), piece.size());
    head_.append(piece.substr(0, to_head));
    tail_.append(piece.substr(to_head));
    if (tail_.size() > 2 * half_) drop_to(half_);
  }

  bool empty() const { return head_.empty(); }

  /// With a note in place of the middle, if any of it was dropped.
  std::string text() {
    if (tail_.size() > half_) drop_to(half_);
    if (dropped_ == 0) return head_ + tail_;
    return head_ + "\n[... " + std::to_string(dropped_) + " bytes left out ...]\n" + tail_;
  }

 private:
  void drop_to(size_t keep) {
    dropped_ += tail_.size() - keep;
    tail_.erase(0, tail_.size() - keep);
  }

  size_t half_;
  size_t dropped_ = 0;
  std::string head_;
  std::string tail_;
};

}  // namespace plumbline::conformance
