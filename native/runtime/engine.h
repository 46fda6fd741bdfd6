// The parts that all indexes of a process share: the kernel and the threads.
//
// Three pools, so that no kind of work waits for another: searches and scores (one thread per core), file work (mostly
// blocked in the operating system), and codes and verification (one thread, niced).
#pragma once

#include "runtime/pool.h"
#include "kernels/contract.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace maxsimd {

class Engine {
 public:
  /// `threads` = 0: one per core. `invalid_argument` if the kernel is unknown or not supported.
  Engine(uint32_t threads, std::string_view kernel);

  const Kernel& kernel() const { return kernel_; }
  uint32_t threads() const { return compute_.threads(); }
  Pool& compute() { return compute_; }
  Pool& files() { return files_; }
  Pool& background() { return background_; }
  /// One thread for files of columns, which do not wait behind builds of codes.
  Pool& columns() { return columns_; }

  /// Token vectors of `dim` components that one thread scores in 2 ms against 32 query tokens, measured once.
  uint64_t exactTokenVectorsMax(uint32_t dim) const { return rate_ / dim; }

  /// Set when nobody will read results any more. Work then stops at its next block.
  std::atomic<bool> stopping{false};

 private:
  const Kernel& kernel_;
  const uint64_t rate_;
  Pool compute_;
  Pool files_;
  Pool background_;
  Pool columns_;
};

/// The processor time that this thread has used.
double threadCpuMs();

struct ScoreRequest {
  std::vector<float> query;    // f32 [tokens x dim]
  std::vector<float> offsets;  // f32 [tokens]
  RowShape shape = 0;
  bool components;
  std::vector<uint32_t> chunkRows;
  /// Stored rows (kernels/rows.h) and f16 [rows], each followed by `readPaddingBytes`.
  std::vector<int8_t> vectors;
  std::vector<uint16_t> scales;

  std::vector<Chunk> chunks() const;
};

struct ScoreOutcome {
  std::vector<float> scores;
  /// [chunks x tokens], empty unless components were asked for.
  std::vector<float> similarities;
  std::vector<uint32_t> documentTokens;
};

/// Exact MaxSim of transient chunks.
ScoreOutcome score(Engine& engine, const ScoreRequest& request);

struct KernelTiming {
  /// Time of one pass over all chunks in the given order; the fastest of `repeats`.
  double wallMs;
  double cpuMs;
  std::vector<float> scores;
};

/// Times the kernel alone, on this thread. For benchmarks.
KernelTiming timeKernel(const Engine& engine, const ScoreRequest& request, const std::vector<uint32_t>& order,
                        uint32_t repeats);

}  // namespace maxsimd
