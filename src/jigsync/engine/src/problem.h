/* Problem: everything that does not change while a search runs. Read-only after problem_new, shared by threads.
 *
 * A cell of the grid lives in a padded array of (rows + 2) x (cols + 2), so that every cell has four neighbours and
 * no bound is checked in a hot loop. The virtual fragment `n` is a hole: it fills the padding and free slots, and
 * scores 0 with everything.
 *
 * A code is 4 * fragment + turns. A side is 4 * fragment + bearing in the fragment's own frame; the side that faces
 * canvas bearing b is 4 * fragment + (b - turns) mod 4. All signs come from the table of steps that Python passes
 * (z4.bearing_offset).
 */
#ifndef JIG_PROBLEM_H
#define JIG_PROBLEM_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 32, PICKS = 32, LOGS = 4096 };

typedef struct {
    int n, rows, cols, slots;
    int stride, ncell;       /* padded width and number of padded cells */
    int offset[4];           /* padded step of canvas bearing b */
    int d_row[4], d_col[4];  /* the same as (row, col) */
    int upright;             /* turns are 0 for every fragment */

    const float *dense; /* (4n + 4) x ld with zero rows and columns for the hole, or NULL */
    float *dense_own;
    int64_t ld;

    /* Sparse rows: one open-addressed hash a row, keyed by fragment, holding the scores of its four sides. */
    int64_t *hash_start; /* (4n) first bucket of a row */
    int32_t *hash_mask;  /* (4n) buckets of a row - 1 */
    int32_t *hash_key;   /* fragment or -1 */
    float *hash_value;   /* 4 per bucket */
    float floor;

    float *unary_turns; /* (n + 1) x 4, zeros for the hole, or NULL */
    float *unary_cells; /* (n + 1) x ncell, or NULL */
    float *unary_poses; /* (n + 1) x ncell x 4, or NULL */

    float *border;    /* (4n + 4) score of a side that faces out of the grid, 0 for the hole; or NULL */
    uint8_t *outside; /* (ncell) bit b set when bearing b of a slot leads out of the grid */

    /* The extra pair terms of small puzzles, full.c. */
    float *full;          /* n x n x n_rel or NULL */
    int32_t *relation_of; /* (2 rows - 1) x (2 cols - 1) x 4 x 4, -1 for none */
    int n_rel;

    int32_t *pinned_at;   /* (ncell) code pinned to a cell, or -1 */
    uint8_t *fixed;       /* (n) fragment is pinned or excluded: no move may touch it */
    uint8_t *excluded;    /* (n) */
    int32_t *free_cells;  /* cells a move may change */
    int n_free;
    int n_pinned, n_usable;

    int32_t *slot_cell;           /* slot -> padded cell */
    int32_t *cell_slot;           /* padded cell -> slot or -1 */
    int32_t *cell_row, *cell_col; /* of padded cells, (0, 0) is the first slot */

    /* Links, per side: best partners and their matching probability; see links.c. */
    int32_t *top_side; /* (4n) x TOP by falling link, -1 past the end */
    float *top_score;  /* their scores */
    float *top_gain;   /* what closed loops add to them */
    float *top_link;   /* log-probability that the two sides touch */
    float *link;       /* (4n + 4) x ld, the same for all pairs, with dense scores only */
    int32_t *pick;  /* (4n) x PICKS: partners repeated in proportion to how often a move should propose them */
    float melting;         /* unit of temperature, see melting_point */
    float log_table[LOGS]; /* log of LOGS evenly spread numbers of (0, 1), for acceptance without libm */
    float *log_u;   /* (4n + 4) log u of links.c; also the log-probability that a side has no partner */
} Problem;

static inline int turn_of(int code) { return code & 3; }
static inline int fragment_of(int code) { return code >> 2; }
static inline int side_facing(int code, int bearing) { return (code & ~3) | ((bearing - code) & 3); }
/* Turns with which the side `side` of its fragment faces canvas bearing b. */
static inline int turns_to_face(int side, int bearing) { return (bearing - side) & 3; }

/* The four sides of fragment f against side s, as a pointer to 4 floats. */
static inline const float *scores4(const Problem *p, int s, int f, float *scratch) {
    if (p->dense) return p->dense + (int64_t)s * p->ld + 4 * (int64_t)f;
    if (s >= 4 * p->n || f >= p->n) {
        scratch[0] = scratch[1] = scratch[2] = scratch[3] = 0.0f;
        return scratch;
    }
    int64_t start = p->hash_start[s];
    int32_t mask = p->hash_mask[s];
    for (uint32_t h = (uint32_t)f * 2654435761u >> 8;; h++) {
        int64_t bucket = start + (h & mask);
        if (p->hash_key[bucket] == f) return p->hash_value + 4 * bucket;
        if (p->hash_key[bucket] < 0) break;
    }
    scratch[0] = scratch[1] = scratch[2] = scratch[3] = p->floor;
    return scratch;
}

static inline float score(const Problem *p, int s, int t) {
    float scratch[4];
    return scores4(p, s, t >> 2, scratch)[t & 3];
}

/* log-probability that sides s and t touch, at least NO_LINK. */
#define NO_LINK (-8.0f)
static inline float link_of(const Problem *p, int s, int t) {
    if (p->link) return p->link[(int64_t)s * p->ld + t];
    if (s >= 4 * p->n || t >= 4 * p->n) return NO_LINK;
    const int32_t *partner = p->top_side + (int64_t)s * TOP;
    for (int r = 0; r < TOP; r++)
        if (partner[r] == t) return p->top_link[(int64_t)s * TOP + r];
    return NO_LINK;
}

/* (d_row, d_col) after `turns`, from the steps E = 0 and S = 3. */
static inline void turn_offset(const Problem *p, int turns, int d_row, int d_col, int *row, int *col) {
    int e = turns & 3, s = (turns + 3) & 3;
    *row = d_col * p->d_row[e] + d_row * p->d_row[s];
    *col = d_col * p->d_col[e] + d_row * p->d_col[s];
}

#endif
