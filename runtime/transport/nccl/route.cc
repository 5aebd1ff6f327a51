#include "runtime/transport/nccl/route.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "runtime/transport/collectives.h"

namespace plumbline::transport::nccl {
namespace {

using Numbers = std::vector<int64_t>;

/// The number of sends, then peer, tag and bytes of each send, then of each receive.
Numbers packed(const Traffic& traffic) {
  Numbers numbers = {static_cast<int64_t>(traffic.sends.size())};
  for (const std::vector<Parcel>* parcels : {&traffic.sends, &traffic.receives})
    for (const Parcel& parcel : *parcels)
      numbers.insert(numbers.end(), {parcel.peer, parcel.tag, static_cast<int64_t>(parcel.bytes)});
  return numbers;
}

Traffic unpacked(std::span<const int64_t> numbers) {
  Traffic traffic;
  for (size_t i = 1; i < numbers.size(); i += 3) {
    std::vector<Parcel>& to = static_cast<int64_t>(i / 3) < numbers[0] ? traffic.sends : traffic.receives;
    to.push_back({static_cast<int>(numbers[i]), numbers[i + 1], static_cast<size_t>(numbers[i + 2])});
  }
  return traffic;
}

Numbers numbers_in(std::span<const std::byte> bytes) {
  Numbers numbers(bytes.size() / sizeof(int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::string message_text(const std::tuple<int, int, int64_t>& key) {
  const auto [from, to, tag] = key;
  return "the message from rank " + std::to_string(from) + " to rank " + std::to_string(to) + " with tag " +
         std::to_string(tag);
}

}  // namespace

Route::Route(std::vector<Parcel> messages) : messages_(std::move(messages)) {
  for (size_t i = 0; i < messages_.size(); ++i) by_tag_.emplace_back(messages_[i].tag, i);
  std::ranges::sort(by_tag_);
}

std::optional<size_t> Route::find(int64_t tag) const {
  const auto at = std::ranges::lower_bound(by_tag_, tag, {}, &std::pair<int64_t, size_t>::first);
  if (at == by_tag_.end() || at->first != tag) return std::nullopt;
  return at->second;
}

std::vector<Traffic> gather_traffic(Transport& control, const Traffic& mine, const Deadline& deadline) {
  const Numbers numbers = packed(mine);
  const auto of_ranks = gather_bytes(control, 0, std::as_bytes(std::span(numbers)), deadline);
  Numbers all;  // for each rank: how many numbers follow, and they
  for (const auto& bytes : of_ranks) {
    const Numbers of_rank = numbers_in(bytes);
    all.push_back(static_cast<int64_t>(of_rank.size()));
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  all = numbers_in(broadcast_bytes(control, 0, std::as_bytes(std::span(all)), deadline));
  std::vector<Traffic> traffic;
  for (size_t i = 0; i < all.size(); i += 1 + static_cast<size_t>(all[i]))
    traffic.push_back(unpacked(std::span(all).subspan(i + 1, static_cast<size_t>(all[i]))));
  return traffic;
}

std::string contradiction(std::span<const Traffic> of_rank) {
  std::map<std::tuple<int, int, int64_t>, size_t> sent;
  for (size_t rank = 0; rank < of_rank.size(); ++rank)
    for (const Parcel& send : of_rank[rank].sends) {
      const std::tuple key(static_cast<int>(rank), send.peer, send.tag);
      if (!sent.emplace(key, send.bytes).second) return message_text(key) + " is sent twice in a step";
    }
  for (size_t rank = 0; rank < of_rank.size(); ++rank)
    for (const Parcel& receive : of_rank[rank].receives) {
      const std::tuple key(receive.peer, static_cast<int>(rank), receive.tag);
      const auto found = sent.find(key);
      if (found == sent.end()) return message_text(key) + " is received but not sent, or received twice";
      if (found->second != receive.bytes)
        return message_text(key) + " is sent with " + std::to_string(found->second) + " bytes and received with " +
               std::to_string(receive.bytes);
      sent.erase(found);
    }
  if (!sent.empty()) return message_text(sent.begin()->first) + " is sent but not received";
  return {};
}

}  // namespace plumbline::transport::nccl
