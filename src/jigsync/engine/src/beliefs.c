/* Belief propagation with decimation (Cho, Avidan and Freeman 2010 for jigsaws; Mezard, Parisi and Zecchina 2002 for
 * fixing one variable after the other): many cells are emptied and filled anew with all of them in view at once.
 *
 * An open cell i is a variable whose values x are the codes of the fragments that are free. What cell i tells its
 * neighbour at bearing b of the neighbour's values y, and what is believed of i, are
 *
 *     m_{i,b}(y) ~ sum_x w(x, y) base_i(x) l(x) prod_{b' != b} m_{from b'}(x)     w = exp(BETA score of the sides)
 *     belief_i(x) ~ base_i(x) l(x) prod_b m_{from b}(x)
 *
 * with base_i = exp(BETA (unary terms and the scores towards cells that are not open)), and a factor l of a fragment
 * that brings what all cells believe of it to one fragment. After FIRST rounds the surest value of all cells is fixed,
 * and again after every EACH further ones. Proposals of a search decide from what stands now; beliefs are a mean over
 * all that may stand around a cell, so they find orders that no sequence of improvements leads to.
 *
 * Shapes: m open cells and as many free fragments, c = 4 m values and as many sides. */

enum { FIRST = 30, EACH = 2, ROWS_OF_FOUR = 4 };
#define BETA 0.8f    /* scores are a little too sure */
#define DAMPING 0.4f /* of a message, what is kept of the last one */
#define LITTLE 1e-4f /* values of less weight are left out of a message */
#define CONSERVE 0.5f
#define SUREST 80.0f /* scores above count as this one: the weight of 110 would overflow */

/* The widest vectors the machine has. Sums keep their order, so the answer is the same with all of them. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

typedef struct {
    int m, c;
    int32_t *cell, *fragment; /* (m) */
    int32_t *open;            /* (ncell) index of an open cell, -1 for others */
    int32_t *row_of, *part_of; /* (ncell), (n): index before the last rebuild, -1 for none */
    int32_t *chosen;          /* (m) code that a cell was fixed to, -1 for open */
    uint8_t *taken;           /* (m) of a fragment: it was fixed */
    float *weight;            /* c x c, by sides */
    float *base, *belief;     /* m x c, by codes */
    float *from[4], *old;     /* messages into a cell from its neighbour at bearing b, by codes */
    float *sent[4];           /* messages of a cell to its neighbour at bearing b, by sides */
    float *factor, *last;     /* (m) l of a fragment */
    float *value;             /* c */
    int32_t *before, *best;   /* (ncell) codes, of search_beliefs */
} Beliefs;

static void beliefs_free(Beliefs *x) {
    if (!x) return;
    void *all[] = {x->cell, x->fragment, x->open,    x->row_of,  x->part_of, x->chosen,  x->taken,   x->weight,
                   x->base, x->belief,   x->from[0], x->from[1], x->from[2], x->from[3], x->old,     x->sent[0],
                   x->sent[1], x->sent[2], x->sent[3], x->factor, x->last,   x->value,   x->before,  x->best};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(x);
}

static Beliefs *beliefs_new(const Problem *p) {
    Beliefs *x = calloc(1, sizeof(Beliefs));
    if (!x) return NULL;
    int64_t m = p->n_free, c = 4 * m;
    int ok = 1;
#define ROOM(field, count, type) ok &= (x->field = zeros(count, sizeof(type))) != NULL
    ROOM(cell, m, int32_t);
    ROOM(fragment, m, int32_t);
    ROOM(open, p->ncell, int32_t);
    ROOM(row_of, p->ncell, int32_t);
    ROOM(part_of, p->n, int32_t);
    ROOM(chosen, m, int32_t);
    ROOM(taken, m, uint8_t);
    ROOM(weight, c * c, float);
    ROOM(base, m * c, float);
    ROOM(belief, m * c, float);
    ROOM(old, m * c, float);
    for (int b = 0; b < 4; b++) {
        ROOM(from[b], m * c, float);
        ROOM(sent[b], m * c, float);
    }
    ROOM(factor, m, float);
    ROOM(last, m, float);
    ROOM(value, c, float);
    ROOM(before, p->ncell, int32_t);
    ROOM(best, p->ncell, int32_t);
#undef ROOM
    if (ok) return x;
    beliefs_free(x);
    return NULL;
}

/* The turns of code j and the bearing of side j of one fragment change places when it faces b. */
static inline int across(int j, int b) { return (j & ~3) | ((b - j) & 3); }

/* Makes the tables of the open cells x->cell and free fragments x->fragment anew. Messages and factors of what was
 * open before (row_of, part_of) go on; those of cells that were fixed since are part of base. */
static void beliefs_build(Beliefs *x, const State *st, int m, int was) {
    const Problem *p = st->p;
    int c = 4 * m;
    for (int f = 0; f < m; f++)
        for (int a = 0; a < 4; a++) {
            float *row = x->weight + (int64_t)(4 * f + a) * c;
            for (int g = 0; g < m; g++) {
                float scratch[4];
                const float *score = scores4(p, 4 * x->fragment[f] + a, x->fragment[g], scratch);
                for (int k = 0; k < 4; k++) row[4 * g + k] = f == g ? 0.0f : expf(BETA * fminf(score[k], SUREST));
            }
        }
    for (int i = 0; i < m; i++) {
        int cell = x->cell[i];
        float *row = x->base + (int64_t)i * c, most = -1e30f;
        for (int j = 0; j < c; j++) {
            int code = 4 * x->fragment[j >> 2] + (j & 3);
            row[j] = unary(p, cell, code);
            for (int b = 0; b < 4; b++) {
                int other = cell + p->offset[b];
                if (x->open[other] < 0) row[j] += score(p, side_facing(code, b), st->face[4 * (int64_t)other + ((b + 2) & 3)]);
            }
            if (p->upright && (j & 3)) row[j] = -1e30f;
            if (row[j] > most) most = row[j];
        }
        for (int j = 0; j < c; j++) row[j] = expf(BETA * (row[j] - most));
    }
    for (int b = 0; b < 4; b++) {
        memcpy(x->old, x->from[b], (size_t)x->m * x->c * sizeof(float));
        for (int i = 0; i < m; i++) {
            int kept = was ? x->row_of[x->cell[i]] : -1;
            int known = kept >= 0 && x->open[x->cell[i] + p->offset[b]] >= 0;
            for (int j = 0; j < c; j++)
                x->from[b][(int64_t)i * c + j] =
                    known ? x->old[(int64_t)kept * x->c + 4 * x->part_of[x->fragment[j >> 2]] + (j & 3)] : 1.0f;
        }
    }
    memcpy(x->last, x->factor, (size_t)x->m * sizeof(float));
    for (int f = 0; f < m; f++) {
        x->factor[f] = was ? x->last[x->part_of[x->fragment[f]]] : 1.0f;
        x->chosen[f] = -1;
        x->taken[f] = 0;
    }
    x->m = m;
    x->c = c;
}

/* out = sum_k value[k] weight[k], over values that weigh something. */
WIDE static void beliefs_sum(const float *restrict value, const float *restrict weight, int c, float *restrict out) {
    const float *row[ROWS_OF_FOUR];
    float much[ROWS_OF_FOUR];
    int count = 0;
    for (int j = 0; j < c; j++) out[j] = 0.0f;
    for (int k = 0; k < c; k++) {
        if (value[k] > LITTLE) {
            row[count] = weight + (int64_t)k * c;
            much[count++] = value[k];
        }
        if (count == ROWS_OF_FOUR) {
            const float *r0 = row[0], *r1 = row[1], *r2 = row[2], *r3 = row[3];
            float v0 = much[0], v1 = much[1], v2 = much[2], v3 = much[3];
            for (int j = 0; j < c; j++) out[j] += (v0 * r0[j] + v1 * r1[j]) + (v2 * r2[j] + v3 * r3[j]);
            count = 0;
        }
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < c; j++) out[j] += much[i] * row[i][j];
}

/* What cell i believes but for what the neighbour at bearing b told, by the sides that face b; sums to 1. */
static void beliefs_without(const Beliefs *x, int i, int b, float *restrict value) {
    const float *base = x->base + (int64_t)i * x->c, *m1 = x->from[(b + 1) & 3] + (int64_t)i * x->c;
    const float *m2 = x->from[(b + 2) & 3] + (int64_t)i * x->c, *m3 = x->from[(b + 3) & 3] + (int64_t)i * x->c;
    float sum = 0.0f;
    for (int f = 0; f < x->m; f++)
        for (int k = 0; k < 4; k++) {
            int j = 4 * f + k;
            float v = base[j] * x->factor[f] * (m1[j] * m2[j] * m3[j]);
            value[across(j, b)] = v;
            sum += v;
        }
    float scale = 1.0f / (sum > 1e-30f ? sum : 1e-30f);
    for (int j = 0; j < x->c; j++) value[j] *= scale;
}

/* A message has mean 1, and rules nothing out. */
static void beliefs_scale(float *sent, int c) {
    float sum = 0.0f;
    for (int j = 0; j < c; j++) sum += sent[j];
    float scale = (float)c / (sum > 1e-30f ? sum : 1e-30f);
    for (int j = 0; j < c; j++) {
        float v = sent[j] * scale;
        sent[j] = v > 1e-6f ? v : 1e-6f;
    }
}

/* One round of messages between all open cells, then beliefs and factors. */
static void beliefs_round(Beliefs *x, const Problem *p) {
    int m = x->m, c = x->c;
    for (int i = 0; i < m; i++)
        for (int b = 0; b < 4; b++) {
            if (x->open[x->cell[i] + p->offset[b]] < 0) continue;
            beliefs_without(x, i, b, x->value);
            beliefs_sum(x->value, x->weight, c, x->sent[b] + (int64_t)i * c);
            beliefs_scale(x->sent[b] + (int64_t)i * c, c);
        }
    for (int f = 0; f < m; f++) x->last[f] = 0.0f;
    for (int i = 0; i < m; i++) {
        for (int b = 0; b < 4; b++) {
            int other = x->open[x->cell[i] + p->offset[b]];
            if (other < 0) continue;
            float *from = x->from[b] + (int64_t)i * c;
            const float *sent = x->sent[(b + 2) & 3] + (int64_t)other * c;
            for (int j = 0; j < c; j++) from[j] = DAMPING * from[j] + (1.0f - DAMPING) * sent[across(j, b)];
        }
        const float *base = x->base + (int64_t)i * c, *m0 = x->from[0] + (int64_t)i * c, *m1 = x->from[1] + (int64_t)i * c;
        const float *m2 = x->from[2] + (int64_t)i * c, *m3 = x->from[3] + (int64_t)i * c;
        float *belief = x->belief + (int64_t)i * c, sum = 0.0f;
        for (int j = 0; j < c; j++) {
            belief[j] = base[j] * x->factor[j >> 2] * (m0[j] * m1[j]) * (m2[j] * m3[j]);
            sum += belief[j];
        }
        float scale = 1.0f / (sum > 1e-30f ? sum : 1e-30f);
        for (int j = 0; j < c; j++) {
            belief[j] *= scale;
            x->last[j >> 2] += belief[j];
        }
    }
    for (int f = 0; f < m; f++) {
        if (x->taken[f]) continue;
        float next = x->factor[f] * powf(x->last[f] + 1e-9f, -CONSERVE);
        x->factor[f] = next < 1e-8f ? 1e-8f : next > 1e8f ? 1e8f : next;
    }
}

/* The surest value of all cells that are not fixed is fixed. */
static void beliefs_fix(Beliefs *x) {
    int c = x->c, at = -1, to = 0;
    float most = -1.0f;
    for (int i = 0; i < x->m; i++) {
        if (x->chosen[i] >= 0) continue;
        for (int j = 0; j < x->c; j++)
            if (!x->taken[j >> 2] && x->belief[(int64_t)i * c + j] > most) {
                most = x->belief[(int64_t)i * c + j];
                at = i;
                to = j;
            }
    }
    for (int i = 0; i < x->m; i++)
        for (int k = to & ~3; k < (to & ~3) + 4; k++) x->base[(int64_t)i * c + k] = 0.0f;
    memset(x->base + (int64_t)at * c, 0, (size_t)x->c * sizeof(float));
    x->base[(int64_t)at * c + to] = 1.0f;
    x->chosen[at] = to;
    x->taken[to >> 2] = 1;
}

/* Scores must be dense, and every slot have a fragment. */
static int may_believe(const Problem *p) { return p->dense && !p->full && p->n_usable == p->slots; }

/* Empties all free cells that are not stamped st->mark, and fills them by belief. Returns 0 when stopped: then what stands
 * is no placement. */
static int lns_beliefs(State *st, Beliefs *x) {
    const Problem *p = st->p;
    int m = 0, was = 0;
    for (int cell = 0; cell < p->ncell; cell++) x->open[cell] = -1;
    for (int i = 0; i < p->n_free; i++) {
        int cell = p->free_cells[i];
        if (st->stamp[cell] == st->mark) continue;
        x->open[cell] = m;
        x->fragment[m] = fragment_of(st->code[cell]);
        x->cell[m++] = cell;
    }
    x->m = 0;
    while (m) {
        beliefs_build(x, st, m, was);
        int again = 1 + m / 8;
        for (int round = was ? EACH : FIRST; again; again--, round = EACH) {
            for (; round; round--) {
                if (over(st->control)) return 0;
                beliefs_round(x, p);
            }
            beliefs_fix(x);
        }
        /* What is fixed stands; the rest is the next, smaller problem. */
        int left = 0;
        for (int cell = 0; cell < p->ncell; cell++) x->row_of[cell] = x->open[cell];
        for (int f = 0; f < m; f++) x->part_of[x->fragment[f]] = f;
        for (int i = 0; i < m; i++) {
            int j = x->chosen[i];
            if (j >= 0) put(st, x->cell[i], 4 * x->fragment[j >> 2] + (j & 3));
        }
        for (int i = 0, f = 0; i < m; i++) {
            if (x->chosen[i] >= 0) {
                x->open[x->cell[i]] = -1;
                continue;
            }
            while (x->taken[f]) f++;
            x->open[x->cell[i]] = left;
            x->cell[left] = x->cell[i];
            x->fragment[left++] = x->fragment[f++];
        }
        m = left;
        was = 1;
    }
    rebuild_pool(st);
    st->score = score_of(st);
    arrive(st);
    return 1;
}

enum { POLISH = 40, LEAST_GRAIN = 4, FEWEST = 8 };

/* Stamps what is kept: of the regions whose seams all score `least` or more, each of LEAST_GRAIN cells or more with
 * probability 0.6. Returns how many cells are left open; none where there are grains and none is kept, because to begin
 * with nothing takes ten times as long. */
static int keep_grains(State *st, float least) {
    const Problem *p = st->p;
    int seen = ++st->mark, keep = ++st->mark, kept = 0, grains = 0;
    for (int i = 0; i < p->n_free; i++) {
        int count = 0, start = p->free_cells[i];
        if (st->stamp[start] >= seen) continue;
        st->stamp[start] = seen;
        st->set[count++] = start;
        for (int k = 0; k < count; k++)
            for (int b = 0; b < 4; b++) {
                int cell = st->set[k], other = cell + p->offset[b];
                if (p->cell_slot[other] < 0 || p->pinned_at[other] >= 0 || st->stamp[other] >= seen) continue;
                if (edge(st, cell, b) < least) continue;
                st->stamp[other] = seen;
                st->set[count++] = other;
            }
        if (count < LEAST_GRAIN) continue;
        grains++;
        if (rng_below(&st->rng, 5) > 2) continue;
        for (int k = 0; k < count; k++) st->stamp[st->set[k]] = keep;
        kept += count;
    }
    return grains && !kept ? 0 : p->n_free - kept;
}

/* `steps` times most of the placement is filled anew by belief and polished; what is at most one nat worse is kept.
 * Returns 0 when stopped. */
static int search_beliefs(State *st, Lns *w, Beliefs *x, int steps, float t) {
    static const float LEAST[4] = {1.5f, 2.0f, 3.0f, 4.0f};
    const Problem *p = st->p;
    size_t size = (size_t)p->ncell * sizeof(int32_t);
    int going = 1;
    if (!may_believe(p)) return going;
    for (int i = 0; i < steps && going; i++) {
        if (stopped(st->control, st->best_score, st->moves)) return 0;
        int open = keep_grains(st, LEAST[rng_below(&st->rng, 4)]);
        if (open < FEWEST) continue;
        double before = st->score, best = st->best_score;
        leave(st);
        memcpy(x->before, st->code, size);
        memcpy(x->best, st->best, size);
        going = lns_beliefs(st, x);
        if (going) {
            restart_from_here(st);
            going = search_neighbourhoods(st, w, POLISH, t);
            return_to_best(st);
        }
        if (!going || st->score < before - 1.0) {
            load_codes(st, x->before);
            st->score = before;
        }
        if (st->best_score <= best) {
            memcpy(st->best, x->best, size);
            st->best_score = best;
            st->unsaved = 0;
        }
    }
    return going;
}
