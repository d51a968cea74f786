/* Large-neighbourhood search: much of a placement is given up and rebuilt at once.
 *
 * assignment  cells of which no two touch are emptied; each fragment's value in each cell depends on standing
 *             neighbours only, so the best refill, turns included, is a linear assignment: solved exactly
 * refill      a window, or the worst cells, are emptied and grown anew where they are
 * regrow      one reliable region is kept, floats, and everything else is grown anew around it
 */

enum { MOST_CELLS = 72, MOST_POOL = 36 };

typedef struct {
    Assigner assigner;
    float value[MOST_CELLS * (MOST_CELLS + MOST_POOL)];
    uint8_t turns[MOST_CELLS * (MOST_CELLS + MOST_POOL)];
    int32_t cell[MOST_CELLS], fragment[MOST_CELLS + MOST_POOL], col_of[MOST_CELLS];
    int32_t *backup, *kept; /* (ncell) */
} Lns;

static void lns_free(Lns *w) {
    if (!w) return;
    assigner_free(&w->assigner);
    free(w->backup);
    free(w->kept);
    free(w);
}

static Lns *lns_new(const Problem *p) {
    Lns *w = calloc(1, sizeof(Lns));
    if (!w) return NULL;
    w->backup = zeros(p->ncell, sizeof(int32_t));
    w->kept = zeros(p->ncell, sizeof(int32_t));
    if (!assigner_new(&w->assigner, MOST_CELLS, MOST_CELLS + MOST_POOL) || !w->backup || !w->kept) {
        lns_free(w);
        return NULL;
    }
    return w;
}

/* How badly a cell's fragment stands: minus its links to its neighbours. */
static float badness(const State *st, int cell) {
    const Problem *p = st->p;
    float sum = 0.0f;
    for (int b = 0; b < 4; b++) {
        int other = cell + p->offset[b];
        if (fragment_of(st->code[other]) == p->n) continue;
        float l = link_of(p, st->face[4 * (int64_t)cell + b], st->face[4 * (int64_t)other + ((b + 2) & 3)]);
        sum -= fmaxf(l, -6.0f);
    }
    return sum;
}

/* The worst of a few random free cells. */
static int bad_cell(State *st, int draws) {
    int worst = some_cell(st);
    float most = badness(st, worst);
    for (int i = 1; i < draws; i++) {
        int cell = some_cell(st);
        float bad = badness(st, cell);
        if (bad > most) {
            most = bad;
            worst = cell;
        }
    }
    return worst;
}

/* Chooses cells of which no two touch: one colour of the chessboard when it fits, else bad and random cells. */
static int independent_cells(State *st, Lns *w, int most) {
    const Problem *p = st->p;
    int count = 0, colour = rng_below(&st->rng, 2);
    st->mark++;
    if (p->slots <= 2 * most - 1 && rng_below(&st->rng, 3)) {
        for (int i = 0; i < p->n_free; i++) {
            int cell = p->free_cells[i];
            if (((p->cell_row[cell] + p->cell_col[cell]) & 1) == colour) w->cell[count++] = cell;
        }
        return count;
    }
    for (int attempt = 0; attempt < 4 * most && count < most; attempt++) {
        int cell = bad_cell(st, 1 + rng_below(&st->rng, 4)), touches = st->stamp[cell] == st->mark;
        for (int b = 0; b < 4; b++) touches |= st->stamp[cell + p->offset[b]] == st->mark;
        if (touches) continue;
        st->stamp[cell] = st->mark;
        w->cell[count++] = cell;
    }
    return count;
}

/* The assignment step. noise > 0 perturbs the values (perturb and maximise), so that it also leaves optima. */
static int lns_assignment(State *st, Lns *w, int most, float noise) {
    const Problem *p = st->p;
    if (most > MOST_CELLS) most = MOST_CELLS;
    int rows = independent_cells(st, w, most), cols = rows;
    if (rows < 2) return 0;
    double old = 0.0, new = 0.0;
    for (int i = 0; i < rows; i++) {
        w->fragment[i] = fragment_of(st->code[w->cell[i]]);
        old += local1(st, w->cell[i], st->code[w->cell[i]]);
    }
    if (st->n_pool) {
        int from = rng_below(&st->rng, st->n_pool);
        for (int i = 0; i < st->n_pool && i < MOST_POOL; i++) w->fragment[cols++] = st->pool[(from + i) % st->n_pool];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            float value[4];
            int e = i * cols + j;
            local4(st, w->cell[i], w->fragment[j], value);
            w->turns[e] = (uint8_t)best_turns(p, value);
            w->value[e] = value[w->turns[e]];
            if (noise > 0.0f) w->value[e] -= noise * logf(-p->log_table[rng_next(&st->rng) >> 52]);
        }
    assign_most(&w->assigner, w->value, rows, cols, w->col_of);
    leave(st);
    for (int i = 0; i < rows; i++) {
        int e = i * cols + w->col_of[i];
        st->change[i].cell = w->cell[i];
        st->change[i].code = 4 * w->fragment[w->col_of[i]] + w->turns[e];
        new += local1(st, w->cell[i], st->change[i].code);
    }
    if (new < old + 1e-4 && noise <= 0.0f) return 0;
    float delta = apply_changes(st, st->change, rows);
    if (st->n_pool) rebuild_pool(st);
    st->score += delta;
    arrive(st);
    return 1;
}

/* Empties about `count` cells, bad ones anywhere or a patch around one, or most of what is not settled, and refills
 * them best-first. */
static void lns_refill(State *st, Lns *w, int count, float noise) {
    const Problem *p = st->p;
    int kept = 0, kind = rng_below(&st->rng, 4), removed = 0;
    st->mark++;
    if (kind == 0) {
        while (removed < count) {
            st->stamp[bad_cell(st, 4)] = st->mark;
            removed++;
        }
    } else if (kind == 3) {
        int share = 1 + rng_below(&st->rng, 8);
        for (int i = 0; i < st->n_active; i++)
            if (rng_below(&st->rng, 8) < share) st->stamp[st->active[i]] = st->mark;
    } else {
        /* Breadth first from a bad cell; kind 2 prefers to spread over weak links. */
        st->queue[removed++] = bad_cell(st, 4);
        st->stamp[st->queue[0]] = st->mark;
        for (int i = 0; i < removed && removed < count; i++)
            for (int b = 0; b < 4 && removed < count; b++) {
                int cell = st->queue[i], other = cell + p->offset[b];
                if (p->cell_slot[other] < 0 || st->stamp[other] == st->mark) continue;
                float l = link_of(p, st->face[4 * (int64_t)cell + b], st->face[4 * (int64_t)other + ((b + 2) & 3)]);
                if (kind == 2 && l > -0.5f && rng_below(&st->rng, 4)) continue;
                st->stamp[other] = st->mark;
                st->queue[removed++] = other;
            }
    }
    for (int i = 0; i < p->n_free; i++)
        if (st->stamp[p->free_cells[i]] != st->mark) w->kept[kept++] = p->free_cells[i];
    leave(st);
    grow(st, w->kept, kept, 1, 1, noise);
    arrive(st);
}

/* Keeps one region of reliable links and grows the rest anew around it. */
static void lns_regrow(State *st, Lns *w, float noise) {
    const Problem *p = st->p;
    float least = -0.05f - 2.0f * rng_unit(&st->rng);
    int count = 0;
    for (int attempt = 0; attempt < 4; attempt++) {
        int start = p->free_cells[rng_below(&st->rng, p->n_free)];
        if (fragment_of(st->code[start]) == p->n) continue;
        int found = component(st, start, least, p->slots);
        if (found > count) {
            count = found;
            memcpy(w->kept, st->set, (size_t)found * sizeof(int32_t));
        }
    }
    leave(st);
    grow(st, w->kept, count, 0, 2, noise);
    arrive(st);
}
