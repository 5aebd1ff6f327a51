#include "runtime/transport/threads/mailbox.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>

namespace plumbline::transport {
namespace {

/// The oracle: one list in posting order, searched from the front.
class ListMailbox {
 public:
  void post(PostedOperation& operation) { list_.push_back(&operation); }
  PostedOperation* take(Direction direction, int source, int64_t tag) {
    for (PostedOperation* operation : list_) {
      if (operation->direction == direction && operation->source == source && operation->tag == tag) {
        remove(*operation);
        return operation;
      }
    }
    return nullptr;
  }
  void remove(PostedOperation& operation) { std::erase(list_, &operation); }
  const std::deque<PostedOperation*>& list() const { return list_; }

 private:
  std::deque<PostedOperation*> list_;
};

TEST(Mailbox, MatchesAListUnderRandomUse) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const uint32_t tags = seed % 2 == 0 ? 3 : 500;  // long queues; many queues
    Mailbox mailbox;
    ListMailbox oracle;
    std::deque<PostedOperation> operations;
    for (int step = 0; step < 3000; ++step) {
      const int source = random() % 3;
      const int64_t tag = static_cast<int64_t>(random() % tags) - 2;
      const Direction direction = random() % 3 == 0 ? Direction::Send : Direction::Receive;
      if (random() % 8 == 0 && !oracle.list().empty()) {
        PostedOperation& operation = *oracle.list()[random() % oracle.list().size()];
        oracle.remove(operation);
        mailbox.remove(operation);
        EXPECT_FALSE(operation.posted);
        continue;
      }
      // As the transport does: an operation is posted only if it does not meet its counterpart.
      const Direction other = direction == Direction::Send ? Direction::Receive : Direction::Send;
      PostedOperation* const found = mailbox.find(other, source, tag);
      PostedOperation* expected = oracle.take(other, source, tag);
      ASSERT_EQ(found, expected) << "step " << step;
      ASSERT_EQ(mailbox.take(other, source, tag), expected) << "step " << step;
      if (expected != nullptr) continue;
      PostedOperation& operation = operations.emplace_back();
      operation.direction = direction;
      operation.source = source;
      operation.tag = tag;
      mailbox.post(operation);
      oracle.post(operation);
      EXPECT_TRUE(operation.posted);
    }
  }
}

}  // namespace
}  // namespace plumbline::transport
