/* Elementary moves: turn one fragment, exchange two places, and the guided forms of both. Each returns 1 when the
 * proposal was accepted at temperature t. Pinned cells are never touched. */

/* Metropolis: accept a change of the score to be maximised. */
static inline int metropolis(const Problem *p, Rng *rng, float delta, float t) {
    return delta >= 0.0f || delta > t * p->log_table[rng_next(rng) >> 52];
}

static inline int accepts(State *st, float delta, float t) { return metropolis(st->p, &st->rng, delta, t); }

static inline int best_turns(const Problem *p, const float value[4]) {
    if (p->upright) return 0;
    int a = value[1] > value[0], b = 2 + (value[3] > value[2]);
    return value[b] > value[a] ? b : a;
}

static inline int adjacent(const Problem *p, int a, int b) {
    int d = a > b ? a - b : b - a;
    return d == 1 || d == p->stride;
}

/* Metropolis the other way round: what a change must gain at least, drawn before it is looked at. */
static inline float least_gain(State *st, float t) { return t * st->p->log_table[rng_next(&st->rng) >> 52]; }

/* Applies, then keeps or reverts, a permutation of cells. */
static int propose_changes(State *st, const Change *change, int count, float t) {
    leave(st);
    float delta = apply_changes(st, change, count);
    if (!accepts(st, delta, t)) {
        revert_changes(st, count);
        return 0;
    }
    st->score += delta;
    arrive(st);
    return 1;
}

static int move_turn(State *st, float t) {
    const Problem *p = st->p;
    int cell = some_cell(st), code = st->code[cell];
    if (fragment_of(code) == p->n || p->upright) return 0;
    int turned = (code & ~3) | ((code + 1 + rng_below(&st->rng, 3)) & 3);
    if (p->full) return propose_changes(st, &(Change){cell, turned}, 1, t);
    float delta = local1(st, cell, turned) - local1(st, cell, code);
    if (!accepts(st, delta, t)) return 0;
    leave(st);
    put(st, cell, turned);
    st->score += delta;
    arrive(st);
    return 1;
}

/* The fragment of pool entry `at` takes a cell; whoever stood there goes to the pool. */
static int exchange_pool(State *st, int cell, int at, int turns, float t) {
    const Problem *p = st->p;
    int code = st->code[cell], f = st->pool[at];
    if (fragment_of(code) == p->n) return 0;
    if (turns < 0) {
        float value[4];
        local4(st, cell, f, value);
        turns = best_turns(p, value);
    }
    int in = 4 * f + turns;
    float delta;
    leave(st);
    if (p->full) {
        delta = apply_changes(st, &(Change){cell, in}, 1);
    } else {
        delta = local1(st, cell, in) - local1(st, cell, code);
    }
    if (!accepts(st, delta, t)) {
        if (p->full) {
            revert_changes(st, 1);
            st->cell_of[f] = -1;
        }
        return 0;
    }
    put(st, cell, in);
    st->cell_of[fragment_of(code)] = -1;
    st->pool[at] = fragment_of(code);
    st->score += delta;
    arrive(st);
    return 1;
}

/* Exchanges cells a and b. turns_b: of the fragment that goes from b to a, and so on; -1 asks for the best. */
static int exchange(State *st, int a, int b, int turns_into_a, float t) {
    const Problem *p = st->p;
    int code_a = st->code[a], code_b = st->code[b], f = fragment_of(code_a), g = fragment_of(code_b);
    if (a == b || f == g) return 0;
    float into_a[4], into_b[4];
    int new_a, new_b;
    if (p->upright) {
        new_a = 4 * g;
        new_b = 4 * f;
        into_a[0] = local1(st, a, new_a);
        into_b[0] = local1(st, b, new_b);
    } else {
        local4(st, a, g, into_a);
        local4(st, b, f, into_b);
        new_a = 4 * g + (turns_into_a < 0 ? best_turns(p, into_a) : turns_into_a);
        new_b = 4 * f + best_turns(p, into_b);
    }
    if (p->full || adjacent(p, a, b)) return propose_changes(st, (Change[]){{a, new_a}, {b, new_b}}, 2, t);
    float delta = into_a[new_a & 3] + into_b[new_b & 3] - local1(st, a, code_a) - local1(st, b, code_b);
    if (!accepts(st, delta, t)) return 0;
    leave(st);
    put(st, a, new_a);
    put(st, b, new_b);
    st->score += delta;
    arrive(st);
    return 1;
}

static int move_swap(State *st, float t) {
    const Problem *p = st->p;
    int a = some_cell(st);
    if (st->n_pool) {
        int i = rng_below(&st->rng, p->n_free + st->n_pool);
        if (i >= p->n_free) return exchange_pool(st, a, i - p->n_free, -1, t);
    }
    return exchange(st, a, some_cell(st), -1, t);
}

static int pool_index(const State *st, int f) {
    for (int i = 0; i < st->n_pool; i++)
        if (st->pool[i] == f) return i;
    return -1;
}

/* A place for fragment g: beside a random placed fragment that has g's side among its likely partners.
 * Returns the cell, or -1; *code is g with the turns that make the two sides touch. */
static int guided_place(State *st, int *code) {
    const Problem *p = st->p;
    int cell = p->n_pinned ? p->slot_cell[rng_below(&st->rng, p->slots)] : some_cell(st);
    uint64_t bits = rng_next(&st->rng);
    int b = (int)(bits & 3), target = cell + p->offset[b];
    if (fragment_of(st->code[cell]) == p->n || p->cell_slot[target] < 0 || p->pinned_at[target] >= 0) return -1;
    int partner = p->pick[(int64_t)st->face[4 * (int64_t)cell + b] * PICKS + (bits >> 2) % PICKS];
    if (partner < 0 || p->fixed[partner >> 2]) return -1;
    *code = (partner & ~3) | turns_to_face(partner, b + 2);
    return target;
}

static int move_guided(State *st, float t) {
    int code, target = guided_place(st, &code);
    if (target < 0 || st->code[target] == code) return 0;
    int g = fragment_of(code), from = st->cell_of[g];
    if (from < 0) return exchange_pool(st, target, pool_index(st, g), turn_of(code), t);
    if (from == target) return propose_changes(st, &(Change){target, code}, 1, t);
    return exchange(st, target, from, turn_of(code), t);
}

/* A cell where fragment f would touch a likely partner of one of its sides; *turns makes them touch. */
static int wanted_place(State *st, int f, int *turns) {
    const Problem *p = st->p;
    uint64_t bits = rng_next(&st->rng);
    int s = 4 * f + (int)(bits & 3);
    int partner = p->pick[(int64_t)s * PICKS + (bits >> 2) % PICKS];
    if (partner < 0) return -1;
    int beside = st->cell_of[partner >> 2];
    if (beside < 0) return -1;
    int b = (partner + st->code[beside]) & 3; /* the canvas bearing that the partner's side faces */
    int cell = beside + p->offset[b];
    *turns = turns_to_face(s, b + 2);
    if (p->cell_slot[cell] < 0 || p->pinned_at[cell] >= 0 || (p->upright && *turns)) return -1;
    return cell;
}

/* Cycle of three: g takes its guided place, whoever stood there goes where it would like to stand, and the third
 * goes where g came from. */
static int move_cycle(State *st, float t) {
    const Problem *p = st->p;
    int code, a = guided_place(st, &code);
    if (a < 0 || st->code[a] == code) return 0;
    int from = st->cell_of[fragment_of(code)], h = fragment_of(st->code[a]), turns;
    if (from < 0 || from == a || h == p->n) return 0;
    int b = wanted_place(st, h, &turns);
    if (b < 0 || b == a || b == from) return 0;
    int third = fragment_of(st->code[b]);
    float value[4] = {0};
    if (third < p->n) local4(st, from, third, value);
    Change change[3] = {{a, code}, {b, 4 * h + turns}, {from, 4 * third + best_turns(p, value)}};
    return propose_changes(st, change, 3, t);
}
