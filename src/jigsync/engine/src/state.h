/* State: one placement under search, with the score of what stands where. */
#ifndef JIG_STATE_H
#define JIG_STATE_H

typedef struct {
    int cell, code;
} Change;

typedef struct {
    const Problem *p;
    const Control *control; /* of whatever changes the placement */
    Rng rng;
    int32_t *code;    /* (ncell) 4 * fragment + turns; 4 * n for a hole */
    int32_t *face;    /* (ncell) x 4, the side that faces canvas bearing b */
    int32_t *cell_of; /* (n) padded cell, -1 in the pool or excluded */
    int32_t *pool;    /* usable fragments that stand nowhere */
    int n_pool;
    double score;

    int32_t *best; /* (ncell) codes of the best placement seen */
    double best_score;
    int unsaved; /* the current placement is the best one and not yet copied to `best` */

    int32_t *active; /* free cells that are not settled, where proposals begin; see focus */
    int n_active;

    /* Scratch of moves that change many cells. */
    int32_t *stamp; /* (ncell) == mark when a cell is part of the current set */
    int32_t mark;
    int32_t *set, *image; /* (ncell) cells */
    Change *change, *undo;
    int32_t *queue, *backup; /* (ncell) */
    int settling; /* proposals that what a grain displaced has to find places; 0: grains move as anything does */

    int64_t moves, accepted;
} State;

#endif
