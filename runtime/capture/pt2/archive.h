// Archive: a `.pt2` file of torch.export.save(), a zip of JSON texts and raw little-endian storages, opened for
// reading. program.h interprets the program in it.
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
  /// Throws InputError: no such file, or not a whole zip.
  explicit Archive(const std::filesystem::path& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  bool has(const std::string& entry);

  /// Throws InputError: no such entry (`purpose` names its expected content), or its checksum does not match its bytes;
  /// LibTorch's own reader ignores the checksum.
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

/// One folder of tensors (data/weights, data/constants) and the list of its content.
class TensorFolder {
 public:
  TensorFolder(Archive& archive, std::string folder, const std::string& list);

  bool has(const std::string& name) const { return list_.contains(name); }

  /// The tensor of that name, with its saved requires_grad. Names of one tensor (tied weights) give the same tensor
  /// object; different views of one storage share it. Throws InputError: not listed, a tensor subclass (saved as a
  /// pickle), a layout that is not strided, or a payload that is missing or shorter than sizes and strides require.
  at::Tensor load(const std::string& name);

 private:
  const c10::Storage& storage(const std::string& path, const std::string& name);

  Archive& archive_;
  std::string folder_, list_entry_;
  nlohmann::json list_;
  std::map<std::string, c10::Storage> storages_;
  std::map<std::string, at::Tensor> tensors_;  // by their whole entry in the list
};

/// The schema's numbers for element types, layouts and memory formats, which differ from c10's. Throws Error for a
/// number that the schema does not have or that has no equivalent in LibTorch.
at::ScalarType scalar_type(int64_t number);
c10::Layout layout(int64_t number);
c10::MemoryFormat memory_format(int64_t number);

}  // namespace plumbline::capture::pt2
