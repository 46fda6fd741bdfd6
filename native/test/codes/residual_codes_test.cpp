// Compares the loops over codes with plain loops: entries, codewords and sums.
#include "codes/codebook_fit.h"
#include "codes/search_tuning.h"
#include "runtime/query.h"
#include "kernels/dispatch.h"
#include "kernels/half.h"
#include "test/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

namespace maxsimd::test {
namespace {

/// The loops of every kernel that runs here.
std::set<const CodeLoops*> comparedLoops() {
  std::set<const CodeLoops*> all;
  for (const Kernel* kernel : kernels()) {
    if (kernel->requires_(cpuFeatures())) all.insert(kernel->loops);
  }
  return all;
}

/// Whether a token vector of this code may be the best of its chunk for one of 32 query tokens from `token` on.
bool isWorthy(const ResidualTable& table, const std::vector<uint32_t>& codes, uint32_t code, uint32_t token) {
  for (uint32_t i = token; i < token + tableLanes; ++i) {
    int highest = 0;
    for (const uint32_t other : codes) highest = std::max<int>(highest, table.entries[other * table.tokensPadded + i]);
    if (table.entries[code * table.tokensPadded + i] >= std::max(1, highest - table.margins[i])) return true;
  }
  return false;
}

const Case plain(
    "codewords", "entries, codewords and residual sums of every kernel match plain loops", [](Random& random) {
      for (const CodeLoops* loops : comparedLoops())
        for (int round = 0; round < 60; ++round) {
          const uint32_t tokens = between(random, 1, 70), stride = paddedTokens(tokens), padded = tableTokens(tokens);
          const uint32_t centroids = between(random, 1, 300);
          std::uniform_real_distribution<float> value(-1.5f, 1.5f);
          std::vector<float> similarities(size_t(centroids) * stride), floors(stride), factors(stride);
          for (auto* values : {&similarities, &floors, &factors}) {
            for (float& one : *values) one = value(random);
          }
          for (float& factor : factors) factor = std::abs(factor) * 120.0f;
          AlignedVector<uint8_t> entries(size_t(std::bit_ceil(centroids)) * padded, 0);
          loops->quantizeEntries(similarities.data(), centroids, stride, stride, floors.data(), factors.data(),
                                 entries.data(), padded);
          for (uint32_t k = 0; k < centroids; ++k) {
            for (uint32_t i = 0; i < stride; ++i) {
              const float entry = (similarities[k * stride + i] - floors[i]) * factors[i] + 0.5f;
              CHECK(entries[k * padded + i] == uint8_t(std::clamp(entry, 0.0f, 255.0f)));
            }
          }

          // Sums fit a byte. The engine makes sure of that.
          const auto factor = uint16_t(between(random, 0, 100));
          AlignedVector<uint8_t> residuals(size_t(subspaces) * codewords * padded);
          for (auto& byte : residuals) byte = uint8_t(random() % (150 / subspaces));
          std::vector<uint32_t> codes(between(random, 1, 40));
          std::vector<uint32_t> stored;
          std::vector<uint8_t> bytes;
          for (auto& code : codes) {
            code = uint32_t(random() % centroids);
            stored.push_back(code | between(random, 1, 8) << centroidBits);
            for (uint32_t b = 0; b < (stored.back() >> centroidBits) * residualBytes; ++b)
              bytes.push_back(uint8_t(random()));
          }
          AlignedVector<uint8_t> margins(padded);
          for (auto& margin : margins) margin = uint8_t(round % 3 == 0 ? 255 : random() % 60);
          const uint32_t mask = std::bit_ceil(centroids) - 1;
          const ResidualTable table{padded, entries.data(), mask, factor, residuals.data(), margins.data()};
          auto rows = uint32_t(bytes.size() / residualBytes);
          // Runs that claim more token vectors than the chunk has.
          if (round % 5 == 0) rows -= std::min(rows, between(random, 0, 6));
          uint32_t sumOfHighest = 0, expected = 0;
          for (uint32_t i = 0; i < padded; ++i) {
            uint32_t most = 0, mostByBoth = 0, row = 0;
            for (size_t k = 0; k < codes.size(); ++k) {
              most = std::max<uint32_t>(most, entries[codes[k] * padded + i]);
              const bool counts = isWorthy(table, codes, codes[k], i / tableLanes * tableLanes);
              for (uint32_t j = 0; j < stored[k] >> centroidBits && row < rows; ++j, ++row) {
                uint32_t similarity = uint32_t(entries[codes[k] * padded + i]) * factor >> 8;
                for (uint32_t m = 0; m < subspaces; ++m) {
                  const uint32_t codeword = bytes[row * residualBytes + m / 2] >> (m % 2 * 4) & 15;
                  similarity += residuals[((i / tableLanes * subspaces + m) * codewords + codeword) * tableLanes +
                                          i % tableLanes];
                }
                if (counts) mostByBoth = std::max(mostByBoth, similarity);
              }
            }
            sumOfHighest += most;
            expected += mostByBoth;
          }
          CHECK(loops->sumOfMaxima(table, stored) == sumOfHighest);
          CHECK(loops->sumOfResidualMaxima(table, {stored, bytes.data(), rows}) == expected);

          AlignedVector<uint8_t> least(padded, 0);
          for (uint32_t i = 0; i < tokens; ++i) least[i] = uint8_t(between(random, 0, 255));
          std::vector<TableHit> hits;
          loops->collectHits(entries.data(), centroids, padded, least.data(), hits);
          size_t hit = 0;
          for (uint32_t k = 0; k < centroids; ++k) {
            for (uint32_t i = 0; i < padded; ++i) {
              const uint8_t entry = entries[k * padded + i];
              if (least[i] == 0 || entry < least[i]) continue;
              CHECK(hit < hits.size() && hits[hit].code == k && hits[hit].token == i && hits[hit].entry == entry);
              ++hit;
            }
          }
          CHECK(hit == hits.size());
        }
    });

const Case encoded("codewords", "token vectors of any dimension have the nearest codewords of their remainders",
                   [](Random& random) {
                     const Kernel& kernel = *findKernel("auto");
                     for (const uint32_t odd : {1u, 2u, 7u, 8u, 9u, 96u, 100u, 128u, 256u, 257u, 300u, 1000u, 1024u}) {
                       CHECK(subspaces * subspaceDimOf(odd) >= odd);
                       const Clusters clusters(random, odd, 5);
                       std::vector<float> values;
                       for (uint32_t r = 0; r < 1100; ++r) {
                         for (const float value : clusters.near(random, r % 5)) values.push_back(value);
                       }
                       TokenSample sample;
                       sample.rows = 1100;
                       for (uint32_t r = 0; r < sample.rows; ++r) {
                         for (uint32_t d = 0; d < odd; ++d)
                           sample.vectors.push_back(int8_t(std::lround(values[r * odd + d] * 127.0f)));
                         sample.scales.push_back(floatToHalf(1.0f / 127.0f));
                       }
                       sample.vectors.resize(sample.vectors.size() + readPaddingBytes);
                       const TokenSample all = sample;
                       const bool directed = random() % 2 == 0;
                       const Codebook codebook(kernel, fitCodebook(kernel, odd, sample, sample, 20, {}, directed));
                       const CodebookData& data = codebook.data();
                       CHECK(data.components() == (directed ? std::min(odd, SearchTuning::directions) : odd));
                       // The component of a residual that word component `c` describes.
                       const auto componentOf = [&](uint32_t r, uint32_t code, uint32_t c) {
                         if (c >= data.components()) return 0.0;
                         double sum = 0;
                         for (uint32_t d = 0; d < odd; ++d) {
                           const double along = !directed ? double(d == c)
                                                          : double(data.directions[size_t(c) * odd + d]) *
                                                                double(halfToFloat(data.directionScales[c]));
                           sum += along * (double(all.vectors[r * odd + d]) * double(halfToFloat(all.scales[r])) -
                                           double(data.centroids[code * odd + d]) *
                                               double(halfToFloat(data.scales[code])) * double(data.share));
                         }
                         return sum;
                       };
                       const uint32_t rows = between(random, 1, 40), width = data.subspaceDim();
                       std::vector<uint32_t> codes(rows);
                       codebook.assign(all.vectors.data(), rows, codes.data());
                       std::vector<uint8_t> bytes(size_t(rows) * residualBytes);
                       codebook.encode(all.vectors.data(), all.scales.data(), rows, codes.data(), bytes.data());
                       double before = 0, after = 0;
                       for (uint32_t r = 0; r < rows; ++r) {
                         for (uint32_t m = 0; m < subspaces; ++m) {
                           std::vector<double> distances(codewords, 0.0);
                           for (uint32_t w = 0; w < codewords; ++w) {
                             for (uint32_t d = 0; d < width; ++d) {
                               const double left = componentOf(r, codes[r], m * width + d);
                               const double word = double(data.codewords[(m * codewords + w) * width + d]);
                               distances[w] += (left - word) * (left - word);
                               if (w == 0) before += left * left;
                             }
                           }
                           const uint32_t chosen = bytes[r * residualBytes + m / 2] >> (m % 2 * 4) & 15;
                           after += distances[chosen];
                           CHECK(distances[chosen] <= *std::min_element(distances.begin(), distances.end()) + 1e-5);
                         }
                       }
                       CHECK(after <= before + 1e-6);
                     }
                   });

/// Rows of `wide` dimensions whose variance differs from direction to direction, in a random basis.
struct UnevenRows {
  static constexpr uint32_t wide = 192;

  explicit UnevenRows(Random& random) {
    for (uint32_t i = 0; i < wide; ++i) {
      std::vector<float> direction(wide);
      for (float& value : direction) value = normal(random);
      for (const auto& other : basis) {
        float along = 0;
        for (uint32_t d = 0; d < wide; ++d) along += direction[d] * other[d];
        for (uint32_t d = 0; d < wide; ++d) direction[d] -= along * other[d];
      }
      float square = 0;
      for (const float value : direction) square += value * value;
      for (float& value : direction) value /= std::sqrt(square);
      basis.push_back(std::move(direction));
    }
  }

  std::vector<float> next(Random& random) const {
    std::vector<float> row(wide);
    float square = 0;
    for (uint32_t i = 0; i < wide; ++i) {
      const float length = normal(random) / std::sqrt(1.0f + float(i) / 8.0f);
      for (uint32_t d = 0; d < wide; ++d) row[d] += length * basis[i][d];
    }
    for (const float value : row) square += value * value;
    for (float& value : row) value /= std::sqrt(square);
    return row;
  }

  static float normal(Random& random) {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += float(random() % 10'001) / 10'000.0f;
    return sum;
  }

  std::vector<std::vector<float>> basis;
};

const Case directed("residuals", "directions lose less of a similarity than all components do, and are orthonormal",
                    [](Random& random) {
                      constexpr uint32_t wide = UnevenRows::wide, rows = 2'000;
                      const Kernel& kernel = *findKernel("auto");
                      const UnevenRows uneven(random);
                      TokenSample sample;
                      sample.rows = rows;
                      for (uint32_t r = 0; r < rows; ++r) {
                        for (const float value : uneven.next(random))
                          sample.vectors.push_back(int8_t(std::clamp(value * 300.0f, -127.0f, 127.0f)));
                        sample.scales.push_back(floatToHalf(1.0f / 300.0f));
                      }
                      sample.vectors.resize(sample.vectors.size() + readPaddingBytes);
                      sample.scales.resize(sample.scales.size() + readPaddingBytes);
                      std::vector<double> errors;
                      for (const bool with : {false, true}) {
                        const CodebookData data = fitCodebook(kernel, wide, sample, sample, 16, {}, with);
                        const Codebook codebook(kernel, data);
                        std::vector<uint32_t> codes(rows);
                        codebook.assign(sample.vectors.data(), rows, codes.data());
                        std::vector<uint8_t> bytes(size_t(rows) * residualBytes);
                        codebook.encode(sample.vectors.data(), sample.scales.data(), rows, codes.data(), bytes.data());
                        const auto direction = [&](uint32_t c, uint32_t d) {
                          if (!with) return double(c == d);
                          return double(data.directions[size_t(c) * wide + d]) *
                                 double(halfToFloat(data.directionScales[c]));
                        };
                        for (uint32_t a = 0; with && a < data.components(); ++a) {
                          for (uint32_t b = 0; b <= a; ++b) {
                            double product = 0;
                            for (uint32_t d = 0; d < wide; ++d) product += direction(a, d) * direction(b, d);
                            CHECK(std::abs(product - double(a == b)) < 0.03);
                          }
                        }
                        double squares = 0;
                        for (uint32_t q = 0; q < 40; ++q) {
                          const std::vector<float> query = uneven.next(random);
                          std::vector<double> along(data.components());
                          for (uint32_t c = 0; c < along.size(); ++c) {
                            for (uint32_t d = 0; d < wide; ++d) along[c] += direction(c, d) * double(query[d]);
                          }
                          for (uint32_t r = q; r < rows; r += 40) {
                            double error = 0;
                            for (uint32_t d = 0; d < wide; ++d) {
                              error += double(query[d]) *
                                       (double(sample.vectors[r * wide + d]) * double(halfToFloat(sample.scales[r])) -
                                        double(data.centroids[codes[r] * wide + d]) *
                                            double(halfToFloat(data.scales[codes[r]])) * double(data.share));
                            }
                            for (uint32_t c = 0; c < along.size(); ++c) {
                              const uint32_t width = data.subspaceDim(), m = c / width;
                              const uint32_t word = bytes[r * residualBytes + m / 2] >> (m % 2 * 4) & 15;
                              error -= along[c] * double(data.codewords[(m * codewords + word) * width + c % width]);
                            }
                            squares += error * error;
                          }
                        }
                        errors.push_back(std::sqrt(squares / rows));
                      }
                      std::printf("  error of a similarity: %.4f with all components, %.4f with directions\n",
                                  errors[0], errors[1]);
                      CHECK(errors[1] < 0.9 * errors[0]);
                    });

}  // namespace
}  // namespace maxsimd::test
