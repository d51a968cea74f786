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

typedef struct {
    int cell, code, second; /* best and second candidate, -1 for none */
    float value, gap, lead; /* gap: over the second candidate; lead: over it and over no candidate, with noise */
} Front;

typedef struct {
    const Problem *p;
    Rng *rng;
    int size, offset[4]; /* the canvas is size x size */
    int32_t *code;       /* (size * size) */
    int32_t *front_of;   /* (size * size) index into front, -1 none, -2 closed */
    Front *front;
    int n_front;
    int32_t *free, *free_at; /* fragments not yet used, and where each stands in that list */
    int n_free;
    int row0, row1, col0, col1; /* extent, inclusive */
    int floating, origin;       /* origin: canvas row and col of the grid's first slot when not floating */
    int wide;                   /* the extent is free */
    float noise;
} Growth;

static void growth_free(Growth *g) {
    free(g->code);
    free(g->front_of);
    free(g->front);
    free(g->free);
    free(g->free_at);
}

static int growth_new(Growth *g, const Problem *p, Rng *rng, float noise) {
    int longest = p->rows > p->cols ? p->rows : p->cols;
    memset(g, 0, sizeof *g);
    g->p = p;
    g->rng = rng;
    g->noise = noise;
    g->size = 3 * longest + 4; /* a kept region may stand at either end of the grid and grow the other way */
    g->origin = longest + 1;
    int64_t area = (int64_t)g->size * g->size;
    g->code = zeros(area, sizeof(int32_t));
    g->front_of = zeros(area, sizeof(int32_t));
    g->front = zeros(area, sizeof(Front));
    g->free = zeros(p->n, sizeof(int32_t));
    g->free_at = zeros(p->n, sizeof(int32_t));
    if (!g->code || !g->front_of || !g->front || !g->free || !g->free_at) return 0;
    for (int b = 0; b < 4; b++) g->offset[b] = p->d_row[b] * g->size + p->d_col[b];
    for (int64_t c = 0; c < area; c++) {
        g->code[c] = 4 * p->n;
        g->front_of[c] = -1;
    }
    for (int f = 0; f < p->n; f++) {
        g->free_at[f] = -1;
        if (p->excluded[f]) continue;
        g->free_at[f] = g->n_free;
        g->free[g->n_free++] = f;
    }
    g->row0 = g->col0 = g->size;
    return 1;
}

/* The canvas' rim stays empty, so that every cell that fits has four neighbours: a region that grew while its extent was
 * free may have been cut down to what lies beside the rim. */
static int growth_fits(const Growth *g, int cell) {
    int row = cell / g->size, col = cell % g->size;
    if (row < 1 || col < 1 || row > g->size - 2 || col > g->size - 2) return 0;
    if (g->wide) return 1;
    int height = (row > g->row1 ? row : g->row1) - (row < g->row0 ? row : g->row0) + 1;
    int width = (col > g->col1 ? col : g->col1) - (col < g->col0 ? col : g->col0) + 1;
    if (height <= g->p->rows && width <= g->p->cols) return 1;
    return g->floating && !g->p->upright && height <= g->p->cols && width <= g->p->rows;
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

static inline float growth_unary(const Growth *g, int cell, int code) {
    const Problem *p = g->p;
    if (g->floating) return 0.0f;
    int row = cell / g->size - g->origin, col = cell % g->size - g->origin;
    return unary(p, (row + 1) * p->stride + col + 1, code);
}

/* Finds the two best candidates of a frontier cell. */
static void growth_evaluate(Growth *g, Front *x) {
    const Problem *p = g->p;
    int bearing[4], side[4], m = 0;
    float out = 0.0f, second = -1e30f;
    for (int b = 0; b < 4; b++) {
        int other = g->code[x->cell + g->offset[b]];
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
                consider(x, &second, 4 * f + k, value[k] + growth_unary(g, x->cell, 4 * f + k));
        }
    } else {
        for (int j = 0; j < m; j++) {
            const int32_t *partner = p->top_side + (int64_t)side[j] * TOP;
            for (int r = 0; r < TOP && partner[r] >= 0; r++) {
                int code = (partner[r] & ~3) | turns_to_face(partner[r], bearing[j]);
                if (g->free_at[fragment_of(code)] < 0 || code == x->code || code == x->second) continue;
                float value = growth_unary(g, x->cell, code);
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
    g->front_of[g->front[at].cell] = -2;
    g->front[at] = g->front[--g->n_front];
    if (at < g->n_front) g->front_of[g->front[at].cell] = at;
}

static void growth_extend(Growth *g, int row, int col) {
    if (row < g->row0) g->row0 = row;
    if (row > g->row1) g->row1 = row;
    if (col < g->col0) g->col0 = col;
    if (col > g->col1) g->col1 = col;
}

/* Writes a fragment to the canvas without looking at the frontier. */
static void growth_put(Growth *g, int cell, int code) {
    int row = cell / g->size, col = cell % g->size, f = fragment_of(code);
    g->code[cell] = code;
    g->front_of[cell] = -2;
    int at = g->free_at[f], last = g->free[--g->n_free];
    g->free[at] = last;
    g->free_at[last] = at;
    g->free_at[f] = -1;
    growth_extend(g, row, col);
}

static void growth_open(Growth *g, int cell) {
    for (int b = 0; b < 4; b++) {
        int other = cell + g->offset[b], at = g->front_of[other];
        if (at == -2 || !growth_fits(g, other)) continue;
        if (at == -1) {
            at = g->n_front++;
            g->front_of[other] = at;
            g->front[at].cell = other;
        }
        growth_evaluate(g, &g->front[at]);
    }
}

static void growth_run(Growth *g, float least) {
    while (g->n_front && g->n_free) {
        int best = -1;
        for (int i = 0; i < g->n_front; i++) {
            if (!growth_fits(g, g->front[i].cell)) {
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
        growth_put(g, chosen.cell, code);
        int f = fragment_of(code);
        for (int i = 0; i < g->n_front; i++)
            if (fragment_of(g->front[i].code) == f || fragment_of(g->front[i].second) == f)
                growth_evaluate(g, &g->front[i]);
        growth_open(g, chosen.cell);
    }
}

/* Starts the frontier around everything that stands on the canvas. */
static void growth_start(Growth *g) {
    for (int row = g->row0; row <= g->row1; row++)
        for (int col = g->col0; col <= g->col1; col++) {
            int cell = row * g->size + col;
            if (fragment_of(g->code[cell]) == g->p->n) continue;
            for (int b = 0; b < 4; b++) {
                int other = cell + g->offset[b];
                if (g->front_of[other] != -1 || !growth_fits(g, other)) continue;
                g->front_of[other] = g->n_front;
                g->front[g->n_front].cell = other;
                growth_evaluate(g, &g->front[g->n_front++]);
            }
        }
}

/* How well a canvas cell is tied to its neighbours: half the sum of its links' probabilities. */
static float growth_ties(const Growth *g, int cell) {
    const Problem *p = g->p;
    float sum = 0.0f;
    for (int b = 0; b < 4; b++) {
        int other = g->code[cell + g->offset[b]];
        if (fragment_of(other) != p->n) sum += expf(link_of(p, side_facing(g->code[cell], b), side_facing(other, b + 2)));
    }
    return 0.5f * sum;
}

/* Chooses the window of a region that became too large, and takes back what lies outside. Returns 0 when memory ran
 * out. */
static int growth_trim(Growth *g) {
    const Problem *p = g->p;
    int size = g->size, height = g->row1 - g->row0 + 1, width = g->col1 - g->col0 + 1;
    if (growth_fits(g, g->row0 * size + g->col0)) return 1;
    double *sum = zeros((int64_t)(size + 1) * (size + 1), sizeof(double)); /* of all cells above and left */
    if (!sum) return 0;
    for (int row = 0; row < size; row++)
        for (int col = 0; col < size; col++) {
            int cell = row * size + col;
            double ties = fragment_of(g->code[cell]) == p->n ? 0.0 : 0.01 + growth_ties(g, cell);
            sum[(row + 1) * (size + 1) + col + 1] =
                ties + sum[row * (size + 1) + col + 1] + sum[(row + 1) * (size + 1) + col] - sum[row * (size + 1) + col];
        }
    double most = -1.0;
    int top = 0, left = 0, rows = 0, cols = 0;
    for (int turned = 0; turned < (p->upright || p->rows == p->cols ? 1 : 2); turned++) {
        int h = turned ? p->cols : p->rows, w = turned ? p->rows : p->cols;
        int last_row = height > h ? g->row1 - h + 1 : g->row0, last_col = width > w ? g->col1 - w + 1 : g->col0;
        for (int row = g->row0; row <= last_row; row++)
            for (int col = g->col0; col <= last_col; col++) {
                int r1 = row + h < size ? row + h : size, c1 = col + w < size ? col + w : size;
                double inside = sum[r1 * (size + 1) + c1] - sum[row * (size + 1) + c1] - sum[r1 * (size + 1) + col] +
                                sum[row * (size + 1) + col];
                if (inside > most) {
                    most = inside;
                    top = row;
                    left = col;
                    rows = h;
                    cols = w;
                }
            }
    }
    free(sum);
    g->row0 = g->col0 = size;
    g->row1 = g->col1 = 0;
    for (int cell = 0; cell < size * size; cell++) {
        int row = cell / size, col = cell % size, f = fragment_of(g->code[cell]);
        g->front_of[cell] = -1;
        if (f == p->n) continue;
        if (row >= top && row < top + rows && col >= left && col < left + cols) {
            growth_extend(g, row, col);
            g->front_of[cell] = -2;
        } else {
            g->code[cell] = 4 * p->n;
            g->free_at[f] = g->n_free;
            g->free[g->n_free++] = f;
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

/* Unary energy of the grown region laid into the grid by m (canvas coordinates -> grid); -1e30 if it sticks out. */
static float growth_fit(const Growth *g, const Motion *m, State *st) {
    const Problem *p = g->p;
    float sum = 0.0f;
    for (int row = g->row0; row <= g->row1; row++)
        for (int col = g->col0; col <= g->col1; col++) {
            int code = g->code[row * g->size + col], r, c;
            if (fragment_of(code) == p->n) continue;
            turn_offset(p, m->turns, row - m->from_row, col - m->from_col, &r, &c);
            r += m->to_row;
            c += m->to_col;
            if (r < 0 || c < 0 || r >= p->rows || c >= p->cols) return -1e30f;
            int cell = (r + 1) * p->stride + c + 1;
            if (st) put(st, cell, turned_code(code, m->turns));
            else sum += unary(p, cell, turned_code(code, m->turns));
        }
    return sum;
}

/* Lays the grown region into the grid where unary terms and the border like it best, and fills what is left in any way. */
static void growth_finish(Growth *g, State *st) {
    const Problem *p = g->p;
    Motion best = {g->origin, g->origin, 0, 0, 0};
    if (g->floating) {
        float most = -2e30f;
        int height = g->row1 - g->row0 + 1, width = g->col1 - g->col0 + 1;
        int judged = p->unary_turns || p->unary_cells || p->unary_poses || p->border;
        for (int turns = 0; turns < (p->upright ? 1 : 4); turns++) {
            int h = turns & 1 ? width : height, w = turns & 1 ? height : width;
            if (h > p->rows || w > p->cols) continue;
            for (int row = 0; row <= p->rows - h; row++)
                for (int col = 0; col <= p->cols - w; col++) {
                    int far_row, far_col;
                    turn_offset(p, turns, height - 1, width - 1, &far_row, &far_col);
                    Motion m = {g->row0, g->col0, row - (far_row < 0 ? far_row : 0), col - (far_col < 0 ? far_col : 0), turns};
                    float fit = judged ? growth_fit(g, &m, NULL) : 0.0f;
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
    st->energy = energy_of(st);
}

/* Grows a placement. kept: (count) cells of st whose fragments stay together, or none; in_place: they stay where
 * they are. Pins always stay. Returns 0 when memory ran out. */
static int grow(State *st, const int32_t *kept, int count, int in_place, int draws, float noise) {
    const Problem *p = st->p;
    Growth g;
    if (!growth_new(&g, p, &st->rng, noise)) {
        growth_free(&g);
        return 0;
    }
    g.floating = !in_place && p->n_pinned == 0;
    for (int i = 0; i < count; i++) {
        int cell = kept[i];
        if (p->pinned_at[cell] >= 0 || fragment_of(st->code[cell]) == p->n) continue;
        growth_put(&g, (p->cell_row[cell] + g.origin) * g.size + p->cell_col[cell] + g.origin, st->code[cell]);
    }
    for (int slot = 0; slot < p->slots && p->n_pinned; slot++) {
        int cell = p->slot_cell[slot];
        if (p->pinned_at[cell] >= 0)
            growth_put(&g, (p->cell_row[cell] + g.origin) * g.size + p->cell_col[cell] + g.origin, p->pinned_at[cell]);
    }
    if (g.row0 > g.row1 && g.n_free) growth_put(&g, g.origin * (g.size + 1), 4 * growth_seed(&g, draws));
    if (!g.floating) {
        g.row0 = g.col0 = g.origin;
        g.row1 = g.origin + p->rows - 1;
        g.col1 = g.origin + p->cols - 1;
    }
    int ok = 1;
    if (g.floating) {
        g.wide = 1;
        growth_start(&g);
        growth_run(&g, CLEAR);
        g.wide = 0;
        ok = growth_trim(&g);
        for (int i = 0; i < g.n_front; i++) g.front_of[g.front[i].cell] = -1;
        g.n_front = 0;
    }
    if (ok && g.row0 <= g.row1) {
        growth_start(&g);
        growth_run(&g, -2e30f);
        growth_finish(&g, st);
    }
    growth_free(&g);
    return ok;
}

/* The best of several growths from different seeds; the first takes the strongest seed of all. */
static int grow_often(State *st, int times, float noise) {
    double most = -1e300;
    for (int i = 0; i < times; i++) {
        if (!grow(st, NULL, 0, 0, i ? 4 : 0, i ? noise : 0.0f)) return 0;
        if (st->energy <= most) continue;
        most = st->energy;
        save_best(st);
    }
    load_codes(st, st->best);
    return 1;
}
