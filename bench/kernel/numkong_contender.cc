/** NumKong's backends as contenders; its distance sums are turned into similarities (rows - distance). */
#include "contender.h"
#include "numkong/peers.h"

namespace bench {
namespace {

class NumKongContender final : public Contender {
public:
    explicit NumKongContender(const numkong_peer_t &peer) : peer_(peer) {}
    std::string name() const override { return std::string("numkong_") + peer_.name; }
    std::string family() const override { return "numkong"; }
    bool uses_amx() const override { return peer_.uses_amx != 0; }

    void load(const Chunks &chunks) override {
        dim_ = chunks.dim;
        std::vector<std::size_t> sizes;
        for (std::size_t c = 0; c < chunks.count(); ++c) {
            rows_.push_back(chunks.rows_of(c));
            sizes.push_back(peer_.packed_size(rows_.back(), dim_));
        }
        packed_ = std::make_unique<PackedChunks>(64, sizes);
        std::vector<float> converted;
        for (std::size_t c = 0; c < chunks.count(); ++c) {
            converted.resize(rows_[c] * dim_);
            numkong_convert(peer_.type, chunks.chunk(c), rows_[c] * dim_, converted.data());
            peer_.pack(converted.data(), rows_[c], dim_, packed_->at(c));
        }
    }

    std::size_t packed_bytes() const override { return packed_->bytes(); }

    void set_query(const float *query, std::size_t rows) override {
        query_rows_ = rows;
        query_ = std::make_unique<PackedChunks>(64, std::vector<std::size_t>{peer_.packed_size(rows, dim_)});
        std::vector<float> converted(rows * dim_);
        numkong_convert(peer_.type, query, rows * dim_, converted.data());
        peer_.pack(converted.data(), rows, dim_, query_->at(0));
    }

    void prepare_thread() const override { numkong_prepare_thread(); }

    void score(const std::uint32_t *chunks, std::size_t count, float *scores) const override {
        for (std::size_t i = 0; i < count; ++i) {
            std::uint32_t c = chunks[i];
            double distance = peer_.maxsim(query_->at(0), packed_->at(c), query_rows_, rows_[c], dim_);
            scores[i] = static_cast<float>(static_cast<double>(query_rows_) - distance);
        }
    }

private:
    numkong_peer_t peer_;
    std::size_t dim_ = 0, query_rows_ = 0;
    std::vector<std::size_t> rows_;
    std::unique_ptr<PackedChunks> packed_, query_;
};

} // namespace

std::vector<std::unique_ptr<Contender>> numkong_contenders() {
    std::size_t count = 0;
    const numkong_peer_t *const *peers = numkong_peers(&count);
    std::vector<std::unique_ptr<Contender>> contenders;
    for (std::size_t i = 0; i < count; ++i) {
        if (peers[i]->supported()) contenders.push_back(std::make_unique<NumKongContender>(*peers[i]));
    }
    return contenders;
}

} // namespace bench
