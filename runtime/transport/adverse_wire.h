// A transport made worse on purpose, within the contract of transport.h: a program that keeps to the contract gives the
// same results, one that relies on more fails every time instead of once a month.
//
//   slow     A send begins a random time after isend(), up to 2 ms, in a later call, even if its request is waited for:
//            a buffer that was changed or freed too early arrives changed.
//   poison   irecv() fills a receive's memory with 0xff (NaN in every floating-point type, -1 as an integer). Only the
//            test() or wait() that completes the receive writes the message there.
//   shuffle  Sends to different peers begin in a random order. Those to one peer keep theirs, as the contract says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace plumbline::transport {

struct Wire {
  bool slow = false, poison = false, shuffle = false;

  bool adverse() const { return slow || poison || shuffle; }
};

/// "slow", "poison", "shuffle".
const std::vector<std::string>& wire_words();

/// Reads a list of these words with commas between; an empty text is an ordinary wire. Throws InputError for another
/// word.
Wire parse_wire(const std::string& text);

/// Decorates `inner`, which must outlive it. `seed` and the rank determine all delays and orders.
std::unique_ptr<Transport> adverse_wire(Transport& inner, Wire wire, uint64_t seed);

}  // namespace plumbline::transport
