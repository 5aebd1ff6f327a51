// Collects the messages of the checks of a schedule: the first `limit` ones, and the number of the omitted ones.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace plumbline::schedule {

class CheckReport {
 public:
  explicit CheckReport(std::size_t limit) : limit_(limit) {}

  void add(std::string message) {
    if (messages_.size() < limit_) {
      messages_.push_back(std::move(message));
    } else {
      ++omitted_;
    }
  }

  bool empty() const { return messages_.empty() && omitted_ == 0; }

  /// Moves the messages out, with "and N more" as the last if N messages were omitted. Call it once.
  std::vector<std::string> take() {
    if (omitted_ > 0) messages_.push_back("and " + std::to_string(omitted_) + " more");
    return std::move(messages_);
  }

 private:
  std::size_t limit_, omitted_ = 0;
  std::vector<std::string> messages_;
};

}  // namespace plumbline::schedule
