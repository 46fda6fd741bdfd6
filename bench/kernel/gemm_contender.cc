/** The plain way: one f32 GEMM of query by chunk through a BLAS, then the maximum of each row. */
#include "contender.h"

#include <algorithm>
#include <limits>

#ifdef MAXSIMD_BENCH_BLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int) __attribute__((weak));
#endif

namespace bench {
#ifdef MAXSIMD_BENCH_BLAS
namespace {

class GemmContender final : public Contender {
public:
    std::string name() const override { return "gemm_f32"; }
    std::string family() const override { return "gemm"; }
    bool uses_amx() const override { return false; }
    void load(const Chunks &chunks) override { chunks_ = &chunks; }
    std::size_t packed_bytes() const override { return chunks_->rows.size() * sizeof(float); }
    void set_query(const float *query, std::size_t rows) override {
        query_.assign(query, query + rows * chunks_->dim);
        query_rows_ = rows;
    }
    void prepare_thread() const override {
        if (openblas_set_num_threads) openblas_set_num_threads(1);
    }
    void score(const std::uint32_t *chunks, std::size_t count, float *scores) const override {
        const int dim = static_cast<int>(chunks_->dim), queries = static_cast<int>(query_rows_);
        thread_local std::vector<float> similarities;
        for (std::size_t i = 0; i < count; ++i) {
            const int rows = static_cast<int>(chunks_->rows_of(chunks[i]));
            similarities.resize(static_cast<std::size_t>(queries) * rows);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, queries, rows, dim, 1.0f, query_.data(), dim,
                        chunks_->chunk(chunks[i]), dim, 0.0f, similarities.data(), rows);
            float total = 0;
            for (int q = 0; q < queries; ++q) {
                const float *row = similarities.data() + static_cast<std::size_t>(q) * rows;
                total += *std::max_element(row, row + rows);
            }
            scores[i] = total;
        }
    }

private:
    const Chunks *chunks_ = nullptr;
    std::vector<float> query_;
    std::size_t query_rows_ = 0;
};

} // namespace

std::unique_ptr<Contender> gemm_contender() { return std::make_unique<GemmContender>(); }
#else
std::unique_ptr<Contender> gemm_contender() { return nullptr; }
#endif
} // namespace bench
