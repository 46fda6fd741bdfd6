#include "headers.h"
#include "peers.h"

#define NUMKONG_PEERS_EVERYWHERE(row) row(serial_f32) row(serial_bf16)
#if defined(__x86_64__)
#define NUMKONG_PEERS(row)                                                                                    \
    NUMKONG_PEERS_EVERYWHERE(row)                                                                             \
    row(haswell_f32) row(haswell_bf16) row(haswell_f16)                                                       \
    row(alder_f32) row(alder_bf16) row(alder_f16)                                                             \
    row(icelake_f32) row(icelake_f16) row(genoa_bf16)                                                         \
    row(sapphireamx_f32) row(sapphireamx_bf16) row(sapphireamx_f16)
#elif defined(__aarch64__)
#define NUMKONG_PEERS(row)                                                                                    \
    NUMKONG_PEERS_EVERYWHERE(row)                                                                             \
    row(neonsdot_f32) row(neonsdot_bf16) row(neonsdot_f16)
#else
#define NUMKONG_PEERS(row) NUMKONG_PEERS_EVERYWHERE(row)
#endif

#define NUMKONG_DECLARATION(name) extern const numkong_peer_t numkong_##name;
#define NUMKONG_ADDRESS(name) &numkong_##name,

NUMKONG_PEERS(NUMKONG_DECLARATION)
static const numkong_peer_t *const peers[] = {NUMKONG_PEERS(NUMKONG_ADDRESS)};

const numkong_peer_t *const *numkong_peers(size_t *count) {
    *count = sizeof(peers) / sizeof(peers[0]);
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
