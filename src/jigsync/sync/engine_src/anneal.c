/* The searches: annealing over all moves, large-neighbourhood search, and the two in turn. */

typedef struct {
    double deadline;                  /* now_seconds() at which to stop, or a huge number */
    const volatile int32_t *cancel;   /* non-zero asks to stop; may be NULL */
    volatile double *progress_energy; /* best energy so far, for whoever watches; may be NULL */
    volatile int64_t *progress_moves;
} Control;

static int stopped(const Control *c, const State *st) {
    if (c->progress_energy) *c->progress_energy = st->best_energy;
    if (c->progress_moves) *c->progress_moves = st->moves;
    return (c->cancel && *c->cancel) || now_seconds() > c->deadline;
}

typedef int (*Move)(State *, float);
static const Move MOVES[] = {move_turn, move_swap, move_guided, move_cycle, move_segment, move_block, move_component, move_whole};
enum { MOVE_KINDS = 8, MIX = 256 };

/* Shares of the move kinds in 256ths. Moves of many cells cost as much as tens of swaps. */
static void mix_moves(const Problem *p, uint8_t mix[MIX]) {
    int share[MOVE_KINDS] = {14, 60, 88, 70, 4, 4, 15, 1};
    if (p->upright) {
        share[1] += share[0];
        share[0] = 0;
    }
    int at = 0;
    for (int kind = 0; kind < MOVE_KINDS; kind++)
        for (int i = 0; i < share[kind]; i++) mix[at++] = (uint8_t)kind;
}

/* Simulated annealing from t0 down to t1, geometrically, over `moves` proposals. Returns 0 when stopped. */
static int anneal(State *st, const Control *c, int64_t moves, float t0, float t1) {
    uint8_t mix[MIX];
    if (st->p->n_free < 1) return 1;
    mix_moves(st->p, mix);
    int64_t batch = 512, batches = (moves + batch - 1) / batch;
    for (int64_t i = 0; i < batches; i++) {
        float t = t0 * powf(t1 / t0, batches > 1 ? (float)i / (float)(batches - 1) : 1.0f);
        for (int64_t j = 0; j < batch; j++) st->accepted += MOVES[mix[rng_next(&st->rng) >> 56]](st, t);
        st->moves += batch;
        if (i % 8 == 7 && stopped(c, st)) return 0;
        if (i % 128 == 127) st->energy = energy_of(st);
    }
    return 1;
}

/* `rounds` steps of destroy, rebuild and polish, each kept by the Metropolis rule at temperature t. */
static int search_neighbourhoods(State *st, Lns *w, const Control *c, int rounds, float t) {
    const Problem *p = st->p;
    if (p->n_free < 2) return 1;
    for (int i = 0; i < rounds; i++) {
        double before = st->energy;
        leave(st);
        memcpy(w->backup, st->code, (size_t)p->ncell * sizeof(int32_t));
        float noise = 0.5f * rng_unit(&st->rng);
        switch (rng_below(&st->rng, 4)) {
            case 0:
                lns_assignment(st, w, 4 + rng_below(&st->rng, MOST_CELLS - 4), t + noise);
                break;
            case 1:
                lns_regrow(st, w, noise);
                break;
            default: {
                int most = rng_below(&st->rng, 4) ? 30 : 30 + p->slots / 4;
                lns_refill(st, w, 3 + rng_below(&st->rng, p->slots < most ? p->slots : most), noise);
            }
        }
        for (int j = 0; j < 2 || (j < 8 && st->energy < before); j++)
            if (!lns_assignment(st, w, MOST_CELLS, 0.0f) && j > 1) break;
        st->moves += 1;
        if (!accepts(st, (float)(st->energy - before), t)) {
            load_codes(st, w->backup);
            st->energy = before;
        }
        if (i % 4 == 3 && stopped(c, st)) return 0;
    }
    return 1;
}
