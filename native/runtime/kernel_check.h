// A kernel is compared with scalar before it is trusted: all kernels give the same bits, and one that does not on this
// machine (a fault of the processor, of an emulator or of ours) must not rank anybody's documents.
#pragma once

#include "kernels/contract.h"

#include <string_view>

namespace maxsimd {

/// Whether the kernel gives scalar's bits on a fixed small input of odd sizes. Takes well under a millisecond.
bool agreesWithScalar(const Kernel& kernel);

/// `findKernel`, but of kernels that agree: "auto" passes over one that does not, a name is `invalid_argument`.
const Kernel& trustedKernel(std::string_view name);

}  // namespace maxsimd
