#include <ATen/ops/empty.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include "runtime/engine/offload/activation_store.h"
#include "runtime/error.h"
#include "runtime/io/descriptor.h"

namespace plumbline::engine {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error("offloaded activations: " + what + ": " + std::generic_category().message(errno));
}

class FileStore : public ActivationStore {
 public:
  FileStore() {
    std::error_code no_folder;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(no_folder);
    if (no_folder) throw Error("offloaded activations: TMPDIR does not name a folder");
    std::string name = (folder / "plumbline-activations.XXXXXX").string();
    file_.reset(mkstemp(name.data()));
    if (!file_) fail("cannot create a file in " + folder.string());
    unlink(name.c_str());
  }

  void write(const StoredBlock& block, const at::Tensor& bytes) override {
    PLUMBLINE_CHECK(!places_.contains(block), "a block is stored a second time");
    const Place place = find_room(bytes.numel());
    transfer(
        [&](int64_t done) {
          return pwrite(file_.get(), bytes.const_data_ptr<uint8_t>() + done, static_cast<size_t>(place.bytes - done),
                        place.begin + done);
        },
        place.bytes, "cannot write");
    places_.emplace(block, place);
  }

  at::Tensor read(const StoredBlock& block) override {
    const auto [begin, bytes, room] = place_of(block);
    at::Tensor copy = at::empty({bytes}, at::kByte);
    transfer(
        [&, from = begin, size = bytes](int64_t done) {
          return pread(file_.get(), copy.mutable_data_ptr<uint8_t>() + done, static_cast<size_t>(size - done),
                       from + done);
        },
        bytes, "cannot read");
    return copy;
  }

  void drop(const StoredBlock& block) override {
    const Place place = place_of(block);
    places_.erase(block);
    free_.emplace(place.room, place.begin);
  }

 private:
  struct Place {
    int64_t begin = 0, bytes = 0;
    int64_t room = 0;  // at least `bytes`
  };

  Place place_of(const StoredBlock& block) const {
    const auto found = places_.find(block);
    PLUMBLINE_CHECK(found != places_.end(), "a block is not in the store");
    return found->second;
  }

  /// The smallest free room that is large enough, else new room at the end.
  Place find_room(int64_t bytes) {
    const auto found = free_.lower_bound(bytes);
    if (found == free_.end()) {
      const Place place{end_, bytes, bytes};
      end_ += bytes;
      return place;
    }
    const Place place{found->second, bytes, found->first};
    free_.erase(found);
    return place;
  }

  template <class Part>
  static void transfer(Part part, int64_t bytes, const char* otherwise) {
    for (int64_t done = 0; done < bytes;) {
      const ssize_t moved = part(done);
      if (moved < 0 && errno == EINTR) continue;
      if (moved == 0) errno = EIO;
      if (moved <= 0) fail(otherwise);
      done += moved;
    }
  }

  Descriptor file_;
  int64_t end_ = 0;
  std::map<StoredBlock, Place> places_;
  std::multimap<int64_t, int64_t> free_;  // by size: the beginning
};

}  // namespace

std::unique_ptr<ActivationStore> file_store() { return std::make_unique<FileStore>(); }

}  // namespace plumbline::engine
