/**
 * One side of the kernel benchmark: packs matrices into its own layout once, then scores a packed query
 * against packed chunks. Scores are "higher is better" and approximate the float64 MaxSim of the inputs.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/** Chunks packed one behind another in one 64-byte-aligned allocation. */
class PackedChunks {
public:
    PackedChunks(std::size_t alignment_bytes, const std::vector<std::size_t> &sizes);
    std::byte *at(std::size_t chunk) { return base_ + offsets_[chunk]; }
    const std::byte *at(std::size_t chunk) const { return base_ + offsets_[chunk]; }
    std::size_t bytes() const { return bytes_; }

private:
    std::unique_ptr<std::byte[]> storage_;
    std::byte *base_;
    std::vector<std::size_t> offsets_;
    std::size_t bytes_;
};

/** Ragged f32 token matrices: chunk c owns rows [first[c], first[c + 1]) of `rows`, each `dim` floats. */
struct Chunks {
    std::size_t dim;
    std::vector<std::size_t> first;
    std::vector<float> rows;
    std::size_t count() const { return first.size() - 1; }
    std::size_t rows_of(std::size_t chunk) const { return first[chunk + 1] - first[chunk]; }
    const float *chunk(std::size_t index) const { return rows.data() + first[index] * dim; }
};

class Contender {
public:
    virtual ~Contender() = default;
    virtual std::string name() const = 0;
    /** `maxsimd` or `numkong`. */
    virtual std::string family() const = 0;
    virtual bool uses_amx() const = 0;
    /** The contender whose scores these are, bit by bit; empty if there is none. */
    virtual std::string equals() const { return {}; }
    /** Packs every chunk; called once. */
    virtual void load(const Chunks &chunks) = 0;
    virtual std::size_t packed_bytes() const = 0;
    /** Packs the query all later `score` calls use; rows x dim floats. */
    virtual void set_query(const float *query, std::size_t rows) = 0;
    /** Called on each thread before it scores. */
    virtual void prepare_thread() const = 0;
    /** Scores the listed chunks in order; thread-safe. */
    virtual void score(const std::uint32_t *chunks, std::size_t count, float *scores) const = 0;
};

std::vector<std::unique_ptr<Contender>> maxsimd_contenders(const std::vector<std::uint32_t> &bits);
std::vector<std::unique_ptr<Contender>> numkong_contenders();

} // namespace bench
