#include "bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

namespace bench {
namespace {

/** XOR of everything, eight independent streams of 64-byte lines: enough loads in flight to fill the memory pipe. */
__attribute__((noinline, optimize("O3"))) std::uint64_t consume(const std::uint64_t *words, std::size_t count) {
    std::uint64_t sums[8] = {};
    const std::size_t stride = count / 8;
    for (std::size_t i = 0; i + 8 <= stride; i += 8) {
        for (std::size_t s = 0; s < 8; ++s) {
            const std::uint64_t *line = words + s * stride + i;
            __builtin_prefetch(line + 512);
            for (std::size_t k = 0; k < 8; ++k) sums[s] ^= line[k];
        }
    }
    std::uint64_t all = 0;
    for (std::uint64_t sum : sums) all ^= sum;
    return all;
}

/** The same, one stream: what the hardware prefetcher likes best on some machines. */
__attribute__((noinline, optimize("O3"))) std::uint64_t consume_one(const std::uint64_t *words, std::size_t count) {
    std::uint64_t sums[8] = {};
    for (std::size_t i = 0; i + 8 <= count; i += 8) {
        __builtin_prefetch(words + i + 1024);
        for (std::size_t k = 0; k < 8; ++k) sums[k] ^= words[i + k];
    }
    std::uint64_t all = 0;
    for (std::uint64_t sum : sums) all ^= sum;
    return all;
}

} // namespace

double read_bandwidth(std::size_t bytes) {
    std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * 0x9E3779B97F4A7C15u;
    volatile std::uint64_t sink = 0;
    double best = 0;
    for (int pass = 0; pass < 10; ++pass) {
        const auto start = std::chrono::steady_clock::now();
        sink = sink ^ (pass % 2 == 0 ? consume(words.data(), words.size()) : consume_one(words.data(), words.size()));
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        best = std::max(best, static_cast<double>(bytes) / elapsed.count());
    }
    return best;
}

} // namespace bench
