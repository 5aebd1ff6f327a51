// The parts of offloading, alone: the store in a file, the thread that transfers, the values that autograd saves.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "runtime/engine/offload/activation_store.h"
#include "runtime/engine/offload/saved_values.h"
#include "runtime/engine/offload/transfer_lane.h"
#include "runtime/error.h"
#include "runtime/testing/refusal.h"

namespace plumbline::engine {
namespace {

using namespace std::chrono_literals;

at::Tensor bytes(int64_t size, int seed) { return at::arange(size).mul(seed).add(seed).remainder(251).to(at::kByte); }

TEST(FileStore, KeepsEveryBlockApart) {
  const std::unique_ptr<ActivationStore> store = file_store();
  const int64_t sizes[] = {1, 4097, 0, 100000, 100000};
  for (int i = 0; i < 5; ++i) store->write({i % 2, 3, i}, bytes(sizes[i], i + 1));
  for (int i = 4; i >= 0; --i) EXPECT_TRUE(at::equal(store->read({i % 2, 3, i}), bytes(sizes[i], i + 1))) << i;
  // The room of a dropped block is used again, and its neighbours stay as they are.
  store->drop({1, 3, 1});
  store->write({7, 0, 0}, bytes(4000, 9));
  store->write({7, 0, 1}, bytes(4097, 10));
  EXPECT_TRUE(at::equal(store->read({7, 0, 0}), bytes(4000, 9)));
  EXPECT_TRUE(at::equal(store->read({7, 0, 1}), bytes(4097, 10)));
  EXPECT_TRUE(at::equal(store->read({1, 3, 3}), bytes(100000, 4)));
}

TEST(FileStore, LeavesNoFile) {
  const auto names = [] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
      count += entry.path().filename().string().starts_with("plumbline-activations.");
    return count;
  };
  const int before = names();
  const std::unique_ptr<ActivationStore> store = file_store();
  store->write({0, 0, 0}, bytes(100, 1));
  EXPECT_EQ(names(), before) << "also while it is used";
}

TEST(TransferLane, OneAfterAnotherInOrder) {
  std::string order;
  std::atomic<int> running = 0;
  TransferLane lane;
  uint64_t last = 0;
  for (char letter = 'a'; letter <= 'z'; ++letter)
    last = lane.begin([&, letter] {
      EXPECT_EQ(++running, 1);
      order += letter;
      --running;
    });
  lane.wait(last, transport::Deadline::after(30s), "");
  EXPECT_EQ(order, "abcdefghijklmnopqrstuvwxyz");
}

TEST(TransferLane, ErrorsAndDeadlines) {
  {
    TransferLane lane;
    lane.begin([] { throw Error("the disk is full"); });
    const uint64_t later = lane.begin([] { ADD_FAILURE() << "after an error nothing is transferred"; });
    EXPECT_EQ(testing::failure<Error>([&] { lane.wait(later, transport::Deadline::after(30s), ""); }),
              "the disk is full");
  }
  std::atomic<bool> go = false;
  TransferLane lane;
  const uint64_t slow = lane.begin([&] { go.wait(false); });
  lane.begin([] { ADD_FAILURE() << "dropped by the destructor"; });
  EXPECT_THROW(lane.wait(slow, transport::Deadline::after(20ms), "stage 1"), TimeoutError);
  std::thread([&] {
    std::this_thread::sleep_for(50ms);
    go = true;
    go.notify_all();
  }).detach();
}

/// Takes all memory of `saved` away and returns it.
std::vector<c10::Storage> take_all(SavedValues& saved, std::vector<std::shared_ptr<SavedValue>>& away) {
  std::vector<c10::Storage> blocks;
  for (const std::shared_ptr<SavedValue>& value : saved.alive()) {
    if (value->memory() == nullptr) continue;
    blocks.push_back(value->storage());
    value->take_away(static_cast<int>(blocks.size()) - 1);
    away.push_back(value);
  }
  return blocks;
}

/// Complex numbers, a lazy conjugation, views, results that their own nodes save, an integer index: the backward needs
/// them again, with the memory of others.
TEST(SavedValues, ComeBackInOtherMemory) {
  const auto model = [](const at::Tensor& x, const at::Tensor& w) {
    at::Tensor z = torch::complex(x.mm(w), x);
    z = z.conj() * z.t().slice(1, 0, 4);
    const at::Tensor picked = at::index_select(at::real(z), 0, torch::tensor({2, 0, 2}));
    return (at::softmax(picked.t(), 1) * picked.t().sigmoid().exp()).sum() + at::imag(z).pow(3).sum();
  };
  const auto leaf = [](double phase) {
    return (at::arange(16).view({4, 4}).to(at::kFloat) * phase).sin().requires_grad_();
  };
  at::Tensor x = leaf(0.3), w = leaf(0.7);
  model(x, w).backward();
  at::Tensor x2 = leaf(0.3), w2 = leaf(0.7), loss;
  SavedValues saved;
  {
    const SavedValues::Recording recording(&saved);
    loss = model(x2, w2);
  }
  std::vector<std::shared_ptr<SavedValue>> away;
  {
    const std::vector<c10::Storage> blocks = take_all(saved, away);
    EXPECT_GT(blocks.size(), 5u);
    std::vector<at::Tensor> copies;
    for (const c10::Storage& block : blocks) {
      copies.push_back(at::empty({static_cast<int64_t>(block.nbytes())}, at::kByte));
      std::memcpy(copies.back().mutable_data_ptr(), block.data(), block.nbytes());
    }
    EXPECT_THROW(away.front()->get(), Error);
    for (const std::shared_ptr<SavedValue>& value : away) value->give_back(copies[value->block()].storage());
  }
  away.clear();
  loss.backward();
  EXPECT_TRUE(at::equal(x2.grad(), x.grad()));
  EXPECT_TRUE(at::equal(w2.grad(), w.grad()));
  EXPECT_TRUE(saved.alive().empty()) << "the nodes have freed them";
}

TEST(SavedValues, WithoutARecordingNothingIsWrapped) {
  SavedValues saved;
  {
    const SavedValues::Recording recording(nullptr);
  }
  const at::Tensor x = at::ones({3}).requires_grad_();
  x.exp().sum().backward();
  EXPECT_TRUE(saved.alive().empty());
}

/// exp(), which saves its result, and a change in place of that result.
at::Tensor changed_exponential(SavedValues& saved) {
  at::Tensor y;
  {
    const SavedValues::Recording recording(&saved);
    y = at::ones({3}).requires_grad_().exp();
  }
  const at::NoGradGuard no_grad;
  return y.mul_(2);
}

/// Autograd checks versions only of tensors that it holds itself; the check must not be lost.
TEST(SavedValues, AChangeInPlaceIsNoticed) {
  SavedValues saved;
  const at::Tensor y = changed_exponential(saved);
  EXPECT_NE(testing::failure<Error>([&] { y.sum().backward(); }).find("changed in place"), std::string::npos);
}

/// What comes back then is not what the forward saved.
TEST(SavedValues, AChangeInPlaceBeforeOffloadingIsNoticedAfterReloading) {
  SavedValues saved;
  const at::Tensor y = changed_exponential(saved);
  std::vector<std::shared_ptr<SavedValue>> away;
  const std::vector<c10::Storage> blocks = take_all(saved, away);
  ASSERT_EQ(away.size(), 1u);
  away[0]->give_back(blocks[0]);
  EXPECT_NE(testing::failure<Error>([&] { y.sum().backward(); }).find("changed in place"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::engine
