/**
 * Compiled with every x86 or Arm target on: the headers put each backend's instructions behind function
 * target attributes, and the table asks the CPU before it offers one. (The package's own probes switch
 * all targets off when their header is not included first.)
 */
#if defined(__x86_64__)
#define NK_TARGET_HASWELL 1
#define NK_TARGET_SKYLAKE 1
#define NK_TARGET_ICELAKE 1
#define NK_TARGET_GENOA 1
#define NK_TARGET_ALDER 1
#define NK_TARGET_SAPPHIREAMX 1
#elif defined(__aarch64__)
#define NK_TARGET_NEON 1
#define NK_TARGET_NEONSDOT 1
#endif
#define NK_DYNAMIC_DISPATCH 0
#define NK_NATIVE_F16 0
#define NK_NATIVE_BF16 0
#include <numkong/capabilities.h>
#include <numkong/cast.h>
#include <numkong/maxsim.h>

#include "numkong_peers.h"

#define NUMKONG_FUNCTIONS(type, element, backend)                                                             \
    static size_t size_##type##_##backend(size_t vectors, size_t depth) {                                     \
        return nk_maxsim_packed_size_##type##_##backend(vectors, depth);                                      \
    }                                                                                                         \
    static void pack_##type##_##backend(const void *rows, size_t vectors, size_t depth, void *packed) {       \
        nk_maxsim_pack_##type##_##backend((const element *)rows, vectors, depth, depth * sizeof(element),     \
                                          packed);                                                            \
    }                                                                                                         \
    static double maxsim_##type##_##backend(const void *query, const void *document, size_t query_rows,       \
                                            size_t document_rows, size_t depth) {                             \
        NUMKONG_RESULT_##type score = 0;                                                                      \
        nk_maxsim_packed_##type##_##backend(query, document, query_rows, document_rows, depth, &score);       \
        return (double)score;                                                                                 \
    }

#define NUMKONG_RESULT_f32 nk_f64_t
#define NUMKONG_RESULT_bf16 nk_f32_t
#define NUMKONG_RESULT_f16 nk_f32_t

#define NUMKONG_ROW(type, backend, amx)                                                                       \
    {#backend "_" #type,          numkong_##type, amx, 0, size_##type##_##backend, pack_##type##_##backend, \
     maxsim_##type##_##backend}

NUMKONG_FUNCTIONS(f32, nk_f32_t, serial)
NUMKONG_FUNCTIONS(bf16, nk_bf16_t, serial)
#if defined(__x86_64__)
NUMKONG_FUNCTIONS(f32, nk_f32_t, haswell)
NUMKONG_FUNCTIONS(bf16, nk_bf16_t, haswell)
NUMKONG_FUNCTIONS(f16, nk_f16_t, haswell)
NUMKONG_FUNCTIONS(f32, nk_f32_t, alder)
NUMKONG_FUNCTIONS(bf16, nk_bf16_t, alder)
NUMKONG_FUNCTIONS(f16, nk_f16_t, alder)
NUMKONG_FUNCTIONS(f32, nk_f32_t, icelake)
NUMKONG_FUNCTIONS(f16, nk_f16_t, icelake)
NUMKONG_FUNCTIONS(bf16, nk_bf16_t, genoa)
NUMKONG_FUNCTIONS(f32, nk_f32_t, sapphireamx)
NUMKONG_FUNCTIONS(bf16, nk_bf16_t, sapphireamx)
NUMKONG_FUNCTIONS(f16, nk_f16_t, sapphireamx)
#elif defined(__aarch64__)
NUMKONG_FUNCTIONS(f32, nk_f32_t, neonsdot)
NUMKONG_FUNCTIONS(bf16, nk_bf16_t, neonsdot)
NUMKONG_FUNCTIONS(f16, nk_f16_t, neonsdot)
#endif

static numkong_peer_t peers[] = {
    NUMKONG_ROW(f32, serial, 0),       NUMKONG_ROW(bf16, serial, 0),
#if defined(__x86_64__)
    NUMKONG_ROW(f32, haswell, 0),      NUMKONG_ROW(bf16, haswell, 0),      NUMKONG_ROW(f16, haswell, 0),
    NUMKONG_ROW(f32, alder, 0),        NUMKONG_ROW(bf16, alder, 0),        NUMKONG_ROW(f16, alder, 0),
    NUMKONG_ROW(f32, icelake, 0),      NUMKONG_ROW(f16, icelake, 0),       NUMKONG_ROW(bf16, genoa, 0),
    NUMKONG_ROW(f32, sapphireamx, 1),  NUMKONG_ROW(bf16, sapphireamx, 1),  NUMKONG_ROW(f16, sapphireamx, 1),
#elif defined(__aarch64__)
    NUMKONG_ROW(f32, neonsdot, 0),     NUMKONG_ROW(bf16, neonsdot, 0),     NUMKONG_ROW(f16, neonsdot, 0),
#endif
};

/** Capability bit each backend needs, found by the backend's part of the name. */
static nk_capability_t needed(const char *name) {
    static const struct {
        const char *backend;
        nk_capability_t capability;
    } rows[] = {
        {"serial", nk_cap_serial_k},
#if defined(__x86_64__)
        {"haswell", nk_cap_haswell_k}, {"alder", nk_cap_alder_k},
        {"icelake", nk_cap_icelake_k}, {"genoa", nk_cap_genoa_k},
        {"sapphireamx", nk_cap_sapphireamx_k},
#elif defined(__aarch64__)
        {"neonsdot", nk_cap_neonsdot_k},
#endif
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const char *a = rows[i].backend, *b = name;
        while (*a && *a == *b) ++a, ++b;
        if (!*a && *b == '_') return rows[i].capability;
    }
    return nk_cap_serial_k;
}

const numkong_peer_t *numkong_peers_probe(size_t *count) {
    nk_capability_t capabilities = nk_capabilities();
    *count = sizeof(peers) / sizeof(peers[0]);
    for (size_t i = 0; i < *count; ++i) peers[i].supported = (capabilities & needed(peers[i].name)) != 0;
    return peers;
}

void numkong_convert(numkong_type_t type, const float *from, size_t count, void *to) {
    for (size_t i = 0; i < count; ++i) {
        if (type == numkong_bf16) nk_f32_to_bf16_serial(from + i, (nk_bf16_t *)to + i);
        else if (type == numkong_f16) nk_f32_to_f16_serial(from + i, (nk_f16_t *)to + i);
        else ((float *)to)[i] = from[i];
    }
}

void numkong_prepare_thread(void) { nk_configure_thread(nk_capabilities()); }
