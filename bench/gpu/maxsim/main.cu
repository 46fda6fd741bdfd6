// Measures exhaustive MaxSim and the best k on a device, on chunks that it generates there, and checks scores against the CPU's kernel
// bit by bit: those of some 200 chunks, or of all. Prints one JSON object.
//   maxsim [--chunks N] [--rows N] [--tokens N] [--queries N] [--top N] [--admit ONE_IN] [--rounds N] [--compare CHUNKS]
//          [--dim 64|128|256|384|512|768|1024] [--bits 1|2|4|8]
#include "device/cuda/kernels.cuh"

#include "kernels/contract.h"
#include "kernels/dispatch.h"
#include "kernels/half.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace maxsimd;
using namespace maxsimd::cuda;

namespace {

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
#define REQUIRE(call) require(call, #call)

template <class T>
T* allocate(size_t count) {
  T* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, count * sizeof(T)));
  return memory;
}

template <class T>
T* toDevice(const std::vector<T>& values) {
  T* memory = allocate<T>(values.size());
  REQUIRE(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <class T>
std::vector<T> toHost(const T* memory, size_t count) {
  std::vector<T> values(count);
  REQUIRE(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

/// splitmix64 (Steele, Lea, Flood 2014).
__host__ __device__ uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

__global__ void generate(uint64_t* words, uint64_t count, uint64_t seed) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < count; at += gridDim.x * uint64_t(blockDim.x)) {
    words[at] = mix(seed + at);
  }
}

__global__ void generateScales(uint16_t* scales, uint64_t count) {
  for (uint64_t at = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; at < count; at += gridDim.x * uint64_t(blockDim.x)) {
    // Halves between 1/128 and 1/64.
    scales[at] = uint16_t(0x2000 + mix(at) % 0x400);
  }
}

struct Settings {
  uint32_t chunks = 1'000'000, rows = 64, tokens = 32, queries = 1, top = 100, admit = 1, rounds = 50, compare = 200, dim = 128, bits = 8;

  RowShape shape() const { return {dim, bits}; }
};

Settings parse(int count, char** arguments) {
  Settings settings;
  const std::map<std::string, uint32_t*> options = {
      {"--chunks", &settings.chunks}, {"--rows", &settings.rows},   {"--tokens", &settings.tokens}, {"--queries", &settings.queries},
      {"--top", &settings.top},       {"--admit", &settings.admit}, {"--rounds", &settings.rounds},
      {"--compare", &settings.compare}, {"--dim", &settings.dim},     {"--bits", &settings.bits}};
  for (int at = 1; at < count; at += 2) {
    const auto option = options.find(arguments[at]);
    const long value = at + 1 < count ? std::strtol(arguments[at + 1], nullptr, 10) : 0;
    if (option == options.end() || value < 1) {
      std::fprintf(stderr, "%s: not an option with a number of at least 1\n", arguments[at]);
      std::exit(2);
    }
    *option->second = uint32_t(value);
  }
  if (settings.tokens > queryTokensMax) settings.tokens = queryTokensMax;
  if (!isRowBits(settings.bits) || settings.dim > dimMax || paddedDim(settings.shape()) != settings.dim) {
    std::fprintf(stderr, "no kernel is for %u dimensions of %u bits\n", settings.dim, settings.bits);
    std::exit(2);
  }
  return settings;
}

/// For the best k and what ties with the last of them.
uint32_t roomOf(const Settings& settings) { return settings.top + 1024; }

/// Times of a round in milliseconds, sorted.
std::vector<float> time(uint32_t rounds, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  REQUIRE(cudaEventCreate(&begin));
  REQUIRE(cudaEventCreate(&end));
  std::vector<float> times;
  for (uint32_t round = 0; round < rounds + 3; ++round) {
    REQUIRE(cudaEventRecord(begin));
    work();
    REQUIRE(cudaEventRecord(end));
    REQUIRE(cudaEventSynchronize(end));
    REQUIRE(cudaGetLastError());
    float milliseconds = 0;
    REQUIRE(cudaEventElapsedTime(&milliseconds, begin, end));
    if (round >= 3) times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  return times;
}

struct HostQueries {
  std::vector<int8_t> vectors;
  std::vector<float> scales, offsets;
  std::vector<int32_t> biases;
  uint32_t blocks;

  explicit HostQueries(const Settings& settings) : blocks((settings.tokens + blockTokens - 1) / blockTokens) {
    const size_t padded = size_t(settings.queries) * blocks * blockTokens;
    const uint32_t dim = settings.dim;
    vectors.resize(padded * dim);
    biases.resize(padded);
    scales.resize(padded);
    offsets.resize(padded);
    for (uint32_t query = 0; query < settings.queries; ++query) {
      for (uint32_t token = 0; token < settings.tokens; ++token) {
        const size_t at = size_t(query) * blocks * blockTokens + token;
        for (uint32_t d = 0; d < dim; ++d) vectors[at * dim + d] = int8_t(mix(~(at * dim + d)));
        biases[at] = biasOf(&vectors[at * dim], dim, settings.bits);
        scales[at] = float(1 + mix(at) % 100) / 12'800.0f;
        offsets[at] = float(mix(at + 1) % 100) / 1000.0f;
      }
    }
  }
};

struct Released {
  void operator()(void* memory) const { std::free(memory); }
};

/// Scores of chunks at even distances, or of all, as the CPU has them; the number that were compared.
uint64_t compare(const Settings& settings, const Documents& documents, const HostQueries& queries, const std::vector<float>& scores) {
  const Kernel& kernel = *findKernel("auto");
  const uint32_t stride = std::max(1u, settings.chunks / settings.compare);
  const uint32_t together = stride == 1 ? 4096 : 1;
  const uint32_t padded = queries.blocks * blockTokens;
  const RowShape shape = settings.shape();
  const size_t rowBytes = shape.bytes();
  const std::unique_ptr<void, Released> packed(std::aligned_alloc(64, (kernel.packedBytes(shape, settings.tokens) + 63) & ~size_t(63)));
  std::vector<Chunk> chunks;
  std::vector<float> wanted(together);
  uint64_t compared = 0;
  for (uint32_t from = 0; from < settings.chunks; from += stride * together) {
    const uint32_t count = std::min(together, settings.chunks - from);
    const uint64_t first = uint64_t(from) * settings.rows, rows = uint64_t(count) * settings.rows;
    auto vectors = toHost(documents.vectors + first * rowBytes, rows * rowBytes);
    auto scales = toHost(documents.scales + first, rows);
    vectors.resize(vectors.size() + readPaddingBytes);
    scales.resize(scales.size() + readPaddingBytes);
    chunks.clear();
    for (uint64_t at = 0; at < rows; at += settings.rows) chunks.push_back({vectors.data() + at * rowBytes, scales.data() + at, settings.rows});
    for (uint32_t query = 0; query < settings.queries; ++query) {
      const size_t at = size_t(query) * padded;
      kernel.pack(queries.vectors.data() + at * shape.dim, shape, settings.tokens, packed.get());
      const PackedQuery one = {shape.dim, settings.tokens, paddedTokens(settings.tokens), packed.get(), queries.scales.data() + at, queries.offsets.data() + at, shape.bits};
      kernel.maxsim(one, chunks.data(), count, wanted.data());
      for (uint32_t chunk = from; chunk < from + count; ++chunk) {
        const float score = wanted[chunk - from];
        if (chunk % settings.admit != 0) continue;
        const float found = scores[size_t(query) * settings.chunks + chunk];
        if (std::memcmp(&found, &score, 4) != 0) {
          std::fprintf(stderr, "chunk %u, query %u: %.9g, not %.9g\n", chunk, query, found, score);
          std::exit(1);
        }
      }
      compared += count;
    }
  }
  return compared;
}

/// The best k must be those of a sort, ties with the last in any order.
void compareTop(const Settings& settings, const std::vector<float>& scores, const std::vector<uint64_t>& found,
                const std::vector<uint32_t>& counts) {
  for (uint32_t query = 0; query < settings.queries; ++query) {
    std::vector<uint64_t> keys;
    for (uint32_t chunk = 0; chunk < settings.chunks; chunk += settings.admit) {
      keys.push_back(uint64_t(keyOf(scores[size_t(query) * settings.chunks + chunk])) << 32 | chunk);
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    size_t wanted = std::min<size_t>(settings.top, keys.size());
    while (wanted < keys.size() && keys[wanted] >> 32 == keys[wanted - 1] >> 32) wanted += 1;
    keys.resize(wanted);
    const auto first = found.begin() + long(query) * roomOf(settings);
    std::vector<uint64_t> best(first, first + std::min(counts[query], roomOf(settings)));
    std::sort(best.begin(), best.end(), std::greater<>());
    if (best != keys) {
      std::fprintf(stderr, "query %u: the best %u are not those of a sort\n", query, settings.top);
      std::exit(1);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings = parse(count, arguments);
  settings.top = std::min(settings.top, settings.chunks);
  cudaDeviceProp device;
  REQUIRE(cudaGetDeviceProperties(&device, 0));
  const uint64_t rows = uint64_t(settings.chunks) * settings.rows;

  const size_t bytes = rows * settings.shape().bytes();
  int8_t* const vectors = allocate<int8_t>(bytes);
  uint16_t* const scales = allocate<uint16_t>(rows);
  generate<<<4096, 256>>>(reinterpret_cast<uint64_t*>(vectors), bytes / 8, 1);
  generateScales<<<4096, 256>>>(scales, rows);
  std::vector<uint64_t> starts(settings.chunks + 1);
  for (uint64_t chunk = 0; chunk < starts.size(); ++chunk) starts[chunk] = chunk * settings.rows;
  std::vector<uint32_t> admitted((settings.chunks + 31) / 32);
  for (uint32_t chunk = 0; chunk < settings.chunks; chunk += settings.admit) admitted[chunk / 32] |= 1u << (chunk % 32);
  const Documents documents = {vectors, scales, toDevice(starts), settings.chunks};
  const HostQueries host(settings);
  const Queries queries = {toDevice(host.vectors), toDevice(host.scales), toDevice(host.offsets), toDevice(host.biases),
                           settings.queries, host.blocks, settings.chunks};
  const uint32_t* const bits = settings.admit == 1 ? nullptr : toDevice(admitted);
  float* const scores = allocate<float>(size_t(settings.queries) * settings.chunks);

  const ScoreKernel kernel = kernelFor(settings.shape(), settings.queries * host.blocks);
  int resident = 0;
  REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threadsPerBlock, 0));
  const uint32_t grid = uint32_t(resident) * uint32_t(device.multiProcessorCount);
  const auto score = [&] { kernel<<<grid, threadsPerBlock>>>(documents, queries, bits, scores); };
  const auto scoring = time(settings.rounds, score);

  const std::vector<Selection> begun(settings.queries, Selection{0, settings.top});
  Selection* const selections = toDevice(begun);
  uint32_t* const counts = toDevice(std::vector<uint32_t>(size_t(settings.queries) * digits));
  uint32_t* const places = allocate<uint32_t>(settings.queries);
  uint64_t* const found = allocate<uint64_t>(size_t(settings.queries) * roomOf(settings));
  const Scored scored = {scores, bits, settings.chunks};
  const dim3 all(uint32_t(device.multiProcessorCount) * 4, settings.queries), each(1, settings.queries);
  const auto select = [&] {
    REQUIRE(cudaMemcpyAsync(selections, begun.data(), begun.size() * sizeof(Selection), cudaMemcpyHostToDevice));
    REQUIRE(cudaMemsetAsync(places, 0, settings.queries * sizeof(uint32_t)));
    for (uint32_t pass = 0; pass < passes; ++pass) {
      countDigits<<<all, 256>>>(scored, selections, pass, counts);
      chooseDigit<<<each, choosers>>>(selections, counts, pass);
    }
    gather<<<all, 256>>>(scored, selections, roomOf(settings), found, places);
  };
  const auto selecting = time(settings.rounds, select);
  const auto searching = time(settings.rounds, [&] {
    score();
    select();
  });
  // The speed of the memory when nothing is calculated: a copy reads and writes.
  const size_t copied = std::min<size_t>(bytes / 2, size_t(4) << 30);
  const auto copying = time(10, [&] { REQUIRE(cudaMemcpyAsync(vectors + bytes - copied, vectors, copied, cudaMemcpyDeviceToDevice)); });
  generate<<<4096, 256>>>(reinterpret_cast<uint64_t*>(vectors), bytes / 8, 1);

  const auto scoresHere = toHost(scores, size_t(settings.queries) * settings.chunks);
  const uint64_t compared = compare(settings, documents, host, scoresHere);
  compareTop(settings, scoresHere, toHost(found, size_t(settings.queries) * roomOf(settings)), toHost(places, settings.queries));

  const double median = scoring[scoring.size() / 2];
  const double read = double(rows) / settings.admit * double(settings.shape().bytes() + sizeof(uint16_t));
  std::printf(
      "{\"device\":\"%s\",\"chunks\":%u,\"rows\":%u,\"dim\":%u,\"bits\":%u,\"tokens\":%u,\"queries\":%u,\"top\":%u,\"admit_one_in\":%u,"
      "\"search_ms\":{\"p50\":%.4f,\"p90\":%.4f},\"search_ms_a_query\":%.4f,"
      "\"score_ms\":{\"p10\":%.4f,\"p50\":%.4f,\"p90\":%.4f},\"select_ms\":{\"p50\":%.4f},"
      "\"token_vectors_per_second\":%.4g,\"products_per_second\":%.4g,\"read_gb_per_second\":%.1f,\"copy_gb_per_second\":%.1f,"
      "\"blocks_resident\":%d,\"compared_to_the_last_bit\":%llu,\"recall\":%s}\n",
      device.name, settings.chunks, settings.rows, settings.dim, settings.bits, settings.tokens, settings.queries, settings.top, settings.admit,
      searching[searching.size() / 2], searching[searching.size() * 9 / 10], searching[searching.size() / 2] / float(settings.queries),
      scoring[scoring.size() / 10], median, scoring[scoring.size() * 9 / 10], selecting[selecting.size() / 2],
      double(rows) / settings.admit * settings.queries / median * 1e3,
      double(rows) / settings.admit * settings.queries * host.blocks * blockTokens * settings.dim * 2 / median * 1e3, read / median / 1e6,
      2.0 * double(copied) / copying[copying.size() / 2] / 1e6, resident, (unsigned long long)compared,
      // The best k are those of a sort of these scores, so when all are the CPU's nothing is missed.
      compared == uint64_t(settings.queries) * settings.chunks ? "1.0" : "null");
}
