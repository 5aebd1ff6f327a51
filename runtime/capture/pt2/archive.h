// Archive: a `.pt2` file as torch.export.save() writes it, a zip of JSON texts and raw little-endian storages, opened
// for reading. What the program in it means is the business of program.h.
//
// Every error names the file and the entry. The layout is that of PyTorch's torch/export/pt2_archive and
// torch/_export/serde/schema.py.
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
  /// InputError: no such file, or not a whole zip.
  explicit Archive(const std::filesystem::path& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  bool has(const std::string& entry);

  /// InputError: no such entry (`purpose` says what it would hold), or its checksum is not that of its bytes, which
  /// LibTorch's own reader does not look at.
  std::pair<at::DataPtr, size_t> read(const std::string& entry, const std::string& purpose);
  std::string read_text(const std::string& entry);
  nlohmann::json read_json(const std::string& entry, const std::string& purpose);

  const std::string& file() const { return file_; }

  /// Throws InputError that begins with the file.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  void check_sum(const std::string& entry, const void* bytes, size_t count);

  std::string file_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

/// One folder of tensors (data/weights, data/constants) with the list of what lies in it.
class TensorFolder {
 public:
  TensorFolder(Archive& archive, std::string folder, const std::string& list);

  bool has(const std::string& name) const { return list_.contains(name); }

  /// The tensor of that name, with requires_grad as it was saved. Names of one tensor (tied weights) give the same
  /// tensor object; different views of one storage share it.
  /// InputError: not listed, a tensor subclass (saved as a pickle), a layout that is not strided, or a payload that is
  /// missing or shorter than sizes and strides ask for.
  at::Tensor load(const std::string& name);

 private:
  const c10::Storage& storage(const std::string& path, const std::string& name);

  Archive& archive_;
  std::string folder_, list_entry_;
  nlohmann::json list_;
  std::map<std::string, c10::Storage> storages_;
  std::map<std::string, at::Tensor> tensors_;  // by everything that the list says of them
};

/// The numbers of the schema for element types, layouts and memory formats, which are not those of c10.
/// Error for one that does not exist there or that LibTorch has no equal for.
at::ScalarType scalar_type(int64_t number);
c10::Layout layout(int64_t number);
c10::MemoryFormat memory_format(int64_t number);

}  // namespace plumbline::capture::pt2
