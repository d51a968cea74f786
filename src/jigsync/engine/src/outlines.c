/* Outlines against outlines (engine/outlines.py): contacts, matches and overlaps of many pairs of fragments, summed into
 * normal equations. No angle is known here: every pose comes as a matrix [R | t] and its derivative R', so that signs
 * stay in values/angles.py.
 *
 * A row of the least squares problem of a pair (a, b) is v = (d/dt_a, d/dangle_a, d/dt_b, d/dangle_b, d/dgap, residual),
 * eight numbers; a pair's block is the sum of w v v^T. */

enum { ROW = 8, BLOCK = ROW * ROW, AROUND = 2 };

typedef struct {
    const int64_t *start;    /* n + 1 */
    const double *xy;        /* T x 2 */
    const double *normal;    /* T x 2 */
    const double *low;       /* n x 2, corner of the raster */
    const double *cell;      /* n */
    const int64_t *shape;    /* n x 2, rows and columns */
    const int64_t *first;    /* n, of the raster in the flat arrays */
    const float *depth;      /* R, signed distance, negative inside */
    const int32_t *nearest;  /* R, sample */
    const int64_t *inner_at; /* n + 1 */
    const double *inner;     /* P x 2 */
    const float *inner_depth; /* P */
    double step;
} Rasters;

/* A pair's pose is by itself, not one of its fragments': what is fitted may be poses in a canvas, or one i_from_j each. */
typedef struct {
    int64_t a, b;                  /* fragments */
    double ra[4], da[4], ta[2];    /* canvas_from_a: rows of R, rows of dR/dangle, t */
    double rb[4], db[4], tb[2];
} Pair;

static inline void turn2(const double *m, double x, double y, double *u, double *v) {
    *u = m[0] * x + m[1] * y;
    *v = m[2] * x + m[3] * y;
}

static inline void turn_back2(const double *m, double x, double y, double *u, double *v) {
    *u = m[0] * x + m[2] * y;
    *v = m[1] * x + m[3] * y;
}

/* The raster cell of a point in fragment f's frame, -1 off the raster. */
static inline int64_t raster_cell(const Rasters *s, int64_t f, double x, double y) {
    double col = floor((x - s->low[2 * f]) / s->cell[f]), row = floor((y - s->low[2 * f + 1]) / s->cell[f]);
    if (!(col >= 0 && row >= 0 && col < (double)s->shape[2 * f + 1] && row < (double)s->shape[2 * f])) return -1;
    return s->first[f] + (int64_t)row * s->shape[2 * f + 1] + (int64_t)col;
}

/* The sample of f nearest to a point among t and AROUND on either side. */
static int64_t refined(const Rasters *s, int64_t f, int64_t t, double x, double y) {
    int64_t first = s->start[f], count = s->start[f + 1] - first, best = t;
    double least = 1e300;
    for (int by = -AROUND; by <= AROUND; by++) {
        int64_t u = first + (t - first + by + AROUND * count) % count;
        double dx = x - s->xy[2 * u], dy = y - s->xy[2 * u + 1], d = dx * dx + dy * dy;
        if (d < least) {
            least = d;
            best = u;
        }
    }
    return best;
}

static inline void add_row(double *block, const double *v, double w) {
    for (int a = 0; a < ROW; a++) {
        double wa = w * v[a];
        for (int b = a; b < ROW; b++) block[ROW * a + b] += wa * v[b];
    }
}

/* v of (P - Q) . D with P = R_a p + t_a and Q = R_b q + t_b, but for the gap's column and the residual. */
static inline void row_of(const Pair *k, const double *p, const double *q, double dx, double dy, double *v) {
    double x, y;
    turn2(k->da, p[0], p[1], &x, &y);
    v[0] = dx;
    v[1] = dy;
    v[2] = x * dx + y * dy;
    turn2(k->db, q[0], q[1], &x, &y);
    v[3] = -dx;
    v[4] = -dy;
    v[5] = -(x * dx + y * dy);
}

/* Contacts of each pair: a's samples within `reach` of b's outline, facing it by more than `facing`.
 * residual = distance - gap, weight = facing (scale^2 / (scale^2 + residual^2))^2 unit.
 * blocks: pairs x BLOCK, added to; count: pairs, contacts within 2 scale of the gap, added to. */
API void jig_contacts(const Rasters *s, int64_t pairs, const Pair *pair, double gap, double scale, double reach,
                      double facing, double unit, double *blocks, int64_t *count) {
    for (int64_t k = 0; k < pairs; k++) {
        const Pair *m = pair + k;
        double wide = reach + s->cell[m->b], *block = blocks + BLOCK * k;
        for (int64_t p = s->start[m->a]; p < s->start[m->a + 1]; p++) {
            double x, y, nx, ny, dx, dy, v[ROW];
            turn2(m->ra, s->xy[2 * p], s->xy[2 * p + 1], &x, &y);
            turn_back2(m->rb, x + m->ta[0] - m->tb[0], y + m->ta[1] - m->tb[1], &x, &y);
            int64_t at = raster_cell(s, m->b, x, y);
            if (at < 0 || fabs((double)s->depth[at]) >= wide) continue;
            int64_t t = refined(s, m->b, s->nearest[at], x, y);
            const double *n = s->normal + 2 * t;
            x -= s->xy[2 * t];
            y -= s->xy[2 * t + 1];
            double distance = x * n[0] + y * n[1], off_x = x - distance * n[0], off_y = y - distance * n[1];
            if (fabs(distance) >= reach || off_x * off_x + off_y * off_y >= s->step * s->step) continue;
            turn2(m->ra, s->normal[2 * p], s->normal[2 * p + 1], &nx, &ny);
            turn2(m->rb, n[0], n[1], &dx, &dy);
            double faces = -(nx * dx + ny * dy);
            if (faces <= facing) continue;
            double residual = distance - gap, soft = scale * scale / (scale * scale + residual * residual);
            row_of(m, s->xy + 2 * p, s->xy + 2 * t, dx, dy, v);
            v[6] = -1.0;
            v[7] = residual;
            add_row(block, v, unit * faces * soft * soft);
            count[k] += fabs(residual) < 2 * scale;
        }
    }
}

/* Matches (from, to) of pair row[m]: where the two samples lie within `reach`, they hold each other along b's outline,
 * with weight strength (sigma^2 / (sigma^2 + residual^2))^2 unit. support: pairs, sum of their strengths, added to. */
API void jig_matches(const Rasters *s, const Pair *pair, int64_t matches, const int64_t *row, const int64_t *from,
                     const int64_t *to, const double *strength, double reach, double sigma, double unit, double *blocks,
                     double *support) {
    for (int64_t m = 0; m < matches; m++) {
        const Pair *k = pair + row[m];
        const double *p = s->xy + 2 * from[m], *q = s->xy + 2 * to[m], *n = s->normal + 2 * to[m];
        double px, py, qx, qy, tx, ty, v[ROW];
        turn2(k->ra, p[0], p[1], &px, &py);
        turn2(k->rb, q[0], q[1], &qx, &qy);
        px += k->ta[0] - qx - k->tb[0];
        py += k->ta[1] - qy - k->tb[1];
        if (px * px + py * py >= reach * reach) continue;
        support[row[m]] += strength[m];
        turn2(k->rb, -n[1], n[0], &tx, &ty); /* along the outline; which way does not matter */
        double residual = px * tx + py * ty, soft = sigma * sigma / (sigma * sigma + residual * residual);
        row_of(k, p, q, tx, ty, v);
        v[6] = 0.0;
        v[7] = residual;
        add_row(blocks + BLOCK * row[m], v, unit * strength[m] * soft * soft);
    }
}

/* share: pairs, of a's inner points those that lie deeper than `slack` in both. */
API void jig_overlap(const Rasters *s, int64_t pairs, const Pair *pair, double slack, double *share) {
    for (int64_t k = 0; k < pairs; k++) {
        const Pair *m = pair + k;
        int64_t deep = 0, all = s->inner_at[m->a + 1] - s->inner_at[m->a];
        for (int64_t p = s->inner_at[m->a]; p < s->inner_at[m->a + 1]; p++) {
            if (s->inner_depth[p] >= -slack) continue;
            double x, y;
            turn2(m->ra, s->inner[2 * p], s->inner[2 * p + 1], &x, &y);
            turn_back2(m->rb, x + m->ta[0] - m->tb[0], y + m->ta[1] - m->tb[1], &x, &y);
            int64_t at = raster_cell(s, m->b, x, y);
            deep += at >= 0 && s->depth[at] < -slack;
        }
        share[k] = all ? (double)deep / (double)all : 0.0;
    }
}

/* One fragment of a small fit. `place`: its number among those that move, -1 for one that stays. */
typedef struct {
    int64_t fragment, place;
    double angle, r[4], d[4], t[2]; /* canvas_from_fragment: angle, rows of R and of dR/dangle, t */
} Body;

typedef struct {
    int64_t rounds;
    double gap, widest, sharpest, noise, facing, apart, sigma, hold_xy, hold_angle, longest;
    double quarter[4]; /* R of a quarter turn: R(x) = cos(x) 1 + sin(x) quarter */
} FitPlan;

/* A x = b in place by Cholesky; n x n, symmetric, lower triangle read. Returns 0 when A is not positive definite. */
static int solve_spd(double *a, double *b, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            if (i == j) {
                if (!(sum > 0)) return 0;
                a[j * n + j] = sqrt(sum);
            } else {
                a[i * n + j] = sum / a[j * n + j];
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) b[i] -= a[i * n + k] * b[k];
        b[i] /= a[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) b[i] -= a[k * n + i] * b[k];
        b[i] /= a[i * n + i];
    }
    return 1;
}

static void place_pair(Pair *k, const Body *a, const Body *b) {
    k->a = a->fragment;
    k->b = b->fragment;
    memcpy(k->ra, a->r, sizeof k->ra);
    memcpy(k->da, a->d, sizeof k->da);
    memcpy(k->ta, a->t, sizeof k->ta);
    memcpy(k->rb, b->r, sizeof k->rb);
    memcpy(k->db, b->d, sizeof k->db);
    memcpy(k->tb, b->t, sizeof k->tb);
}

static void add_block(double *matrix, double *right, int64_t n, const double *block, int64_t a, int64_t b) {
    for (int x = 0; x < 6; x++) {
        int64_t at = x < 3 ? a : b, row = 3 * at + x % 3;
        if (at < 0) continue;
        right[row] -= block[ROW * x + ROW - 1];
        for (int y = 0; y < 6; y++) {
            int64_t to = y < 3 ? a : b;
            if (to >= 0) matrix[row * n + 3 * to + y % 3] += block[x <= y ? ROW * x + y : ROW * y + x];
        }
    }
}

/* Gauss-Newton over the bodies that move, at a fixed gap. link: links x 2, bodies of each pair; row, from, to, strength:
 * matches of the pairs, as in jig_matches. Returns 0, or -1 without memory. */
API int32_t jig_fit(const Rasters *s, int64_t bodies, Body *body, int64_t links, const int64_t *link, int64_t matches,
                    const int64_t *row, const int64_t *from, const int64_t *to, const double *strength,
                    const FitPlan *plan) {
    int64_t n = 0;
    for (int64_t i = 0; i < bodies; i++)
        if (body[i].place >= 0) n += 3;
    if (!n || !links) return 0;
    Pair *pair = malloc((size_t)links * sizeof *pair);
    double *blocks = malloc((size_t)links * BLOCK * sizeof *blocks), *support = malloc((size_t)links * sizeof *support);
    int64_t *count = malloc((size_t)links * sizeof *count);
    double *matrix = malloc((size_t)(n * n) * sizeof *matrix), *right = malloc((size_t)n * sizeof *right);
    int32_t code = pair && blocks && support && count && matrix && right ? 0 : -1;
    for (int64_t round = 0; code == 0 && round < plan->rounds; round++) {
        double part = plan->rounds > 1 ? (double)round / (double)(plan->rounds - 1) : 1.0;
        double scale = plan->widest * pow(plan->sharpest / plan->widest, part);
        double reach = plan->gap + 3 * scale, noise = scale / 3 > plan->noise ? scale / 3 : plan->noise;
        for (int64_t k = 0; k < links; k++) place_pair(pair + k, body + link[2 * k], body + link[2 * k + 1]);
        memset(count, 0, (size_t)links * sizeof *count);
        memset(support, 0, (size_t)links * sizeof *support);
        memset(blocks, 0, (size_t)links * BLOCK * sizeof *blocks);
        memset(matrix, 0, (size_t)(n * n) * sizeof *matrix);
        memset(right, 0, (size_t)n * sizeof *right);
        jig_contacts(s, links, pair, plan->gap, scale, reach, plan->facing, 1.0 / (plan->apart * noise * noise), blocks,
                     count);
        jig_matches(s, pair, matches, row, from, to, strength, reach + plan->sigma, plan->sigma,
                    1.0 / (plan->apart * plan->sigma * plan->sigma), blocks, support);
        for (int64_t k = 0; k < links; k++)
            add_block(matrix, right, n, blocks + BLOCK * k, body[link[2 * k]].place, body[link[2 * k + 1]].place);
        for (int64_t i = 0; i < n; i++) matrix[i * n + i] += i % 3 == 2 ? plan->hold_angle : plan->hold_xy;
        if (!solve_spd(matrix, right, n)) break;
        for (int64_t i = 0; i < bodies; i++) {
            Body *b = body + i;
            if (b->place < 0) continue;
            const double *move = right + 3 * b->place;
            double length = sqrt(move[0] * move[0] + move[1] * move[1]);
            double share = length > plan->longest ? plan->longest / length : 1.0;
            double c = cos(share * move[2]), q = sin(share * move[2]), turned[4], r[4], d[4];
            for (int e = 0; e < 4; e++) turned[e] = (e % 3 ? 0.0 : c) + q * plan->quarter[e];
            for (int e = 0; e < 4; e++) {
                r[e] = turned[e & 2] * b->r[e & 1] + turned[(e & 2) + 1] * b->r[2 + (e & 1)];
                d[e] = turned[e & 2] * b->d[e & 1] + turned[(e & 2) + 1] * b->d[2 + (e & 1)];
            }
            memcpy(b->r, r, sizeof r);
            memcpy(b->d, d, sizeof d);
            b->t[0] += share * move[0];
            b->t[1] += share * move[1];
            b->angle += share * move[2];
        }
    }
    free(pair);
    free(blocks);
    free(support);
    free(count);
    free(matrix);
    free(right);
    return code;
}
