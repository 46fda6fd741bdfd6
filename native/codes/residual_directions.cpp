#include "codes/residual_directions.h"

#include "codes/codebook.h"
#include "codes/search_tuning.h"
#include "kernels/approximate/code_loops.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace maxsimd {
namespace {

/// Sum of the products of each two components of some residuals: f64 [dim x dim].
std::vector<double> momentOf(const std::vector<float>& residuals, size_t dim, const Deadline& deadline) {
  std::vector<double> moment(dim * dim, 0.0);
  const size_t blocks = residuals.size() / (dim * rowLanes);
  const size_t taken = std::min<size_t>(blocks, SearchTuning::directionRows / rowLanes);
  for (size_t b = 0; b < taken; ++b) {
    deadline.check();
    // The blocks that are taken lie evenly spaced.
    const float* const block = residuals.data() + b * blocks / taken * dim * rowLanes;
    for (size_t i = 0; i < dim; ++i) {
      const float* const x = block + i * rowLanes;
      for (size_t j = 0; j <= i; ++j) {
        const float* const y = block + j * rowLanes;
        float lanes[4]{};
        for (size_t r = 0; r < rowLanes; ++r) lanes[r % 4] += x[r] * y[r];
        moment[i * dim + j] += double(lanes[0] + lanes[1] + lanes[2] + lanes[3]);
      }
    }
  }
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = i + 1; j < dim; ++j) moment[i * dim + j] = moment[j * dim + i];
  }
  return moment;
}

double dot(const double* a, const double* b, size_t dim) {
  double sum = 0;
  for (size_t d = 0; d < dim; ++d) sum += a[d] * b[d];
  return sum;
}

/// Makes each row (f64 [rows x dim]) orthogonal to those before it and of length 1 (modified Gram-Schmidt). A row that
/// the others leave nothing of becomes a coordinate axis first.
void orthonormalise(std::vector<double>& rows, size_t dim) {
  for (size_t r = 0; r < rows.size() / dim; ++r) {
    double* const own = rows.data() + r * dim;
    const double before = std::sqrt(dot(own, own, dim));
    for (size_t axis = 0;; ++axis) {
      // Twice is enough (Kahan and Parlett).
      for (int pass = 0; pass < 2; ++pass) {
        for (size_t other = 0; other < r; ++other) {
          const double* const direction = rows.data() + other * dim;
          const double along = dot(own, direction, dim);
          for (size_t d = 0; d < dim; ++d) own[d] -= along * direction[d];
        }
      }
      const double length = std::sqrt(dot(own, own, dim));
      if (length > (axis == 0 ? 1e-9 * before : 1e-3)) {
        for (size_t d = 0; d < dim; ++d) own[d] /= length;
        break;
      }
      std::fill(own, own + dim, 0.0);
      own[axis] = 1.0;
    }
  }
}

}  // namespace

std::vector<float> directionsOf(const std::vector<float>& residuals, uint32_t dim, const Deadline& deadline) {
  const size_t count = std::min(dim, SearchTuning::directions);
  const std::vector<double> moment = momentOf(residuals, dim, deadline);
  std::mt19937_64 random{0x6d61787369};
  std::vector<double> found(count * dim), next(count * dim);
  for (double& value : found) value = double(int64_t(random() >> 11)) / double(1ll << 52) - 1.0;
  orthonormalise(found, dim);
  for (uint32_t round = 0; round < SearchTuning::directionRounds; ++round) {
    deadline.check();
    for (size_t r = 0; r < count; ++r) {
      for (size_t d = 0; d < dim; ++d) next[r * dim + d] = dot(found.data() + r * dim, moment.data() + d * dim, dim);
    }
    found.swap(next);
    orthonormalise(found, dim);
  }
  // The largest come first. Every other row of them runs backwards over the subspaces.
  const size_t width = subspaceDimOf(uint32_t(count));
  std::vector<float> directions(count * dim);
  size_t taken = 0;
  for (size_t slot = 0; slot < width; ++slot) {
    for (size_t i = 0; i < subspaces; ++i) {
      const size_t subspace = slot % 2 == 0 ? i : subspaces - 1 - i, to = subspace * width + slot;
      if (to >= count) continue;
      for (size_t d = 0; d < dim; ++d) directions[to * dim + d] = float(found[taken * dim + d]);
      ++taken;
    }
  }
  return directions;
}

}  // namespace maxsimd
