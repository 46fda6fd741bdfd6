/**
 * NumKong's MaxSim kernels behind one table, so that the benchmark can time every backend this CPU has.
 * Their result is a sum of angular distances (lower is better) of vectors packed per backend.
 */
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { numkong_f32, numkong_bf16, numkong_f16 } numkong_type_t;

typedef struct {
    const char *name; /**< `<backend>_<type>` */
    numkong_type_t type;
    int uses_amx;
    int (*supported)(void); /**< by this CPU */
    size_t (*packed_size)(size_t vectors, size_t depth);
    /** Packs `vectors` rows of `depth` elements of `type`, rows contiguous. */
    void (*pack)(const void *rows, size_t vectors, size_t depth, void *packed);
    /** Sum over query rows of the least angular distance. */
    double (*maxsim)(const void *query, const void *document, size_t query_rows, size_t document_rows, size_t depth);
} numkong_peer_t;

/** Every peer compiled in, supported or not; `count` receives how many. */
const numkong_peer_t *const *numkong_peers(size_t *count);

/** Converts f32 values to the 2-byte types, round to nearest even. */
void numkong_convert(numkong_type_t type, const float *from, size_t count, void *to);

/** Prepares the calling thread (AMX permission, denormals). */
void numkong_prepare_thread(void);

#ifdef __cplusplus
}
#endif
