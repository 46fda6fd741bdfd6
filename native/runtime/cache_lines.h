// Memory that will be read soon, asked for ahead.
#pragma once

#include <algorithm>
#include <cstddef>

namespace maxsimd {

/// The first kibibyte at most: what follows one after the other the processor asks for itself.
inline void prefetchLines(const void* from, size_t bytes) {
  constexpr size_t cacheLine = 64;
  const size_t reach = std::min<size_t>(bytes, 16 * cacheLine) + cacheLine - 1;
  for (size_t at = 0; at < reach; at += cacheLine) __builtin_prefetch(static_cast<const char*>(from) + at);
}

}  // namespace maxsimd
