/** Our kernels as contenders: rows of 8, 4, 2 or 1 bits with an f16 scale each, one contender per supported kernel and bits. */
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

/** Codes of one row, between four standard deviations, as an encoder makes them but for the rotation; returns its scale. */
float quantise_few_bits(const float *row, maxsimd::RowShape shape, std::int8_t *out) {
    const int most = maxsimd::componentMost(shape.bits);
    const std::uint32_t width = maxsimd::stripCodes / 8 * shape.bits;
    double squares = 0, product = 0;
    for (std::uint32_t d = 0; d < shape.dim; ++d) squares += static_cast<double>(row[d]) * row[d];
    const double clip = shape.bits == 4 ? 2.4 : 2;
    const double codes = (most + 1) / 2 / (clip * std::sqrt(squares / shape.dim));
    std::fill_n(out, shape.bytes(), std::int8_t(0));
    for (std::uint32_t d = 0; d < shape.dim; ++d) {
        const int code = std::clamp(static_cast<int>(std::floor(row[d] * codes)) + (most + 1) / 2, 0, most);
        const std::uint32_t within = d % maxsimd::stripCodes;
        out[d / maxsimd::stripCodes * width + within % width] |= static_cast<std::int8_t>(code << within / width * shape.bits);
        product += (2 * code - most) * static_cast<double>(row[d]);
    }
    return static_cast<float>(squares / product);
}

/** Chunks in the layout of a segment: a chunk's rows, then its scales in a 64-byte-aligned section of their own. */
class StoredChunks {
public:
    explicit StoredChunks(std::uint32_t bits) : bits(bits) {}

    void load(const Chunks &from) {
        if (packed_) return;
        const maxsimd::RowShape shape(static_cast<std::uint32_t>(from.dim), bits);
        const auto stored = [&](const float *row, std::int8_t *out) {
            return bits == 8 ? quantise(row, from.dim, out) : quantise_few_bits(row, shape, out);
        };
        std::vector<std::size_t> sizes;
        for (std::size_t c = 0; c < from.count(); ++c) {
            sizes.push_back(from.rows_of(c) * shape.bytes());
            sizes.push_back(from.rows_of(c) * sizeof(std::uint16_t));
        }
        packed_ = std::make_unique<PackedChunks>(64, sizes);
        for (std::size_t c = 0; c < from.count(); ++c) {
            auto *vectors = reinterpret_cast<std::int8_t *>(packed_->at(2 * c));
            auto *scales = reinterpret_cast<std::uint16_t *>(packed_->at(2 * c + 1));
            for (std::size_t r = 0; r < from.rows_of(c); ++r)
                scales[r] = maxsimd::floatToHalf(stored(from.chunk(c) + r * from.dim, vectors + r * shape.bytes()));
            chunks.push_back({vectors, scales, static_cast<std::uint32_t>(from.rows_of(c))});
        }
    }
    std::size_t bytes() const { return packed_->bytes(); }

    const std::uint32_t bits;
    std::vector<Chunk> chunks;

private:
    std::unique_ptr<PackedChunks> packed_;
};

class MaxsimdContender final : public Contender {
public:
    MaxsimdContender(const Kernel &kernel, std::shared_ptr<StoredChunks> stored) : kernel_(kernel), stored_(std::move(stored)) {}
    std::string name() const override { return named(kernel_.name); }
    std::string family() const override { return "maxsimd"; }
    bool uses_amx() const override { return kernel_.name == std::string("amx"); }
    std::string equals() const override { return named(maxsimd::scalarKernel.name); }

    void load(const Chunks &chunks) override {
        dim_ = chunks.dim;
        stored_->load(chunks);
    }

    std::size_t packed_bytes() const override { return stored_->bytes(); }

    void set_query(const float *query, std::size_t rows) override {
        const auto tokens = static_cast<std::uint32_t>(rows);
        std::vector<std::int8_t> vectors(rows * dim_);
        scales_.assign(maxsimd::paddedTokens(tokens), 0.0f);
        offsets_.assign(maxsimd::paddedTokens(tokens), 0.0f);
        for (std::size_t q = 0; q < rows; ++q) scales_[q] = quantise(query + q * dim_, dim_, vectors.data() + q * dim_);
        const maxsimd::RowShape shape(static_cast<std::uint32_t>(dim_), stored_->bits);
        query_storage_ = std::make_unique<PackedChunks>(64, std::vector<std::size_t>{kernel_.packedBytes(shape, tokens)});
        kernel_.pack(vectors.data(), shape, tokens, query_storage_->at(0));
        query_ = {shape.dim, tokens, maxsimd::paddedTokens(tokens), query_storage_->at(0), scales_.data(), offsets_.data(), shape.bits};
    }

    void prepare_thread() const override {}

    void score(const std::uint32_t *chunks, std::size_t count, float *scores) const override {
        thread_local std::vector<Chunk> picked;
        picked.resize(count);
        for (std::size_t i = 0; i < count; ++i) picked[i] = stored_->chunks[chunks[i]];
        kernel_.maxsim(query_, picked.data(), count, scores);
    }

private:
    std::string named(const char *kernel) const {
        const std::string name = std::string("maxsimd_") + kernel;
        return stored_->bits == 8 ? name : name + "_" + std::to_string(stored_->bits) + "bit";
    }

    const Kernel &kernel_;
    const std::shared_ptr<StoredChunks> stored_;
    std::size_t dim_ = 0;
    std::unique_ptr<PackedChunks> query_storage_;
    std::vector<float> scales_, offsets_;
    PackedQuery query_{};
};

} // namespace

std::vector<std::unique_ptr<Contender>> maxsimd_contenders(const std::vector<std::uint32_t> &bits) {
    std::vector<std::unique_ptr<Contender>> contenders;
    for (const std::uint32_t of : bits) {
        const auto stored = std::make_shared<StoredChunks>(of);
        for (const Kernel *kernel : maxsimd::kernels()) {
            if (kernel->requires_(maxsimd::cpuFeatures())) contenders.push_back(std::make_unique<MaxsimdContender>(*kernel, stored));
        }
    }
    return contenders;
}

} // namespace bench
