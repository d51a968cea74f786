/* The searches: annealing over all moves, large-neighbourhood search, and the two in turn. */

typedef struct {
    double deadline;                  /* now_seconds() at which to stop, or a huge number */
    const volatile int32_t *cancel;   /* non-zero asks to stop; may be NULL */
    volatile double *progress_energy; /* best energy so far, for whoever watches; may be NULL */
    volatile int64_t *progress_moves;
} Control;

/* Tells whoever watches how far it is; non-zero when it is to end. */
static int stopped(const Control *c, double best, int64_t moves) {
    if (c->progress_energy) *c->progress_energy = best;
    if (c->progress_moves) *c->progress_moves = moves;
    return (c->cancel && *c->cancel) || now_seconds() > c->deadline;
}

typedef int (*Move)(State *, float);
static const Move MOVES[] = {move_turn, move_swap, move_guided, move_cycle, move_segment, move_block, move_component, move_whole};
enum { MOVE_KINDS = 8, MIX = 256, MOST_REPLICAS = 16 };

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

/* `count` proposals at one temperature. */
static void propose(State *st, const uint8_t mix[MIX], int64_t count, float t) {
    for (int64_t j = 0; j < count; j++) st->accepted += MOVES[mix[rng_next(&st->rng) >> 56]](st, t);
}

/* Simulated annealing from t0 down to t1, geometrically, over `moves` proposals. Returns 0 when stopped. */
static int anneal(State *st, const Control *c, int64_t moves, float t0, float t1) {
    uint8_t mix[MIX];
    if (st->p->n_free < 1) return 1;
    mix_moves(st->p, mix);
    int64_t batch = 512, batches = (moves + batch - 1) / batch;
    for (int64_t i = 0; i < batches; i++) {
        float t = t0 * powf(t1 / t0, batches > 1 ? (float)i / (float)(batches - 1) : 1.0f);
        if (i % 16 == 0) focus(st);
        propose(st, mix, batch, t);
        st->moves += batch;
        if (i % 8 == 7 && stopped(c, st->best_energy, st->moves)) return 0;
        if (i % 128 == 127) st->energy = energy_of(st);
    }
    return 1;
}

/* Replica exchange (Swendsen and Wang 1986; Geyer 1991): `replicas` placements at temperatures t0 > ... > t1, in equal
 * ratios. After every batch of proposals neighbours on the ladder exchange temperatures with probability
 *
 *     min(1, exp((1 / T_i - 1 / T_j) (E_j - E_i)))
 *
 * so that what froze into a poor order melts again while better orders go on below. st takes the coldest place with
 * what it has, the others begin anywhere; st ends with the best placement that any of them saw. `moves` counts the
 * proposals of all; 40 % of them without a better placement are enough. Returns 0 when stopped, -1 when memory ran out. */
static int temper(State *st, const Control *c, int replicas, int64_t moves, float t0, float t1) {
    State *at[MOST_REPLICAS]; /* by place on the ladder, hot first */
    float t[MOST_REPLICAS];
    uint8_t mix[MIX];
    int64_t batch = 1024, rounds = moves / (batch * replicas) + 1, since = 0;
    double best = -1e300;
    int going = 1;
    if (st->p->n_free < 2) return 1;
    mix_moves(st->p, mix);
    for (int i = 0; i < replicas; i++) {
        t[i] = t0 * powf(t1 / t0, (float)i / (float)(replicas - 1));
        at[i] = i == replicas - 1 ? st : state_new(st->p, rng_next(&st->rng));
        if (!at[i]) {
            while (i--) state_free(at[i]);
            return -1;
        }
        if (at[i] == st) continue;
        load_codes(at[i], st->code);
        scramble(at[i]);
        restart_from_here(at[i]);
    }
    for (int64_t round = 0; going && round < rounds && 5 * (round - since) <= 2 * rounds; round++) {
        for (int i = 0; i < replicas; i++) {
            State *now = at[i];
            if (round % 16 == 0) focus(now);
            propose(now, mix, batch, t[i]);
            if (round % 128 == 127) now->energy = energy_of(now);
            if (now->best_energy > best + 1e-3) {
                best = now->best_energy;
                since = round;
            }
        }
        for (int i = (int)(round & 1); i + 1 < replicas; i += 2) {
            float gain = (float)(at[i]->energy - at[i + 1]->energy) * (1 / t[i + 1] - 1 / t[i]);
            if (!accepts(st, gain, 1.0f)) continue;
            State *hot = at[i];
            at[i] = at[i + 1];
            at[i + 1] = hot;
        }
        st->moves += batch * replicas;
        if (round % 4 == 3) going = !stopped(c, best, st->moves);
    }
    leave(st);
    for (int i = 0; i < replicas; i++) {
        State *other = at[i];
        if (other == st) continue;
        leave(other);
        if (other->best_energy > st->best_energy) {
            st->best_energy = other->best_energy;
            memcpy(st->best, other->best, (size_t)st->p->ncell * sizeof(int32_t));
        }
        st->accepted += other->accepted;
        state_free(other);
    }
    return going;
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
static int search_neighbourhoods(State *st, Lns *w, const Control *c, int rounds, float t) {
    const Problem *p = st->p;
    uint8_t mix[MIX];
    if (p->n_free < 2) return 1;
    mix_moves(p, mix);
    for (int i = 0; i < rounds; i++) {
        double before = st->energy;
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
        for (int j = 0; j < 2 || (j < 8 && st->energy < before); j++)
            if (!lns_assignment(st, w, MOST_CELLS, 0.0f) && j > 1) break;
        if (!accepts(st, (float)(st->energy - before), t)) {
            load_codes(st, w->backup);
            st->energy = before;
        }
        if (i % 4 == 3 && stopped(c, st->best_energy, st->moves)) return 0;
    }
    return 1;
}
