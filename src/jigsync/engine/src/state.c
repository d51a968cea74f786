/* State: reading, writing and scoring placements. */

static void state_free(State *st) {
    if (!st) return;
    free(st->code);
    free(st->face);
    free(st->cell_of);
    free(st->pool);
    free(st->best);
    free(st->stamp);
    free(st->set);
    free(st->image);
    free(st->change);
    free(st->undo);
    free(st->queue);
    free(st->backup);
    free(st->active);
    free(st);
}

static inline void put(State *st, int cell, int code) {
    int32_t *face = st->face + 4 * (int64_t)cell;
    st->code[cell] = code;
    for (int b = 0; b < 4; b++) face[b] = side_facing(code, b);
    if (fragment_of(code) < st->p->n) st->cell_of[fragment_of(code)] = cell;
}

static State *state_new(const Problem *p, uint64_t seed) {
    State *st = calloc(1, sizeof(State));
    if (!st) return NULL;
    st->p = p;
    st->control = &ENDLESS;
    st->code = zeros(p->ncell, sizeof(int32_t));
    st->face = zeros(4 * (int64_t)p->ncell, sizeof(int32_t));
    st->cell_of = zeros(p->n, sizeof(int32_t));
    st->pool = zeros(p->n, sizeof(int32_t));
    st->best = zeros(p->ncell, sizeof(int32_t));
    st->stamp = zeros(p->ncell, sizeof(int32_t));
    st->set = zeros(p->ncell, sizeof(int32_t));
    st->image = zeros(p->ncell, sizeof(int32_t));
    st->change = zeros(p->ncell, sizeof(Change));
    st->undo = zeros(p->ncell, sizeof(Change));
    st->queue = zeros(p->ncell, sizeof(int32_t));
    st->backup = zeros(p->ncell, sizeof(int32_t));
    st->active = zeros(p->slots, sizeof(int32_t));
    if (!st->code || !st->face || !st->cell_of || !st->pool || !st->best || !st->stamp || !st->set || !st->image ||
        !st->change || !st->undo || !st->queue || !st->backup || !st->active) {
        state_free(st);
        return NULL;
    }
    rng_seed(&st->rng, seed);
    for (int c = 0; c < p->ncell; c++) put(st, c, 4 * p->n);
    memcpy(st->active, p->free_cells, (size_t)p->n_free * sizeof(int32_t));
    st->n_active = p->n_free;
    return st;
}

/* Every usable fragment that stands in no cell, in order of its number. */
static void rebuild_pool(State *st) {
    const Problem *p = st->p;
    for (int f = 0; f < p->n; f++) st->cell_of[f] = -1;
    for (int slot = 0; slot < p->slots; slot++) {
        int cell = p->slot_cell[slot];
        if (fragment_of(st->code[cell]) < p->n) st->cell_of[fragment_of(st->code[cell])] = cell;
    }
    st->n_pool = 0;
    for (int f = 0; f < p->n; f++)
        if (st->cell_of[f] < 0 && !p->excluded[f]) st->pool[st->n_pool++] = f;
}

/* The border scores of a fragment's sides that face out of the grid. */
static inline float border_at(const Problem *p, int cell, int code) {
    float sum = 0.0f;
    for (int b = 0; b < 4; b++)
        if (p->outside[cell] >> b & 1) sum += p->border[side_facing(code, b)];
    return sum;
}

static inline int has_border(const Problem *p, int cell) { return p->border && p->outside[cell]; }

/* The pose terms of a fragment in a cell, for its four turns. */
static inline const float *poses4(const Problem *p, int cell, int f) {
    return p->unary_poses + 4 * ((int64_t)f * p->ncell + cell);
}

static inline float unary(const Problem *p, int cell, int code) {
    float sum = has_border(p, cell) ? border_at(p, cell, code) : 0.0f;
    if (p->unary_turns) sum += p->unary_turns[code];
    if (p->unary_cells) sum += p->unary_cells[(int64_t)fragment_of(code) * p->ncell + cell];
    if (p->unary_poses) sum += poses4(p, cell, fragment_of(code))[turn_of(code)];
    return sum;
}

static inline float edge(const State *st, int cell, int bearing) {
    int other = cell + st->p->offset[bearing];
    return score(st->p, st->face[4 * (int64_t)cell + bearing], st->face[4 * (int64_t)other + ((bearing + 2) & 3)]);
}

/* What fragment f would score in a cell with each of the four turns, given its neighbours: out[k] is the sum over
 * bearings b of v_b[(b - k) mod 4], v_b being the scores of f's four sides against the side that faces it there. */
static inline void local4(const State *st, int cell, int f, float out[4]) {
    const Problem *p = st->p;
    float scratch[4][4];
    const float *v[4];
    for (int b = 0; b < 4; b++) {
        int facing = st->face[4 * (int64_t)(cell + p->offset[b]) + ((b + 2) & 3)];
        v[b] = scores4(p, facing, f, scratch[b]);
    }
    for (int k = 0; k < 4; k++) out[k] = v[0][-k & 3] + v[1][(1 - k) & 3] + v[2][(2 - k) & 3] + v[3][(3 - k) & 3];
    if (p->unary_turns)
        for (int k = 0; k < 4; k++) out[k] += p->unary_turns[4 * f + k];
    if (p->unary_cells)
        for (int k = 0; k < 4; k++) out[k] += p->unary_cells[(int64_t)f * p->ncell + cell];
    if (p->unary_poses)
        for (int k = 0; k < 4; k++) out[k] += poses4(p, cell, f)[k];
    if (has_border(p, cell))
        for (int k = 0; k < 4; k++) out[k] += border_at(p, cell, 4 * f + k);
}

static inline float local1(const State *st, int cell, int code) {
    const Problem *p = st->p;
    float sum = unary(p, cell, code);
    for (int b = 0; b < 4; b++) {
        int facing = st->face[4 * (int64_t)(cell + p->offset[b]) + ((b + 2) & 3)];
        sum += score(p, facing, side_facing(code, b));
    }
    return sum;
}

static double full_score(const State *st);

/* The score from scratch. */
static double score_of(const State *st) {
    const Problem *p = st->p;
    double sum = 0.0;
    for (int slot = 0; slot < p->slots; slot++) {
        int cell = p->slot_cell[slot];
        for (int b = 0; b < 4; b++)
            if (p->offset[b] > 0) sum += edge(st, cell, b);
        sum += unary(p, cell, st->code[cell]);
    }
    return sum + full_score(st);
}

/* Score of all terms that touch a set of changed cells, each counted once. */
static float score_around(State *st, const Change *change, int count) {
    const Problem *p = st->p;
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        int cell = change[i].cell;
        for (int b = 0; b < 4; b++) {
            int other = cell + p->offset[b];
            if (p->offset[b] < 0 && st->stamp[other] == st->mark) continue;
            sum += edge(st, cell, b);
        }
        sum += unary(p, cell, st->code[cell]);
    }
    return sum;
}

static float full_around(const State *st, const Change *change, int count);

/* Writes `count` changes that permute the fragments of their cells, and returns by how much the score rises.
 * st->score is not updated; revert_changes undoes it. */
static float apply_changes(State *st, const Change *change, int count) {
    st->mark++;
    for (int i = 0; i < count; i++) {
        st->stamp[change[i].cell] = st->mark;
        st->undo[i].cell = change[i].cell;
        st->undo[i].code = st->code[change[i].cell];
    }
    float before = score_around(st, change, count) + full_around(st, change, count);
    for (int i = 0; i < count; i++) put(st, change[i].cell, change[i].code);
    return score_around(st, change, count) + full_around(st, change, count) - before;
}

static void revert_changes(State *st, int count) {
    for (int i = 0; i < count; i++) put(st, st->undo[i].cell, st->undo[i].code);
}

static void save_best(State *st) {
    memcpy(st->best, st->code, (size_t)st->p->ncell * sizeof(int32_t));
    st->unsaved = 0;
}

/* A cell is settled when it is surely linked to all its neighbours. */
static int settled(const State *st, int cell) {
    const Problem *p = st->p;
    if (fragment_of(st->code[cell]) == p->n) return 0;
    for (int b = 0; b < 4; b++) {
        int other = cell + p->offset[b];
        if (p->cell_slot[other] < 0) continue;
        int s = st->face[4 * (int64_t)cell + b], t = st->face[4 * (int64_t)other + ((b + 2) & 3)];
        if (link_of(p, s, t) < -0.1f) return 0;
    }
    return 1;
}

/* Marks are counted up; before an int ends they begin anew. */
static void fresh_marks(State *st) {
    if (st->mark < 1 << 30) return;
    memset(st->stamp, 0, (size_t)st->p->ncell * sizeof(int32_t));
    memset(st->queue, 0, (size_t)st->p->ncell * sizeof(int32_t));
    st->mark = 0;
}

/* In large puzzles most fragments stand right early on. Proposals then begin at the others, most of the time. */
static void focus(State *st) {
    const Problem *p = st->p;
    fresh_marks(st);
    st->n_active = 0;
    for (int i = 0; i < p->n_free; i++)
        if (!settled(st, p->free_cells[i])) st->active[st->n_active++] = p->free_cells[i];
    if (st->n_active < 16 || p->n_free < 64) {
        memcpy(st->active, p->free_cells, (size_t)p->n_free * sizeof(int32_t));
        st->n_active = p->n_free;
    }
}

/* A random free cell: an active one, or any one out of 16 times. */
static inline int some_cell(State *st) {
    uint64_t bits = rng_next(&st->rng);
    if (bits & 15) return st->active[((bits >> 32) * (uint64_t)st->n_active) >> 32];
    return st->p->free_cells[((bits >> 32) * (uint64_t)st->p->n_free) >> 32];
}

/* Called before a placement that may be the best one is left. */
static inline void leave(State *st) {
    if (st->unsaved) save_best(st);
}

/* Called after a placement was changed and st->score updated. */
static inline void arrive(State *st) {
    if (st->score > st->best_score + 1e-5) {
        st->best_score = st->score;
        st->unsaved = 1;
    }
}

/* Starts the search anew from what stands now. */
static void restart_from_here(State *st) {
    st->score = score_of(st);
    st->best_score = st->score;
    save_best(st);
}

static void load_codes(State *st, const int32_t *codes) {
    memcpy(st->code, codes, (size_t)st->p->ncell * sizeof(int32_t));
    for (int c = 0; c < st->p->ncell; c++) put(st, c, st->code[c]);
    rebuild_pool(st);
}

/* Back to the best placement, with its score recomputed from scratch. */
static void return_to_best(State *st) {
    if (!st->unsaved) load_codes(st, st->best);
    st->score = score_of(st);
    st->best_score = st->score;
    save_best(st);
}

/* poses (n): 4 * slot + turns, or -1. */
static void read_poses(State *st, const int32_t *poses) {
    const Problem *p = st->p;
    for (int slot = 0; slot < p->slots; slot++) put(st, p->slot_cell[slot], 4 * p->n);
    for (int f = 0; f < p->n; f++)
        if (poses[f] >= 0 && !p->fixed[f]) put(st, p->slot_cell[poses[f] >> 2], 4 * f + (poses[f] & 3));
    for (int slot = 0; slot < p->slots; slot++) {
        int cell = p->slot_cell[slot];
        if (p->pinned_at[cell] >= 0) put(st, cell, p->pinned_at[cell]);
    }
    rebuild_pool(st);
}

static void write_poses(const State *st, const int32_t *codes, int32_t *poses) {
    const Problem *p = st->p;
    for (int f = 0; f < p->n; f++) poses[f] = -1;
    for (int slot = 0; slot < p->slots; slot++) {
        int code = codes[p->slot_cell[slot]];
        if (fragment_of(code) < p->n) poses[fragment_of(code)] = 4 * slot + turn_of(code);
    }
}

/* Puts pool fragments into holes until one of the two runs out, so that as many as possible are placed. */
static void fill_holes(State *st) {
    const Problem *p = st->p;
    int slot = 0;
    while (st->n_pool) {
        while (slot < p->slots && fragment_of(st->code[p->slot_cell[slot]]) < p->n) slot++;
        if (slot == p->slots) return;
        put(st, p->slot_cell[slot], 4 * st->pool[--st->n_pool]);
    }
}

/* Any placement: the free cells' fragments in random order with random turns, the pool drawn from too. */
static void scramble(State *st) {
    const Problem *p = st->p;
    for (int i = 0; i < p->n_free; i++) {
        int a = p->free_cells[i], b = p->free_cells[i + rng_below(&st->rng, p->n_free - i)];
        int code = (st->code[b] & ~3) | (p->upright ? 0 : rng_below(&st->rng, 4));
        put(st, b, st->code[a]);
        put(st, a, code);
        if (!st->n_pool) continue;
        int at = rng_below(&st->rng, p->n_free + st->n_pool) - p->n_free;
        if (at < 0 || fragment_of(code) == p->n) continue;
        put(st, a, 4 * st->pool[at]);
        st->pool[at] = fragment_of(code);
        st->cell_of[fragment_of(code)] = -1;
    }
}
