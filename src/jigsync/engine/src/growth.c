/* Best-first growth. From a seed (one fragment, or a region that is kept), the empty cell that is decided most
 * clearly is filled next. A cell's candidates are all free fragments with all turns; a candidate's value is the sum
 * of its links to the neighbours that stand already, so a fragment that fits better elsewhere is held back; the
 * cell's priority is the lead of its best candidate over the second and over "nothing fits here".
 *
 * The region floats. At first its extent is free and only clear cells are filled: sides at the picture's border have
 * no partner and find a false one, so the region may stick out by some. Then the window of rows x cols (or
 * cols x rows when turns are free) that holds most of its links is chosen, what lies outside is taken back, and the
 * rest is filled within the window. With pins, or when a kept region stays where it is, the window is the grid. */

#define CLEAR 1.0f /* least lead while the extent is free */
enum { ASK = 64, UNSEEN = -1, CLOSED = -2 }; /* ASK: steps between two looks at the clock */

typedef struct {
    int spot, code, second; /* best and second candidate, -1 for none */
    float value, gap, lead; /* gap: over the second candidate; lead: over it and over no candidate, with noise */
} Front;

/* A cell of the plane that the region grows in. Only cells that a fragment stood in or beside have a spot, so memory
 * goes with the fragments and not with how far a region reaches. */
typedef struct {
    int row, col; /* of the grid, when the region does not float */
    int code;
    int front;   /* index into Growth.front, UNSEEN or CLOSED */
    int near[4]; /* the spot at bearing b, -1 where there is none yet */
} Spot;

typedef struct {
    const Problem *p;
    const Control *control;
    Rng *rng;
    Spot *spot;
    int n_spot;
    int32_t *bucket; /* hash of (row, col): spot + 1, or 0 */
    uint32_t mask;
    Front *front;
    int n_front;
    int32_t *order; /* spots of the region by row and col, see growth_sort */
    int n_order;
    int32_t *free, *free_at; /* fragments not yet used, and where each stands in that list */
    int n_free;
    int row0, row1, col0, col1; /* extent, inclusive */
    int floating;
    int wide; /* the extent is free */
    float noise;
} Growth;

static void growth_free(Growth *g) {
    free(g->spot);
    free(g->bucket);
    free(g->front);
    free(g->order);
    free(g->free);
    free(g->free_at);
}

static void growth_empty(Growth *g) {
    g->row0 = g->col0 = INT32_MAX;
    g->row1 = g->col1 = INT32_MIN;
}

static int growth_new(Growth *g, State *st, float noise) {
    const Problem *p = st->p;
    memset(g, 0, sizeof *g);
    g->p = p;
    g->control = st->control;
    g->rng = &st->rng;
    g->noise = noise;
    /* A fragment that is kept opens a spot and four beside it, one that is added to the region three beside its own;
     * what is taken back may be added again. */
    int64_t spots = 8 * (int64_t)p->n + 8, buckets = 16;
    while (buckets < 2 * spots) buckets *= 2;
    g->mask = (uint32_t)(buckets - 1);
    g->spot = zeros(spots, sizeof(Spot));
    g->bucket = zeros(buckets, sizeof(int32_t));
    g->front = zeros(spots, sizeof(Front));
    g->order = zeros(p->n, sizeof(int32_t));
    g->free = zeros(p->n, sizeof(int32_t));
    g->free_at = zeros(p->n, sizeof(int32_t));
    if (!g->spot || !g->bucket || !g->front || !g->order || !g->free || !g->free_at) return 0;
    for (int f = 0; f < p->n; f++) {
        g->free_at[f] = -1;
        if (p->excluded[f]) continue;
        g->free_at[f] = g->n_free;
        g->free[g->n_free++] = f;
    }
    growth_empty(g);
    return 1;
}

/* The bucket of a cell: its spot's, or the empty one that it would take. */
static int32_t *growth_bucket(const Growth *g, int row, int col) {
    uint32_t h = ((uint32_t)row * 2654435761u) ^ ((uint32_t)col * 2246822519u);
    h ^= h >> 15;
    for (;; h++) {
        int32_t *bucket = g->bucket + (h & g->mask);
        if (!*bucket || (g->spot[*bucket - 1].row == row && g->spot[*bucket - 1].col == col)) return bucket;
    }
}

/* The spot of a cell, made when there is none. */
static int growth_spot(Growth *g, int row, int col) {
    int32_t *bucket = growth_bucket(g, row, col);
    if (*bucket) return *bucket - 1;
    int at = g->n_spot++;
    *bucket = at + 1;
    Spot *x = g->spot + at;
    x->row = row;
    x->col = col;
    x->code = 4 * g->p->n;
    x->front = UNSEEN;
    for (int b = 0; b < 4; b++) {
        x->near[b] = *growth_bucket(g, row + g->p->d_row[b], col + g->p->d_col[b]) - 1;
        if (x->near[b] >= 0) g->spot[x->near[b]].near[(b + 2) & 3] = at;
    }
    return at;
}

static int growth_fits(const Growth *g, int row, int col) {
    if (g->wide) return 1;
    int height = (row > g->row1 ? row : g->row1) - (row < g->row0 ? row : g->row0) + 1;
    int width = (col > g->col1 ? col : g->col1) - (col < g->col0 ? col : g->col0) + 1;
    if (height <= g->p->rows && width <= g->p->cols) return 1;
    return g->floating && !g->p->upright && height <= g->p->cols && width <= g->p->rows;
}

/* The code that stands beside a spot at bearing b. */
static inline int growth_beside(const Growth *g, const Spot *x, int b) {
    return x->near[b] < 0 ? 4 * g->p->n : g->spot[x->near[b]].code;
}

static inline void consider(Front *x, float *second, int code, float value) {
    if (value > x->value) {
        *second = x->value;
        x->second = x->code;
        x->value = value;
        x->code = code;
    } else if (value > *second) {
        *second = value;
        x->second = code;
    }
}

static inline float growth_unary(const Growth *g, const Spot *at, int code) {
    return g->floating ? 0.0f : unary(g->p, (at->row + 1) * g->p->stride + at->col + 1, code);
}

/* Finds the two best candidates of a frontier cell. */
static void growth_evaluate(Growth *g, Front *x) {
    const Problem *p = g->p;
    const Spot *at = g->spot + x->spot;
    int bearing[4], side[4], m = 0;
    float out = 0.0f, second = -1e30f;
    for (int b = 0; b < 4; b++) {
        int other = growth_beside(g, at, b);
        if (fragment_of(other) == p->n) continue;
        bearing[m] = b;
        side[m] = side_facing(other, b + 2);
        out += p->log_u[side[m++]];
    }
    x->code = x->second = -1;
    x->value = -1e30f;
    if (p->link) {
        for (int i = 0; i < g->n_free; i++) {
            int f = g->free[i];
            float value[4] = {0};
            for (int j = 0; j < m; j++) {
                const float *row = p->link + (int64_t)side[j] * p->ld + 4 * (int64_t)f;
                for (int k = 0; k < 4; k++) value[k] += row[(bearing[j] - k) & 3];
            }
            for (int k = 0; k < (p->upright ? 1 : 4); k++)
                consider(x, &second, 4 * f + k, value[k] + growth_unary(g, at, 4 * f + k));
        }
    } else {
        for (int j = 0; j < m; j++) {
            const int32_t *partner = p->top_side + (int64_t)side[j] * TOP;
            for (int r = 0; r < TOP && partner[r] >= 0; r++) {
                int code = (partner[r] & ~3) | turns_to_face(partner[r], bearing[j]);
                if (g->free_at[fragment_of(code)] < 0 || code == x->code || code == x->second) continue;
                float value = growth_unary(g, at, code);
                for (int i = 0; i < m; i++) value += link_of(p, side[i], side_facing(code, bearing[i]));
                consider(x, &second, code, value);
            }
        }
    }
    x->gap = x->value - second;
    x->lead = x->code < 0 ? -1e30f : x->value - (second < out ? out : second);
    if (g->noise > 0.0f) x->lead -= g->noise * logf(-logf(rng_unit(g->rng)));
}

static void growth_close(Growth *g, int at) {
    g->spot[g->front[at].spot].front = CLOSED;
    g->front[at] = g->front[--g->n_front];
    if (at < g->n_front) g->spot[g->front[at].spot].front = at;
}

static void growth_extend(Growth *g, int row, int col) {
    if (row < g->row0) g->row0 = row;
    if (row > g->row1) g->row1 = row;
    if (col < g->col0) g->col0 = col;
    if (col > g->col1) g->col1 = col;
}

/* A fragment stands on a spot; the frontier is not looked at. */
static void growth_put(Growth *g, int spot, int code) {
    int f = fragment_of(code), at = g->free_at[f], last = g->free[--g->n_free];
    g->spot[spot].code = code;
    g->spot[spot].front = CLOSED;
    g->free[at] = last;
    g->free_at[last] = at;
    g->free_at[f] = -1;
    growth_extend(g, g->spot[spot].row, g->spot[spot].col);
}

/* The cell at bearing b of a spot joins the frontier; -1 when it is closed or does not fit, else its place there. */
static int growth_join(Growth *g, int spot, int b) {
    int other = g->spot[spot].near[b], row = g->spot[spot].row + g->p->d_row[b], col = g->spot[spot].col + g->p->d_col[b];
    if ((other >= 0 && g->spot[other].front == CLOSED) || !growth_fits(g, row, col)) return -1;
    if (other < 0) other = growth_spot(g, row, col);
    if (g->spot[other].front == UNSEEN) {
        g->spot[other].front = g->n_front;
        g->front[g->n_front++].spot = other;
    }
    return g->spot[other].front;
}

static void growth_run(Growth *g, float least) {
    for (int step = 0; g->n_front && g->n_free; step++) {
        int best = -1;
        if (step % ASK == ASK - 1 && over(g->control)) return;
        for (int i = 0; i < g->n_front; i++) {
            if (!growth_fits(g, g->spot[g->front[i].spot].row, g->spot[g->front[i].spot].col)) {
                growth_close(g, i--);
                continue;
            }
            if (best < 0 || g->front[i].lead > g->front[best].lead) best = i;
        }
        if (best < 0 || g->front[best].code < 0 || g->front[best].lead < least) return;
        Front chosen = g->front[best];
        int code = chosen.code;
        if (g->noise > 0.0f && chosen.second >= 0 && rng_unit(g->rng) * (1.0f + expf(chosen.gap / g->noise)) < 1.0f)
            code = chosen.second;
        growth_close(g, best);
        growth_put(g, chosen.spot, code);
        int f = fragment_of(code);
        for (int i = 0; i < g->n_front; i++)
            if (fragment_of(g->front[i].code) == f || fragment_of(g->front[i].second) == f)
                growth_evaluate(g, &g->front[i]);
        for (int b = 0; b < 4; b++) {
            int at = growth_join(g, chosen.spot, b);
            if (at >= 0) growth_evaluate(g, &g->front[at]);
        }
    }
}

typedef struct {
    int row, col, spot;
} Placed;

static int by_row_and_col(const void *a, const void *b) {
    const Placed *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return (x->col > y->col) - (x->col < y->col);
}

/* Fills g->order with the spots that a fragment stands on, by row and col. Returns 0 when memory ran out. */
static int growth_sort(Growth *g) {
    Placed *placed = zeros(g->p->n, sizeof(Placed));
    if (!placed) return 0;
    g->n_order = 0;
    for (int i = 0; i < g->n_spot; i++)
        if (fragment_of(g->spot[i].code) < g->p->n) placed[g->n_order++] = (Placed){g->spot[i].row, g->spot[i].col, i};
    qsort(placed, (size_t)g->n_order, sizeof(Placed), by_row_and_col);
    for (int i = 0; i < g->n_order; i++) g->order[i] = placed[i].spot;
    free(placed);
    return 1;
}

/* Starts the frontier around everything that stands. Returns 0 when memory ran out. */
static int growth_start(Growth *g) {
    if (!growth_sort(g)) return 0;
    for (int i = 0; i < g->n_order; i++) {
        if (i % ASK == ASK - 1 && over(g->control)) return 1;
        for (int b = 0; b < 4; b++) {
            int front = g->n_front, at = growth_join(g, g->order[i], b);
            if (at == front) growth_evaluate(g, &g->front[at]);
        }
    }
    return 1;
}

/* How well a spot is tied to its neighbours: half the sum of its links' probabilities. */
static float growth_ties(const Growth *g, const Spot *x) {
    const Problem *p = g->p;
    float sum = 0.0f;
    for (int b = 0; b < 4; b++) {
        int other = growth_beside(g, x, b);
        if (fragment_of(other) != p->n) sum += expf(link_of(p, side_facing(x->code, b), side_facing(other, b + 2)));
    }
    return 0.5f * sum;
}

/* Of the windows of h x w, the first one that holds more than *most; its first row and col go to *top and *left.
 * Slides down row by row: `column` (the region's width) holds what each column has within the rows of the window. */
static int growth_window(const Growth *g, const double *ties, double *column, int h, int w, double *most, int *top,
                         int *left) {
    int width = g->col1 - g->col0 + 1, better = 0, enters = 0, leaves = 0;
    int last_row = g->row1 - g->row0 + 1 > h ? g->row1 - h + 1 : g->row0, last_col = width > w ? g->col1 - w + 1 : g->col0;
    memset(column, 0, (size_t)width * sizeof(double));
    for (int row = g->row0; row <= last_row; row++) {
        if (row > g->row0 && row % ASK == 0 && over(g->control)) break;
        for (; enters < g->n_order && g->spot[g->order[enters]].row - row < h; enters++)
            column[g->spot[g->order[enters]].col - g->col0] += ties[enters];
        for (; leaves < enters && g->spot[g->order[leaves]].row < row; leaves++)
            column[g->spot[g->order[leaves]].col - g->col0] -= ties[leaves];
        double inside = 0.0;
        for (int c = 0; c < w && c < width; c++) inside += column[c];
        for (int col = g->col0; col <= last_col; col++) {
            if (inside > *most + 1e-9) {
                *most = inside;
                *top = row;
                *left = col;
                better = 1;
            }
            inside -= column[col - g->col0];
            if (col - g->col0 + w < width) inside += column[col - g->col0 + w];
        }
    }
    return better;
}

/* Chooses the window of a region that became too large, and takes back what lies outside. Returns 0 when memory ran
 * out. */
static int growth_trim(Growth *g) {
    const Problem *p = g->p;
    if (growth_fits(g, g->row0, g->col0)) return 1;
    double *ties = zeros(p->n, sizeof(double)), *column = zeros((int64_t)g->col1 - g->col0 + 1, sizeof(double));
    int ok = ties && column && growth_sort(g), top = 0, left = 0, rows = 0, cols = 0;
    double most = -1.0;
    for (int i = 0; ok && i < g->n_order; i++) ties[i] = 0.01 + growth_ties(g, g->spot + g->order[i]);
    for (int turned = 0; ok && turned < (p->upright || p->rows == p->cols ? 1 : 2); turned++) {
        int h = turned ? p->cols : p->rows, w = turned ? p->rows : p->cols;
        if (!growth_window(g, ties, column, h, w, &most, &top, &left)) continue;
        rows = h;
        cols = w;
    }
    free(ties);
    free(column);
    if (!ok) return 0;
    growth_empty(g);
    for (int i = 0; i < g->n_spot; i++) g->spot[i].front = UNSEEN;
    for (int i = 0; i < g->n_order; i++) {
        Spot *x = g->spot + g->order[i];
        if (x->row >= top && x->row - top < rows && x->col >= left && x->col - left < cols) {
            growth_extend(g, x->row, x->col);
            x->front = CLOSED;
        } else {
            g->free_at[fragment_of(x->code)] = g->n_free;
            g->free[g->n_free++] = fragment_of(x->code);
            x->code = 4 * p->n;
        }
    }
    g->n_front = 0;
    return 1;
}

/* A fragment whose sides have strong partners; the best of `draws` random ones, of all when draws is 0. */
static int growth_seed(Growth *g, int draws) {
    const Problem *p = g->p;
    int best = g->free[0];
    float most = -1.0f;
    for (int i = 0; i < (draws ? draws : g->n_free); i++) {
        int f = g->free[draws ? rng_below(g->rng, g->n_free) : i];
        float sum = 0.0f;
        for (int s = 4 * f; s < 4 * f + 4; s++) {
            int t = p->top_side[(int64_t)s * TOP];
            if (t >= 0) sum += expf(fminf(link_of(p, s, t), 0.0f));
        }
        if (sum > most) {
            most = sum;
            best = f;
        }
    }
    return best;
}

/* Unary score of the grown region (g->order) laid into the grid by m; -1e30 if it sticks out. */
static float growth_fit(const Growth *g, const Motion *m, State *st) {
    const Problem *p = g->p;
    float sum = 0.0f;
    for (int i = 0; i < g->n_order; i++) {
        const Spot *x = g->spot + g->order[i];
        int r, c;
        turn_offset(p, m->turns, x->row - m->from_row, x->col - m->from_col, &r, &c);
        r += m->to_row;
        c += m->to_col;
        if (r < 0 || c < 0 || r >= p->rows || c >= p->cols) return -1e30f;
        int cell = (r + 1) * p->stride + c + 1;
        if (st) put(st, cell, turned_code(x->code, m->turns));
        else sum += unary(p, cell, turned_code(x->code, m->turns));
    }
    return sum;
}

/* Lays the grown region into the grid where unary terms and the border like it best, and fills what is left in any way.
 * Returns 0 when memory ran out. */
static int growth_finish(Growth *g, State *st) {
    const Problem *p = g->p;
    Motion best = {0, 0, 0, 0, 0};
    if (!growth_sort(g)) return 0;
    if (g->floating) {
        float most = -2e30f;
        int height = g->row1 - g->row0 + 1, width = g->col1 - g->col0 + 1, tried = 0;
        int judged = p->unary_turns || p->unary_cells || p->unary_poses || p->border;
        for (int turns = 0; turns < (p->upright ? 1 : 4); turns++) {
            int h = turns & 1 ? width : height, w = turns & 1 ? height : width;
            if (h > p->rows || w > p->cols) continue;
            for (int row = 0; row <= p->rows - h; row++)
                for (int col = 0; col <= p->cols - w && (!tried || (judged && !over(g->control))); col++) {
                    int far_row, far_col;
                    turn_offset(p, turns, height - 1, width - 1, &far_row, &far_col);
                    Motion m = {g->row0, g->col0, row - (far_row < 0 ? far_row : 0), col - (far_col < 0 ? far_col : 0), turns};
                    float fit = judged ? growth_fit(g, &m, NULL) : 0.0f;
                    tried = 1;
                    if (fit > most) {
                        most = fit;
                        best = m;
                    }
                }
        }
    }
    for (int slot = 0; slot < p->slots; slot++) put(st, p->slot_cell[slot], 4 * p->n);
    growth_fit(g, &best, st);
    rebuild_pool(st);
    fill_holes(st);
    st->score = score_of(st);
    return 1;
}

/* Grows a placement. kept: (count) cells of st whose fragments stay together, or none; in_place: they stay where
 * they are. Pins always stay. Returns 0 when memory ran out. */
static int grow(State *st, const int32_t *kept, int count, int in_place, int draws, float noise) {
    const Problem *p = st->p;
    Growth g;
    int ok = growth_new(&g, st, noise);
    if (!ok) {
        growth_free(&g);
        return 0;
    }
    g.floating = !in_place && p->n_pinned == 0;
    for (int i = 0; i < count; i++) {
        int cell = kept[i];
        if (p->pinned_at[cell] >= 0 || fragment_of(st->code[cell]) == p->n) continue;
        growth_put(&g, growth_spot(&g, p->cell_row[cell], p->cell_col[cell]), st->code[cell]);
    }
    for (int slot = 0; slot < p->slots && p->n_pinned; slot++) {
        int cell = p->slot_cell[slot];
        if (p->pinned_at[cell] >= 0)
            growth_put(&g, growth_spot(&g, p->cell_row[cell], p->cell_col[cell]), p->pinned_at[cell]);
    }
    if (g.row0 > g.row1 && g.n_free) growth_put(&g, growth_spot(&g, 0, 0), 4 * growth_seed(&g, draws));
    if (!g.floating) {
        g.row0 = g.col0 = 0;
        g.row1 = p->rows - 1;
        g.col1 = p->cols - 1;
    }
    if (g.floating) {
        g.wide = 1;
        ok = growth_start(&g);
        if (ok) growth_run(&g, CLEAR);
        g.wide = 0;
        ok = ok && growth_trim(&g);
        for (int i = 0; i < g.n_front; i++) g.spot[g.front[i].spot].front = UNSEEN;
        g.n_front = 0;
    }
    if (ok && g.row0 <= g.row1) {
        ok = growth_start(&g);
        if (ok) growth_run(&g, -2e30f);
        ok = ok && growth_finish(&g, st);
    }
    growth_free(&g);
    return ok;
}

/* The best of several growths from different seeds; the first takes the strongest seed of all. */
static int grow_often(State *st, int times, float noise) {
    double most = -1e300;
    for (int i = 0; i < times && (!i || !over(st->control)); i++) {
        if (!grow(st, NULL, 0, 0, i ? 4 : 0, i ? noise : 0.0f)) return 0;
        if (st->score <= most) continue;
        most = st->score;
        save_best(st);
    }
    load_codes(st, st->best);
    return 1;
}
