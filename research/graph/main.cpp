// routes [--bits 14,16,18] [--kernels amx,avx2] [--batches 24] DIRECTORY...: what finding the nearest centroids of 32
// query tokens costs by products with all of them, by a tree of two levels and by a graph. Processor time of one
// thread; the sides take turns, batch by batch. Queries are those of the first directory.
#include "centroids.h"
#include "routes.h"

#include "codes/nearest.h"
#include "kernels/dispatch.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <sstream>

using namespace research;

namespace {

constexpr uint32_t batchTokens = 32;

double cpuMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
  return values[values.size() / 2];
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

struct Side {
  std::string name;
  std::function<Found(const int8_t*, uint32_t several)> find;
  std::vector<double> ms[2];
  double shared[2] = {0, 0};
};

constexpr uint32_t severals[2] = {16, 64};

void compare(const maxsimd::Kernel& kernel, const Centroids& centroids, const Graph& graph, const Rows& tokens,
             uint32_t batches) {
  std::vector<uint8_t> table;
  std::vector<Side> sides;
  sides.push_back({"products", [&](const int8_t* t, uint32_t n) {
                     return byProducts(kernel, centroids, t, batchTokens, n, table);
                   }, {}, {}});
  for (const uint32_t probed : {4u, 8u, 16u, 32u}) {
    sides.push_back({"tree, " + std::to_string(probed) + " groups", [&, probed](const int8_t* t, uint32_t n) {
                       return byTree(kernel, centroids, t, batchTokens, n, probed);
                     }, {}, {}});
  }
  for (const uint32_t expansion : {64u, 128u, 256u}) {
    sides.push_back({"graph, expansion " + std::to_string(expansion), [&, expansion](const int8_t* t, uint32_t n) {
                       return graph.search(kernel, t, batchTokens, n, expansion);
                     }, {}, {}});
  }
  const uint32_t all = tokens.rows / batchTokens;
  for (uint32_t b = 0; b < batches; ++b) {
    const int8_t* batch = tokens.vectors.data() + size_t(uint64_t(b) * all / batches) * batchTokens * dim;
    for (uint32_t s = 0; s < 2; ++s) {
      // All groups looked into: exactly the nearest.
      std::vector<std::set<uint32_t>> truth;
      for (const auto& own : byTree(kernel, centroids, batch, batchTokens, severals[s], centroids.groupCount()))
        truth.emplace_back(own.begin(), own.end());
      for (size_t i = 0; i < sides.size(); ++i) {
        const double start = cpuMs();
        const Found found = sides[i].find(batch, severals[s]);
        sides[i].ms[s].push_back(cpuMs() - start);
        for (uint32_t t = 0; t < batchTokens; ++t) {
          for (const uint32_t k : found[t]) sides[i].shared[s] += double(truth[t].count(k));
        }
      }
    }
  }
  for (const Side& side : sides) {
    std::printf("| %s | %u | %s |", kernel.name, centroids.count(), side.name.c_str());
    for (uint32_t s = 0; s < 2; ++s)
      std::printf(" %.2f | %.3f |", median(side.ms[s]), side.shared[s] / (double(batches) * batchTokens * severals[s]));
    std::printf("\n");
  }
  std::fflush(stdout);
}

/// Token vectors of the index that find their one centroid.
void compareAssigning(const maxsimd::Kernel& kernel, const Centroids& centroids, const Graph& graph, const Rows& rows) {
  constexpr uint32_t count = 4096;
  const int8_t* sample = rows.vectors.data() + size_t(rows.rows / 2) * dim;
  std::vector<uint32_t> truth(count);
  std::vector<float> similarities(count);
  maxsimd::nearestOf(kernel, dim, sample, count, centroids.chunk(0, centroids.count()), similarities.data(), truth.data());
  const auto show = [&](const char* name, const std::function<Found()>& find) {
    const double start = cpuMs();
    const Found found = find();
    const double microseconds = (cpuMs() - start) * 1e3 / count;
    uint32_t right = 0;
    for (uint32_t r = 0; r < count; ++r) right += found[r].front() == truth[r];
    std::fprintf(stderr, "%s, %s: %.2f us a token vector, %.3f nearest\n", kernel.name, name, microseconds,
                 double(right) / count);
  };
  show("assigned by tree, 8 groups", [&] { return assignByTree(kernel, centroids, sample, count); });
  for (const uint32_t expansion : {16u, 32u, 64u})
    show(("assigned by graph, expansion " + std::to_string(expansion)).c_str(),
         [&] { return graph.search(kernel, sample, count, 1, expansion); });
}

}  // namespace

int main(int argc, char** argv) {
  std::string bits = "14,16,18", names = "auto";
  uint32_t batches = 24, rounds = 4;
  std::vector<std::string> directories;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--bits") bits = argv[++i];
    else if (argument == "--kernels") names = argv[++i];
    else if (argument == "--batches") batches = uint32_t(std::stoul(argv[++i]));
    else if (argument == "--rounds") rounds = uint32_t(std::stoul(argv[++i]));
    else directories.push_back(argument);
  }
  const maxsimd::Kernel& fastest = *maxsimd::findKernel("auto");
  const Rows rows = readTokenVectors(directories);
  const Rows tokens = readQueryTokens(directories.front());
  std::printf("%u token vectors, %u query tokens\n\n", rows.rows, tokens.rows);
  std::printf("| kernel | centroids | side | ms for 16 lists | shared | ms for 64 lists | shared |\n|---|---|---|---|---|---|---|\n");
  for (const std::string& bit : split(bits)) {
    double start = cpuMs();
    const Centroids centroids = fit(fastest, rows, uint32_t(std::stoul(bit)), rounds);
    const double fitted = (cpuMs() - start) / 1e3;
    start = cpuMs();
    const Graph graph(fastest, centroids, 16, 128);
    std::fprintf(stderr, "%u centroids: fitted in %.1f s, graph in %.1f s, %.0f bytes a centroid\n", centroids.count(),
                 fitted, (cpuMs() - start) / 1e3, double(graph.bytes()) / centroids.count());
    for (const std::string& name : split(names)) {
      const maxsimd::Kernel* kernel = maxsimd::findKernel(name);
      if (kernel == nullptr) throw std::runtime_error("no such kernel here: " + name);
      compareAssigning(*kernel, centroids, graph, rows);
      compare(*kernel, centroids, graph, tokens, batches);
    }
  }
}
