#include "data.h"

#include <cmath>
#include <limits>
#include <random>

namespace bench {
namespace {

constexpr std::size_t topic_count = 256;
constexpr float common_weight = 0.55f, topic_weight = 0.9f, noise_weight = 1.0f, query_noise = 0.5f;

void normalise(float *row, std::size_t dim) {
    double square = 0;
    for (std::size_t d = 0; d < dim; ++d) square += static_cast<double>(row[d]) * row[d];
    const float factor = static_cast<float>(1.0 / std::sqrt(square));
    for (std::size_t d = 0; d < dim; ++d) row[d] *= factor;
}

/** Unit vector whose parts along the rows of `axes` decay like a power law: anisotropic, and of no axis of its components. */
std::vector<float> direction(std::mt19937_64 &random, const std::vector<float> &axes, std::size_t dim) {
    std::normal_distribution<float> normal;
    std::vector<float> row(dim);
    for (std::size_t axis = 0; axis < dim; ++axis) {
        const float part = normal(random) / std::sqrt(1.0f + 0.05f * static_cast<float>(axis));
        for (std::size_t d = 0; d < dim; ++d) row[d] += part * axes[axis * dim + d];
    }
    normalise(row.data(), dim);
    return row;
}

} // namespace

Chunks make_chunks(std::size_t count, std::size_t dim, std::size_t rows_min, std::size_t rows_max, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::size_t> rows_distribution(rows_min, rows_max), topic(0, topic_count - 1), pick(0, 3);
    std::normal_distribution<float> any;
    std::vector<float> axes(dim * dim);
    for (float &value : axes) value = any(random);
    const std::vector<float> common = direction(random, axes, dim);
    std::vector<std::vector<float>> topics;
    for (std::size_t t = 0; t < topic_count; ++t) topics.push_back(direction(random, axes, dim));
    Chunks chunks{dim, {0}, {}};
    for (std::size_t c = 0; c < count; ++c) chunks.first.push_back(chunks.first.back() + rows_distribution(random));
    // Slack rows keep vector loads behind the last row inside the allocation.
    chunks.rows.resize(chunks.first.back() * dim + 64);
    std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(dim)));
    for (std::size_t c = 0; c < count; ++c) {
        const std::size_t chosen[4] = {topic(random), topic(random), topic(random), topic(random)};
        for (std::size_t r = chunks.first[c]; r < chunks.first[c + 1]; ++r) {
            const std::vector<float> &own = topics[chosen[pick(random)]];
            float *row = chunks.rows.data() + r * dim;
            for (std::size_t d = 0; d < dim; ++d) {
                row[d] = common_weight * common[d] + topic_weight * own[d] + noise_weight * normal(random);
            }
            normalise(row, dim);
        }
    }
    return chunks;
}

std::vector<float> make_query(const Chunks &chunks, std::size_t rows, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::size_t chunk = std::uniform_int_distribution<std::size_t>(0, chunks.count() - 1)(random);
    std::uniform_int_distribution<std::size_t> row_of(0, chunks.rows_of(chunk) - 1);
    std::normal_distribution<float> normal(0.0f, query_noise / std::sqrt(static_cast<float>(chunks.dim)));
    std::vector<float> query(rows * chunks.dim + 64);
    for (std::size_t q = 0; q < rows; ++q) {
        const float *from = chunks.chunk(chunk) + row_of(random) * chunks.dim;
        for (std::size_t d = 0; d < chunks.dim; ++d) query[q * chunks.dim + d] = from[d] + normal(random);
        normalise(query.data() + q * chunks.dim, chunks.dim);
    }
    return query;
}

double reference_score(const Chunks &chunks, std::size_t chunk, const std::vector<float> &query, std::size_t rows) {
    double total = 0;
    for (std::size_t q = 0; q < rows; ++q) {
        double best = -std::numeric_limits<double>::infinity();
        for (std::size_t r = 0; r < chunks.rows_of(chunk); ++r) {
            const float *a = query.data() + q * chunks.dim, *b = chunks.chunk(chunk) + r * chunks.dim;
            double sum[4] = {0, 0, 0, 0};
            std::size_t d = 0;
            for (; d + 4 <= chunks.dim; d += 4) {
                for (std::size_t k = 0; k < 4; ++k) sum[k] += static_cast<double>(a[d + k]) * b[d + k];
            }
            for (; d < chunks.dim; ++d) sum[0] += static_cast<double>(a[d]) * b[d];
            best = std::max(best, sum[0] + sum[1] + sum[2] + sum[3]);
        }
        total += best;
    }
    return total;
}

} // namespace bench
