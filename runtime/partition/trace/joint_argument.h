// Arguments and results of operator calls in the words of a joint graph.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "runtime/partition/joint/joint_graph.h"

namespace plumbline::partition {

/// Names of PyTorch, in both directions.
inline constexpr std::array<std::pair<const char*, at::MemoryFormat>, 4> kMemoryFormatNames{{
    {"contiguous_format", at::MemoryFormat::Contiguous},
    {"preserve_format", at::MemoryFormat::Preserve},
    {"channels_last", at::MemoryFormat::ChannelsLast},
    {"channels_last_3d", at::MemoryFormat::ChannelsLast3d},
}};

inline constexpr std::array<std::pair<const char*, at::Layout>, 8> kLayoutNames{{
    {"strided", at::Layout::Strided},
    {"sparse_coo", at::Layout::Sparse},
    {"sparse_csr", at::Layout::SparseCsr},
    {"sparse_csc", at::Layout::SparseCsc},
    {"sparse_bsr", at::Layout::SparseBsr},
    {"sparse_bsc", at::Layout::SparseBsc},
    {"jagged", at::Layout::Jagged},
    {"_mkldnn", at::Layout::Mkldnn},
}};

/// PyTorch's long name of a dtype: "float32".
std::string torch_dtype_name(at::ScalarType dtype);

/// `value` as a call got it, as an argument of the schema's type `type` (Argument::real_type(), which tells a dtype
/// from an integer). Tensors become what `tensor` says; an undefined one is None. What joint graphs have no word for is
/// `Other`.
JointArgument joint_argument(const c10::IValue& value, const c10::Type& type,
                             const std::function<JointArgument(const at::Tensor&)>& tensor);

/// Whether leaving `argument` out of the call would mean the same.
bool is_default(const JointArgument& argument, const c10::Argument& parameter);

/// Dtype, shape, strides, offset, bytes and device; `storage` is left to the caller.
JointResult joint_result(const at::Tensor& tensor);

}  // namespace plumbline::partition
