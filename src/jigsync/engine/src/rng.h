/* Seeded randomness: xoshiro256** seeded by splitmix64, the same stream on every platform. */
#ifndef JIG_RNG_H
#define JIG_RNG_H

#include <stdint.h>

typedef struct {
    uint64_t s[4];
} Rng;

static inline uint64_t splitmix64(uint64_t *x) {
    uint64_t z = (*x += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static void rng_seed(Rng *rng, uint64_t seed) {
    for (int i = 0; i < 4; i++) rng->s[i] = splitmix64(&seed);
}

static inline uint64_t rng_next(Rng *rng) {
    uint64_t *s = rng->s;
    uint64_t x = s[1] * 5;
    uint64_t result = ((x << 7) | (x >> 57)) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Uniform in 0..n-1 from the upper 32 bits; the bias of at most n / 2^32 does not matter to a search. */
static inline int rng_below(Rng *rng, int n) { return (int)(((rng_next(rng) >> 32) * (uint64_t)n) >> 32); }

/* Uniform in (0, 1). */
static inline float rng_unit(Rng *rng) { return ((float)(rng_next(rng) >> 40) + 0.5f) * (1.0f / 16777216.0f); }

#endif
