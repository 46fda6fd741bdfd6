// Compares a kernel with the scalar kernel before it is used. All kernels must give the same bits. A kernel that does
// not (a fault of the processor, of an emulator or of ours) must not rank documents.
#pragma once

#include "kernels/contract.h"

#include <string_view>

namespace maxsimd {

/// Whether the kernel gives the scalar kernel's bits on a fixed small input of odd sizes. Takes well under a
/// millisecond.
bool agreesWithScalar(const Kernel& kernel);

/// Like `findKernel`, but only kernels that agree: "auto" skips one that does not, and naming one is
/// `invalid_argument`.
const Kernel& trustedKernel(std::string_view name);

}  // namespace maxsimd
