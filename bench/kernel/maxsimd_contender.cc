/** Our kernels as contenders: int8 rows with an f16 scale each, one contender per supported kernel. */
#include "contender.h"
#include "kernels/dispatch.h"
#include "kernels/half.h"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

using maxsimd::Chunk;
using maxsimd::Kernel;
using maxsimd::PackedQuery;

/** Symmetric int8 of one row; returns its scale. */
float quantise(const float *row, std::size_t dim, std::int8_t *out) {
    float largest = 0;
    for (std::size_t d = 0; d < dim; ++d) largest = std::max(largest, std::abs(row[d]));
    const float scale = largest / 127.0f;
    for (std::size_t d = 0; d < dim; ++d) out[d] = static_cast<std::int8_t>(scale > 0 ? std::nearbyint(row[d] / scale) : 0);
    return scale;
}

class MaxsimdContender final : public Contender {
public:
    explicit MaxsimdContender(const Kernel &kernel) : kernel_(kernel) {}
    std::string name() const override { return std::string("maxsimd_") + kernel_.name; }
    std::string family() const override { return "maxsimd"; }
    bool uses_amx() const override { return name() == "maxsimd_amx"; }

    void load(const Chunks &chunks) override {
        dim_ = chunks.dim;
        // The layout of a segment: a chunk's rows, then its scales in a 64-byte-aligned section of their own.
        std::vector<std::size_t> sizes;
        for (std::size_t c = 0; c < chunks.count(); ++c) {
            sizes.push_back(rounded(chunks.rows_of(c) * dim_));
            sizes.push_back(chunks.rows_of(c) * sizeof(std::uint16_t));
        }
        packed_ = std::make_unique<PackedChunks>(64, sizes);
        for (std::size_t c = 0; c < chunks.count(); ++c) {
            auto *vectors = reinterpret_cast<std::int8_t *>(packed_->at(2 * c));
            auto *scales = reinterpret_cast<std::uint16_t *>(packed_->at(2 * c + 1));
            for (std::size_t r = 0; r < chunks.rows_of(c); ++r) {
                scales[r] = maxsimd::floatToHalf(quantise(chunks.chunk(c) + r * dim_, dim_, vectors + r * dim_));
            }
            chunks_.push_back({vectors, scales, static_cast<std::uint32_t>(chunks.rows_of(c))});
        }
    }

    std::size_t packed_bytes() const override { return packed_->bytes(); }

    void set_query(const float *query, std::size_t rows) override {
        const auto tokens = static_cast<std::uint32_t>(rows);
        std::vector<std::int8_t> vectors(rows * dim_);
        scales_.assign(maxsimd::paddedTokens(tokens), 0.0f);
        offsets_.assign(maxsimd::paddedTokens(tokens), 0.0f);
        for (std::size_t q = 0; q < rows; ++q) scales_[q] = quantise(query + q * dim_, dim_, vectors.data() + q * dim_);
        const auto dim = static_cast<std::uint32_t>(dim_);
        query_storage_ = std::make_unique<PackedChunks>(64, std::vector<std::size_t>{kernel_.packedBytes(dim, tokens)});
        kernel_.pack(vectors.data(), dim, tokens, query_storage_->at(0));
        query_ = {dim, tokens, maxsimd::paddedTokens(tokens), query_storage_->at(0), scales_.data(), offsets_.data()};
    }

    void prepare_thread() const override {}

    void score(const std::uint32_t *chunks, std::size_t count, float *scores) const override {
        thread_local std::vector<Chunk> picked;
        picked.resize(count);
        for (std::size_t i = 0; i < count; ++i) picked[i] = chunks_[chunks[i]];
        kernel_.maxsim(query_, picked.data(), count, scores);
    }

private:
    static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

    const Kernel &kernel_;
    std::size_t dim_ = 0;
    std::unique_ptr<PackedChunks> packed_, query_storage_;
    std::vector<Chunk> chunks_;
    std::vector<float> scales_, offsets_;
    PackedQuery query_{};
};

} // namespace

std::vector<std::unique_ptr<Contender>> maxsimd_contenders() {
    std::vector<std::unique_ptr<Contender>> contenders;
    for (const Kernel *kernel : maxsimd::kernels()) {
        if (kernel->requires_(maxsimd::cpuFeatures())) contenders.push_back(std::make_unique<MaxsimdContender>(*kernel));
    }
    return contenders;
}

} // namespace bench
