/**
 * One backend of NumKong as peers, in an object of its own. Each backend ends in `nk_dot_*`, which the headers
 * resolve, when they are compiled, to the best of the targets switched on, whatever the CPU has. So each file
 * switches on what its backend needs and nothing above, before it includes this.
 */
#pragma once

#include "headers.h"
#include "peers.h"

#define NUMKONG_ELEMENT_f32 nk_f32_t
#define NUMKONG_ELEMENT_bf16 nk_bf16_t
#define NUMKONG_ELEMENT_f16 nk_f16_t

#define NUMKONG_RESULT_f32 nk_f64_t
#define NUMKONG_RESULT_bf16 nk_f32_t
#define NUMKONG_RESULT_f16 nk_f32_t

/** The CPU has every target that this object is compiled with. */
static int supported(void) { return nk_capabilities_available() == nk_capabilities_compiled(); }

/** Defines `numkong_<backend>_<type>`. */
#define NUMKONG_PEER(backend, type, amx)                                                                      \
    static size_t size_##type(size_t vectors, size_t depth) {                                                 \
        return nk_maxsim_packed_size_##type##_##backend(vectors, depth);                                      \
    }                                                                                                         \
    static void pack_##type(const void *rows, size_t vectors, size_t depth, void *packed) {                   \
        nk_maxsim_pack_##type##_##backend((const NUMKONG_ELEMENT_##type *)rows, vectors, depth,               \
                                          depth * sizeof(NUMKONG_ELEMENT_##type), packed);                    \
    }                                                                                                         \
    static double maxsim_##type(const void *query, const void *document, size_t query_rows,                   \
                                size_t document_rows, size_t depth) {                                         \
        NUMKONG_RESULT_##type score = 0;                                                                      \
        nk_maxsim_packed_##type##_##backend(query, document, query_rows, document_rows, depth, &score);       \
        return (double)score;                                                                                 \
    }                                                                                                         \
    extern const numkong_peer_t numkong_##backend##_##type;                                                   \
    const numkong_peer_t numkong_##backend##_##type = {                                                       \
        #backend "_" #type, numkong_##type, amx, supported, size_##type, pack_##type, maxsim_##type}
