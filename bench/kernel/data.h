/** Seeded synthetic token matrices with the features of real ones: unit norm, topics, a common direction, a decaying spectrum. */
#pragma once
#include "contender.h"

namespace bench {

Chunks make_chunks(std::size_t count, std::size_t dim, std::size_t rows_min, std::size_t rows_max, std::uint64_t seed);

/** A query of `rows` rows: noisy copies of rows of one chunk, so that it has near and far chunks. */
std::vector<float> make_query(const Chunks &chunks, std::size_t rows, std::uint64_t seed);

/** float64 MaxSim of f32 inputs. */
double reference_score(const Chunks &chunks, std::size_t chunk, const std::vector<float> &query, std::size_t rows);

} // namespace bench
