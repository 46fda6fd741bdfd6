#include "kernels/encoding/quantized_rows.h"

#include "kernels/encoding/row_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

namespace maxsimd {
namespace {

/// Rows whose sums grow side by side, because one sum waits for each addition before the next.
constexpr size_t rowsTogether = gradientRows;

/// Codes that a component of length 1 spans, when `deviation` is that of the row. With one bit only its sign counts.
double codesOfUnit(uint32_t bits, double deviation) {
  if (bits == 1) return 1;
  const double clip = bits == 4 ? 2.4 : 2;  // deviations on either side
  return deviation == 0 ? 0 : double(1 << (bits - 1)) / (clip * deviation);
}

inline void butterfly(float& low, float& high) {
  const float sum = low + high;
  high = low - high;
  low = sum;
}

/// Walsh-Hadamard transform of `size` values, a power of two, in place. It makes a vector longer by the root of `size`.
void transform(float* values, size_t size) {
  if (size == 2) butterfly(values[0], values[1]);
  if (size < 4) return;
  for (size_t i = 0; i < size; i += 4) {
    float* const v = values + i;
    butterfly(v[0], v[1]);
    butterfly(v[2], v[3]);
    butterfly(v[0], v[2]);
    butterfly(v[1], v[3]);
  }
  for (size_t width = 4; width < size; width *= 2) {
    for (size_t block = 0; block < size; block += 2 * width) {
      float* const __restrict low = values + block;
      float* const __restrict high = low + width;
      for (size_t i = 0; i < width; ++i) butterfly(low[i], high[i]);
    }
  }
}

/// The codes of a row. That of a value that is no number does not count: its row has no scale.
template <uint32_t bits>
void codesOf(const float* __restrict vector, size_t dim, double ofUnit, uint8_t* __restrict codes) {
  constexpr double half = double(1 << bits) / 2;
  for (size_t d = 0; d < dim; ++d) {
    const double exact = double(vector[d]) * ofUnit;
    const double within = std::min(exact > -half ? exact : -half, half);
    const int32_t towardsZero = int32_t(within);
    const int32_t floor = towardsZero - int32_t(double(towardsZero) > within);
    codes[d] = uint8_t(std::min(floor + int32_t(half), componentMost(bits)));
  }
}

/// Packs whole strips of codes, as rows.h says.
template <uint32_t bits>
void pack(const uint8_t* __restrict codes, size_t count, int8_t* __restrict stored) {
  constexpr size_t width = stripCodes / 8 * bits;
  for (size_t first = 0; first < count; first += stripCodes, stored += width) {
    for (size_t i = 0; i < width; ++i) {
      uint32_t byte = 0;
      for (size_t part = 0; part < 8 / bits; ++part) byte |= uint32_t(codes[first + part * width + i]) << (part * bits);
      stored[i] = int8_t(byte);
    }
  }
}

/// The scales of some rows: each makes the product of the stored row with its own vector exact.
template <uint32_t bits, size_t rows>
void scalesOf(const float* vectors, size_t dim, const uint8_t* codes, const double (&squares)[rows], float* scales) {
  double products[rows] = {};
  for (size_t d = 0; d < dim; ++d) {
    for (size_t r = 0; r < rows; ++r) {
      const int32_t component = 2 * int32_t(codes[r * paddedComponents(dim) + d]) - componentMost(bits);
      products[r] += double(component) * double(vectors[r * dim + d]);
    }
  }
  for (size_t r = 0; r < rows; ++r) scales[r] = squares[r] == 0 ? 0 : float(squares[r] / products[r]);
}

template <uint32_t bits, size_t rows>
void quantize(const float* vectors, size_t dim, Refinement* refinement, uint8_t* codes, int8_t* stored, float* scales) {
  const size_t width = paddedComponents(dim);
  double squares[rows] = {};
  for (size_t d = 0; d < dim; ++d) {
    for (size_t r = 0; r < rows; ++r) squares[r] += double(vectors[r * dim + d]) * double(vectors[r * dim + d]);
  }
  for (size_t r = 0; r < rows; ++r)
    codesOf<bits>(vectors + r * dim, dim, codesOfUnit(bits, std::sqrt(squares[r] / double(dim))), codes + r * width);
  scalesOf<bits>(vectors, dim, codes, squares, scales);
  if (refinement != nullptr) {
    refinement->refine(vectors, {scales, rows}, codes);
    scalesOf<bits>(vectors, dim, codes, squares, scales);
  }
  for (size_t r = 0; r < rows; ++r)
    pack<bits>(codes + r * width, width, stored + r * RowShape(uint32_t(dim), bits).bytes());
}

template <uint32_t bits>
void quantizeAll(std::span<const float> vectors, size_t dim, Refinement* refinement, std::span<int8_t> stored,
                 std::span<float> scales) {
  const size_t bytes = RowShape(uint32_t(dim), bits).bytes();
  // The codes behind `dim` stay 0.
  std::vector<uint8_t> codes(rowsTogether * paddedComponents(dim));
  size_t row = 0;
  const auto at = [&](auto quantizeSome) {
    quantizeSome(vectors.data() + row * dim, dim, refinement, codes.data(), stored.data() + row * bytes,
                 scales.data() + row);
  };
  for (; row + rowsTogether <= scales.size(); row += rowsTogether) at(quantize<bits, rowsTogether>);
  for (; row < scales.size(); ++row) at(quantize<bits, 1>);
}

/// Quantises a row to 8 bits. Returns its scale.
float quantizeBytes(const float* __restrict vector, size_t dim, int8_t* __restrict stored) {
  constexpr double shift = 6'755'399'441'055'744;  // 1.5 * 2^52: adding it rounds to an integer, half to even
  const float scale = largestMagnitude(vector, dim) / 127;
  if (scale == 0 || !std::isfinite(scale)) {
    std::fill_n(stored, dim, 0);
    return scale == 0 ? 0 : NAN;
  }
  const double inverse = 1 / double(scale);
  for (size_t d = 0; d < dim; ++d) {
    const double value = double(vector[d]) * inverse + shift - shift;
    stored[d] = int8_t(value < -127 ? -127 : value > 127 ? 127 : value);
  }
  return scale;
}

}  // namespace

void rotateRows(std::span<float> vectors, uint32_t dim, std::span<const float> mean, std::span<const float> factors) {
  const size_t size = std::bit_floor(dim);
  for (float* vector = vectors.data(); vector < vectors.data() + vectors.size(); vector += dim) {
    for (size_t d = 0; d < mean.size(); ++d) vector[d] -= mean[d];
    for (size_t round = 0; round < factors.size() / dim; ++round) {
      for (size_t d = 0; d < dim; ++d) vector[d] *= factors[round * dim + d];
      transform(vector + (round % 2 == 0 ? 0 : dim - size), size);
    }
  }
}

void quantizeRows(std::span<const float> vectors, RowShape shape, const RowMoment* moment, std::span<int8_t> stored,
                  std::span<float> scales) {
  std::optional<Refinement> refinement;
  if (moment != nullptr) refinement.emplace(*moment, shape.bits);
  Refinement* const given = refinement.has_value() ? &*refinement : nullptr;
  if (shape.bits == 1) quantizeAll<1>(vectors, shape.dim, given, stored, scales);
  if (shape.bits == 2) quantizeAll<2>(vectors, shape.dim, given, stored, scales);
  if (shape.bits == 4) quantizeAll<4>(vectors, shape.dim, given, stored, scales);
  if (shape.bits != 8) return;
  for (size_t r = 0; r < scales.size(); ++r)
    scales[r] = quantizeBytes(vectors.data() + r * shape.dim, shape.dim, stored.data() + r * shape.bytes());
}

}  // namespace maxsimd
