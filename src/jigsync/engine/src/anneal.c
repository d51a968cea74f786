/* The searches: annealing over all moves, large-neighbourhood search, and the two in turn. */

typedef int (*Move)(State *, float);
static const Move MOVES[] = {move_turn, move_swap, move_guided, move_cycle, move_segment, move_block, move_component, move_whole};
enum { MOVE_KINDS = 8, MIX = 256 };

/* Shares of the move kinds in 256ths. Moves of many cells cost as much as tens of swaps. */
static const int SHARES[MOVE_KINDS] = {14, 60, 88, 70, 4, 4, 15, 1};

static void mix_moves(const Problem *p, const int shares[MOVE_KINDS], uint8_t mix[MIX]) {
    int at = 0;
    for (int kind = 0; kind < MOVE_KINDS; kind++) {
        int taken = p->upright && kind == 0 ? 1 : kind; /* nothing is turned: exchanges instead */
        for (int i = 0; i < shares[kind]; i++) mix[at++] = (uint8_t)taken;
    }
}

/* `count` proposals at one temperature. */
static void propose(State *st, const uint8_t mix[MIX], int64_t count, float t) {
    for (int64_t j = 0; j < count; j++) st->accepted += MOVES[mix[rng_next(&st->rng) >> 56]](st, t);
}

/* Simulated annealing from t0 down to t1, geometrically, over `moves` proposals. Returns 0 when stopped. */
static int anneal(State *st, int64_t moves, float t0, float t1) {
    uint8_t mix[MIX];
    if (st->p->n_free < 1) return 1;
    mix_moves(st->p, SHARES, mix);
    int64_t batch = 512, batches = (moves + batch - 1) / batch;
    for (int64_t i = 0; i < batches; i++) {
        float t = t0 * powf(t1 / t0, batches > 1 ? (float)i / (float)(batches - 1) : 1.0f);
        if (i % 16 == 0) focus(st);
        propose(st, mix, batch, t);
        st->moves += batch;
        if (i % 8 == 7 && stopped(st->control, st->best_score, st->moves)) return 0;
        if (i % 128 == 127) st->score = score_of(st);
    }
    return 1;
}

/* Share of the free cells that are not settled. */
static float open_share(const State *st) {
    const Problem *p = st->p;
    int open = 0;
    for (int i = 0; i < p->n_free; i++) open += !settled(st, p->free_cells[i]);
    return (float)open / (float)(p->n_free ? p->n_free : 1);
}

/* The share of the planned work that a start deserves: a growth whose links are all sure is seldom to be bettered. */
static float remaining_work(const State *st) {
    float share = 4.0f * open_share(st), least = st->p->n_free < 64 ? 0.2f : 0.05f;
    return share > 1.0f ? 1.0f : share < least ? least : share;
}

/* A short annealing of a rebuilt placement, from below the melting point. */
static void touch_up(State *st, const uint8_t mix[MIX], int64_t moves, float t) {
    for (int64_t j = 0; j < moves; j++) {
        float now = t * (1.0f - 0.8f * (float)j / (float)moves);
        st->accepted += MOVES[mix[rng_next(&st->rng) >> 56]](st, now);
    }
    st->moves += moves;
}

/* Moves a region, or everything by one, whatever it costs. */
static void kick(State *st) {
    int done = 0;
    for (int i = 0; i < 20 && !done; i++)
        done = rng_below(&st->rng, 3) ? move_component(st, 1e30f) : move_whole(st, 1e30f);
}

/* `rounds` steps of destroy, rebuild and polish, each kept by the Metropolis rule at temperature t. */
static int search_neighbourhoods(State *st, Lns *w, int rounds, float t) {
    const Problem *p = st->p;
    uint8_t mix[MIX];
    if (p->n_free < 2) return 1;
    mix_moves(p, SHARES, mix);
    for (int i = 0; i < rounds; i++) {
        double before = st->score;
        if (i % 16 == 0) focus(st);
        leave(st);
        memcpy(w->backup, st->code, (size_t)p->ncell * sizeof(int32_t));
        float noise = 0.5f * rng_unit(&st->rng);
        switch (rng_below(&st->rng, 5)) {
            case 0:
                lns_assignment(st, w, 4 + rng_below(&st->rng, MOST_CELLS - 4), t + noise);
                break;
            case 1:
                lns_regrow(st, w, noise);
                break;
            case 2:
                kick(st);
                break;
            default: {
                int most = rng_below(&st->rng, 4) ? 30 : 30 + p->slots / 4;
                lns_refill(st, w, 3 + rng_below(&st->rng, p->slots < most ? p->slots : most), noise);
            }
        }
        touch_up(st, mix, p->n_free < 100 ? 20 * p->n_free : 2000, 0.7f * p->melting);
        for (int j = 0; j < 2 || (j < 8 && st->score < before); j++)
            if (!lns_assignment(st, w, MOST_CELLS, 0.0f) && j > 1) break;
        if (!accepts(st, (float)(st->score - before), t)) {
            load_codes(st, w->backup);
            st->score = before;
        }
        if (stopped(st->control, st->best_score, st->moves)) return 0;
    }
    return 1;
}
