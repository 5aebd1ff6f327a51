#include "runtime/transport/threads/mailbox.h"

#include "runtime/mix64.h"

namespace plumbline::transport {
namespace {

void append(PostedOperation*& head, PostedOperation*& tail, PostedOperation& operation) {
  operation.next = nullptr;
  (tail == nullptr ? head : tail->next) = &operation;
  tail = &operation;
}

}  // namespace

Mailbox::Bucket& Mailbox::bucket_of(int source, int64_t tag) {
  // Schedules use neighbouring tags, which must not share buckets.
  const uint64_t hash = mix64(static_cast<uint64_t>(tag) * kGoldenGamma + static_cast<uint64_t>(source));
  return buckets_[hash & (buckets_.size() - 1)];
}

void Mailbox::post(PostedOperation& operation) {
  if (posted_ >= buckets_.size()) grow();
  Bucket& bucket = bucket_of(operation.source, operation.tag);
  append(bucket.head, bucket.tail, operation);
  operation.posted = true;
  ++posted_;
}

PostedOperation* Mailbox::find(Direction direction, int source, int64_t tag) {
  for (PostedOperation* at = bucket_of(source, tag).head; at != nullptr; at = at->next)
    if (at->source == source && at->tag == tag && at->direction == direction) return at;
  return nullptr;
}

PostedOperation* Mailbox::take(Direction direction, int source, int64_t tag) {
  Bucket& bucket = bucket_of(source, tag);
  PostedOperation* previous = nullptr;
  for (PostedOperation* at = bucket.head; at != nullptr; previous = at, at = at->next) {
    if (at->source != source || at->tag != tag) continue;
    // A send and a receive of one key would have matched: all waiting operations have one direction.
    if (at->direction != direction) return nullptr;
    unlink(bucket, previous, *at);
    return at;
  }
  return nullptr;
}

void Mailbox::remove(PostedOperation& operation) {
  Bucket& bucket = bucket_of(operation.source, operation.tag);
  PostedOperation* previous = nullptr;
  for (PostedOperation* at = bucket.head; at != nullptr; previous = at, at = at->next) {
    if (at == &operation) return unlink(bucket, previous, operation);
  }
}

void Mailbox::unlink(Bucket& bucket, PostedOperation* previous, PostedOperation& operation) {
  (previous == nullptr ? bucket.head : previous->next) = operation.next;
  if (bucket.tail == &operation) bucket.tail = previous;
  operation.posted = false;
  --posted_;
}

void Mailbox::grow() {
  std::vector<Bucket> old(buckets_.size() * 2);
  old.swap(buckets_);
  for (const Bucket& bucket : old) {
    for (PostedOperation* at = bucket.head; at != nullptr;) {
      PostedOperation* next = at->next;
      Bucket& target = bucket_of(at->source, at->tag);
      append(target.head, target.tail, *at);
      at = next;
    }
  }
}

}  // namespace plumbline::transport
