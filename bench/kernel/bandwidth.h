/** The machine's read bandwidth: the fastest plain read of a buffer far larger than the caches. */
#pragma once
#include <cstddef>

namespace bench {

/** Bytes a second one thread reads, the best of several passes over `bytes`. */
double read_bandwidth(std::size_t bytes);

} // namespace bench
