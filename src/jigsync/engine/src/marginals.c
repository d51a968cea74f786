/* Marginals: how often a fragment keeps its place when placements are drawn in proportion to exp(score / t).
 *
 * The chain starts at a good placement and uses reversible moves only. A whole placement may turn or shift without
 * changing what is next to what, so each draw is first laid over the best placement by the one motion that most
 * fragments agree on. */

static float weigh4(const State *st, int cell, int f, float t, float weight[4]) {
    float value[4], sum = 0.0f;
    if (f == st->p->n) { /* a hole has no turns */
        weight[0] = 1.0f;
        weight[1] = weight[2] = weight[3] = 0.0f;
        return 0.0f;
    }
    local4(st, cell, f, value);
    int count = st->p->upright ? 1 : 4;
    float most = value[0];
    for (int k = 1; k < count; k++) most = value[k] > most ? value[k] : most;
    for (int k = 0; k < 4; k++) sum += weight[k] = k < count ? expf((value[k] - most) / t) : 0.0f;
    for (int k = 0; k < 4; k++) weight[k] /= sum;
    return most + t * logf(sum);
}

static int draw4(Rng *rng, const float weight[4]) {
    float u = rng_unit(rng);
    int k = 0;
    while (k < 3 && u >= weight[k]) u -= weight[k++];
    return k;
}

/* Exchanges two places with new turns for both drawn from their conditional law: accepted by the ratio of the
 * free energies t log sum_k exp(local / t), which is exact for cells that do not touch. */
static int move_redraw(State *st, float t) {
    const Problem *p = st->p;
    Rng *rng = &st->rng;
    int a = p->free_cells[rng_below(rng, p->n_free)], at = rng_below(rng, p->n_free + st->n_pool);
    int f = fragment_of(st->code[a]);
    float weight[4], other[4];
    if (at >= p->n_free) {
        int g = st->pool[at - p->n_free];
        if (f == p->n) return 0;
        if (p->full) return exchange_pool(st, a, at - p->n_free, p->upright ? 0 : rng_below(rng, 4), t);
        float lift = weigh4(st, a, g, t, weight) - weigh4(st, a, f, t, other);
        if (!accepts(st, lift, t)) return 0;
        float before = local1(st, a, st->code[a]);
        leave(st);
        put(st, a, 4 * g + draw4(rng, weight));
        st->cell_of[f] = -1;
        st->pool[at - p->n_free] = f;
        st->score += local1(st, a, st->code[a]) - before;
        arrive(st);
        return 1;
    }
    int b = p->free_cells[at], g = fragment_of(st->code[b]);
    if (a == b || f == g) return 0;
    if (p->full || adjacent(p, a, b)) {
        int k = p->upright ? 0 : rng_below(rng, 4), l = p->upright ? 0 : rng_below(rng, 4);
        return propose_changes(st, (Change[]){{a, 4 * g + k}, {b, 4 * f + l}}, 2, t);
    }
    float old = weigh4(st, a, f, t, weight) + weigh4(st, b, g, t, other);
    float new = weigh4(st, a, g, t, weight) + weigh4(st, b, f, t, other);
    if (!accepts(st, new - old, t)) return 0;
    float before = local1(st, a, st->code[a]) + local1(st, b, st->code[b]);
    leave(st);
    put(st, a, 4 * g + draw4(rng, weight));
    put(st, b, 4 * f + draw4(rng, other));
    st->score += local1(st, a, st->code[a]) + local1(st, b, st->code[b]) - before;
    arrive(st);
    return 1;
}

static void sample_step(State *st, float t) {
    int kind = (int)(rng_next(&st->rng) >> 56);
    if (kind < 4) move_segment(st, t);
    else if (kind < 8) move_block(st, t);
    else if (kind < 40) move_turn(st, t);
    else move_redraw(st, t);
    st->moves++;
}

typedef struct {
    int64_t key;
    int32_t count;
} Vote;

typedef struct {
    Vote *vote; /* a hash of at least 2 n entries, so that memory goes with the fragments whatever the grid */
    uint64_t mask;
} Overlay;

/* The votes for a key, none at first. */
static int32_t *overlay_count_of(const Overlay *o, int64_t key) {
    uint64_t h = (uint64_t)key * 0x9e3779b97f4a7c15ULL;
    for (h ^= h >> 32;; h++) {
        Vote *vote = o->vote + (h & o->mask);
        if (vote->count && vote->key != key) continue;
        vote->key = key;
        return &vote->count;
    }
}

/* What fragment f votes for: turns and shift that carry its pose in `best` to the one it has now; -1 if unplaced. */
static int64_t overlay_key(const State *st, const int32_t *best, int f) {
    const Problem *p = st->p;
    if (best[f] < 0 || st->cell_of[f] < 0) return -1;
    int cell = st->cell_of[f], turns = (st->code[cell] - best[f]) & 3, row, col;
    turn_offset(p, turns, (best[f] >> 2) / p->cols, (best[f] >> 2) % p->cols, &row, &col);
    int64_t half = 2 * ((int64_t)p->rows + p->cols), span = 2 * half + 1;
    return (turns * span + p->cell_row[cell] - row + half) * span + p->cell_col[cell] - col + half;
}

/* Adds 1 to kept[f] for every fragment that moved with the majority. */
static void overlay_count(Overlay *o, const State *st, const int32_t *best, int64_t *kept) {
    int64_t winner = -1;
    int32_t most = 0;
    memset(o->vote, 0, (o->mask + 1) * sizeof(Vote));
    for (int f = 0; f < st->p->n; f++) {
        int64_t key = overlay_key(st, best, f);
        if (key < 0) continue;
        int32_t count = ++*overlay_count_of(o, key);
        if (count <= most) continue;
        most = count;
        winner = key;
    }
    for (int f = 0; f < st->p->n && winner >= 0; f++) kept[f] += overlay_key(st, best, f) == winner;
}

enum { SAMPLE_BATCH = 1024 };

/* kept (n): in how many of `samples` draws a fragment keeps slot and turns; moves: proposals between draws. Returns
 * the number of draws made, or -1 when memory ran out. When stopped there are fewer, but always one, after however many
 * proposals there was time for. */
static int64_t sample_marginals(State *st, const int32_t *best, float t, int64_t samples, int64_t moves, int64_t *kept) {
    const Problem *p = st->p;
    int64_t made = 0, entries = 16;
    while (entries < 2 * (int64_t)p->n) entries *= 2;
    Overlay o = {zeros(entries, sizeof(Vote)), (uint64_t)entries - 1};
    if (!o.vote) return -1;
    for (int going = 1; made < samples && (going || !made);) {
        int64_t left = p->n_free ? moves : 0;
        for (; left > 0 && going; going = !over(st->control)) {
            int64_t batch = left < SAMPLE_BATCH ? left : SAMPLE_BATCH;
            for (int64_t i = 0; i < batch; i++) sample_step(st, t);
            left -= batch;
        }
        if (left > 0 && made) break;
        overlay_count(&o, st, best, kept);
        made++;
    }
    free(o.vote);
    return made;
}
