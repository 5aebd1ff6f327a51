// Archive: a `.pt2` file of torch.export.save(), opened for reading: a zip of JSON texts and raw little-endian
// storages. program.h interprets the program in the archive.
//
// Every InputError names the file and, if there is one, the entry. The layout follows PyTorch's
// torch/export/pt2_archive and torch/_export/serde/schema.py.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace caffe2::serialize {
class PyTorchStreamReader;
}

namespace plumbline::capture::pt2 {

class Archive {
 public:
  /// Throws InputError if `path` is not a regular file or not a complete zip archive.
  explicit Archive(const std::filesystem::path& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  bool has(const std::string& entry);

  /// Return the whole content of an entry (read(): bytes and their number). Throw InputError if the entry is missing
  /// (the text names the expected content, `purpose`), cannot be read, is not JSON (read_json()), or is uncompressed
  /// and does not match its checksum, which LibTorch's reader does not verify; and when the entries that were read
  /// unpack to far more bytes than the file has.
  std::pair<at::DataPtr, size_t> read(const std::string& entry, const std::string& purpose);
  std::string read_text(const std::string& entry);
  nlohmann::json read_json(const std::string& entry, const std::string& purpose);

  const std::string& file() const { return file_; }

  /// Throws InputError: "<file>: <what>".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  void check_sum(const std::string& entry, const void* bytes, size_t count);

  std::string file_;
  size_t file_bytes_ = 0, unpacked_bytes_ = 0;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

/// One folder of tensors (data/weights, data/constants) and the list of its content. Keeps loaded storages and tensors.
class TensorFolder {
 public:
  /// Reads the entry `<folder>/<list>`; without this entry the folder is empty. Throws InputError if the list is
  /// malformed. `archive` must outlive this object.
  TensorFolder(Archive& archive, std::string folder, const std::string& list);

  bool has(const std::string& name) const { return list_.contains(name); }

  /// Returns the tensor of that name, with its saved requires_grad. The names of one tensor (tied weights) give the
  /// same tensor object; different views of one storage share it. Throws InputError if the name is not listed, for a
  /// tensor subclass (saved as a pickle), a layout that is not strided, an unknown dtype or one that can have no
  /// gradient although the tensor requires it, for sizes that no tensor can have, and if the storage is missing or
  /// shorter than sizes and strides require.
  at::Tensor load(const std::string& name);

 private:
  const c10::Storage& storage(const std::string& path, const std::string& name);

  Archive& archive_;
  std::string folder_, list_entry_;
  nlohmann::json list_;
  std::map<std::string, c10::Storage> storages_;
  std::map<std::string, at::Tensor> tensors_;  // by their whole entry in the list
};

/// A whole number of the archive's JSON. Throws json::exception for anything else, also for a fraction, which
/// get<int64_t>() would cut off, and for a number that int64_t does not have.
int64_t whole(const nlohmann::json& value);

/// Whether a tensor can have these sizes: none is negative, and int64_t has the bytes of that many elements of the
/// largest type.
bool are_sizes_of_a_tensor(at::IntArrayRef sizes);

/// Convert the schema's numbers for element types, layouts and memory formats, which differ from c10's. Throw Error for
/// an unknown number.
at::ScalarType scalar_type(int64_t number);
c10::Layout layout(int64_t number);
c10::MemoryFormat memory_format(int64_t number);

}  // namespace plumbline::capture::pt2
