/* Rigid moves: a set of cells moves as a whole by a turn and a translation, and what it displaces fills what it
 * left. Segments, rectangles, components of reliable links and the whole grid are all this one move.
 *
 * With phi the motion and S the set, a displaced cell x of phi(S) \ S sends its fragment along phi^-1 until it
 * leaves phi(S), which is in S \ phi(S): a bijection that keeps displaced regions whole. */

typedef struct {
    int from_row, from_col, to_row, to_col, turns; /* x -> turn(x - from) + to */
} Motion;

static inline int move_cell(const Problem *p, const Motion *m, int cell) {
    int row, col;
    turn_offset(p, m->turns, p->cell_row[cell] - m->from_row, p->cell_col[cell] - m->from_col, &row, &col);
    row += m->to_row;
    col += m->to_col;
    if (row < 0 || col < 0 || row >= p->rows || col >= p->cols) return -1;
    return (row + 1) * p->stride + col + 1;
}

static inline int turned_code(int code, int turns) { return (code & ~3) | ((code + turns) & 3); }

/* st->set[0..count) moves by m; cells that would leave the grid stay out of the set. Returns the number of changes
 * written to st->change, 0 when the move is impossible or empty. */
static int rigid_changes(State *st, int count, const Motion *m) {
    const Problem *p = st->p;
    int kept = 0, n_change = 0;
    for (int i = 0; i < count; i++) {
        int to = move_cell(p, m, st->set[i]);
        if (to < 0) continue;
        if (p->pinned_at[st->set[i]] >= 0 || p->pinned_at[to] >= 0) return 0;
        st->set[kept] = st->set[i];
        st->image[kept++] = to;
    }
    if (!kept || (m->turns == 0 && st->image[0] == st->set[0])) return 0;
    Motion back = {m->to_row, m->to_col, m->from_row, m->from_col, -m->turns & 3};
    int in_image = ++st->mark;
    for (int i = 0; i < kept; i++) st->stamp[st->image[i]] = in_image;
    for (int i = 0; i < kept; i++) {
        Change c = {st->image[i], turned_code(st->code[st->set[i]], m->turns)};
        st->change[n_change++] = c;
    }
    /* in_set cells get another stamp; a cell can be both, so the set is read through the inverse motion. */
    int in_set = ++st->mark;
    int32_t *set_stamp = st->queue;
    for (int i = 0; i < kept; i++) set_stamp[st->image[i]] = 0;
    for (int i = 0; i < kept; i++) set_stamp[st->set[i]] = in_set;
    for (int i = 0; i < kept; i++) {
        int x = st->image[i];
        if (set_stamp[x] == in_set) continue;
        int y = x, turns = 0;
        do {
            y = move_cell(p, &back, y);
            turns += back.turns;
        } while (st->stamp[y] == in_image);
        Change c = {y, turned_code(st->code[x], turns)};
        st->change[n_change++] = c;
    }
    return n_change;
}

static int propose_rigid(State *st, int count, const Motion *m, float t) {
    int changes = rigid_changes(st, count, m);
    return changes ? propose_changes(st, st->change, changes, t) : 0;
}

/* Fills st->set with a rectangle; returns its size. */
static int rectangle(State *st, int row, int col, int height, int width) {
    int count = 0;
    for (int r = row; r < row + height; r++)
        for (int c = col; c < col + width; c++) st->set[count++] = (r + 1) * st->p->stride + c + 1;
    return count;
}

/* A segment of a row or column slides one or more cells along itself; what it runs over goes to its other end. */
static int move_segment(State *st, float t) {
    const Problem *p = st->p;
    Rng *rng = &st->rng;
    int along_row = rng_below(rng, 2), length = along_row ? p->cols : p->rows;
    if (length < 2) return 0;
    int fixed = rng_below(rng, along_row ? p->rows : p->cols);
    int a = rng_below(rng, length), b = rng_below(rng, length);
    if (a == b) return 0;
    int low = a < b ? a : b, high = a < b ? b : a;
    int forward = rng_below(rng, 2); /* cells low..high-1 move by +1, or low+1..high by -1 */
    int first = forward ? low : low + 1, count = high - low, step = forward ? 1 : -1;
    int cells = along_row ? rectangle(st, fixed, first, 1, count) : rectangle(st, first, fixed, count, 1);
    Motion m = {0, 0, along_row ? 0 : step, along_row ? step : 0, 0};
    return propose_rigid(st, cells, &m, t);
}

enum { LONGEST = 10 };

/* A rectangle of at most LONGEST cells a side moves anywhere, turned by any amount; or turns in place when it lands on itself. */
static int move_block(State *st, float t) {
    const Problem *p = st->p;
    Rng *rng = &st->rng;
    int height = 1 + rng_below(rng, p->rows < LONGEST ? p->rows : LONGEST);
    int width = 1 + rng_below(rng, p->cols < LONGEST ? p->cols : LONGEST);
    if (rng_below(rng, 2)) {
        height = 1 + rng_below(rng, height);
        width = 1 + rng_below(rng, width);
    }
    int row = rng_below(rng, p->rows - height + 1), col = rng_below(rng, p->cols - width + 1);
    Motion m = {row, col, 0, 0, p->upright ? 0 : rng_below(rng, 4)};
    int turned_height = m.turns & 1 ? width : height, turned_width = m.turns & 1 ? height : width;
    if (turned_height > p->rows || turned_width > p->cols) return 0;
    int to_row = rng_below(rng, p->rows - turned_height + 1), to_col = rng_below(rng, p->cols - turned_width + 1);
    if (!rng_below(rng, 3) && turned_height == height) {
        to_row = row;
        to_col = col;
    }
    /* The turned rectangle's first cell is where the corner that turns into it came from. */
    int far_row, far_col, low_row = 0, low_col = 0;
    turn_offset(p, m.turns, height - 1, width - 1, &far_row, &far_col);
    if (far_row < low_row) low_row = far_row;
    if (far_col < low_col) low_col = far_col;
    m.to_row = to_row - low_row;
    m.to_col = to_col - low_col;
    return propose_rigid(st, rectangle(st, row, col, height, width), &m, t);
}

/* The connected region of cell `start` over links of at least log-probability `least`, at most `most` cells, into
 * st->set. */
static int component(State *st, int start, float least, int most) {
    const Problem *p = st->p;
    int count = 0;
    st->mark++;
    st->stamp[start] = st->mark;
    st->set[count++] = start;
    for (int i = 0; i < count; i++) {
        int turn = rng_below(&st->rng, 4);
        for (int j = 0; j < 4; j++) {
            int b = (j + turn) & 3, cell = st->set[i], other = cell + p->offset[b];
            if (count >= most || st->stamp[other] == st->mark || fragment_of(st->code[other]) == p->n) continue;
            if (p->pinned_at[other] >= 0) continue;
            int s = st->face[4 * (int64_t)cell + b], u = st->face[4 * (int64_t)other + ((b + 2) & 3)];
            if (link_of(p, s, u) < least) continue;
            st->stamp[other] = st->mark;
            st->set[count++] = other;
        }
    }
    return count;
}

enum { GRAIN = 5, PART = 250 }; /* cells of a component that is a grain; proposals of a part of settling */

/* What st->set gains by moving: the seams and poses it will have less those it has. Seams towards what comes back into
 * the cells it leaves are not counted. Returns 0 when some of it would leave the grid. */
static int gain_of_moving(State *st, int count, const Motion *m, float *gain) {
    const Problem *p = st->p;
    int32_t *in_set = st->queue;
    int tag = ++st->mark;
    for (int i = 0; i < count; i++) {
        int to = move_cell(p, m, st->set[i]);
        if (to < 0) return 0;
        st->image[i] = to;
        st->stamp[to] = tag;
        in_set[st->set[i]] = tag;
    }
    *gain = 0.0f;
    for (int i = 0; i < count; i++) {
        int cell = st->set[i], to = st->image[i], code = turned_code(st->code[cell], m->turns);
        *gain += unary(p, to, code) - unary(p, cell, st->code[cell]);
        for (int b = 0; b < 4; b++) {
            int from = cell + p->offset[b], beside = to + p->offset[b];
            if (in_set[from] != tag) *gain -= edge(st, cell, b);
            if (st->stamp[beside] != tag && in_set[beside] != tag)
                *gain += score(p, side_facing(code, b), st->face[4 * (int64_t)beside + ((b + 2) & 3)]);
        }
    }
    return 1;
}

/* Proposals of single fragments at temperature t that begin in and beside the cells of st->undo. */
static void settle(State *st, int changes, float t, double wanted) {
    const Problem *p = st->p;
    st->mark++;
    st->n_active = 0;
    for (int i = 0; i < changes; i++)
        for (int b = -1; b < 4; b++) {
            int cell = st->undo[i].cell + (b < 0 ? 0 : p->offset[b]);
            if (p->cell_slot[cell] < 0 || st->stamp[cell] == st->mark || p->pinned_at[cell] >= 0) continue;
            st->stamp[cell] = st->mark;
            st->active[st->n_active++] = cell;
        }
    for (int left = st->settling / PART; left > 0 && st->score < wanted; left--) {
        double was = st->score;
        for (int i = 0; i < PART; i++) {
            int kind = (int)(rng_next(&st->rng) >> 60);
            if (kind < 1) move_turn(st, t);
            else if (kind < 5) move_swap(st, t);
            else if (kind < 12) move_guided(st, t);
            else move_cycle(st, t);
        }
        /* What is won back becomes less and less: too little now is too little in the end. */
        if ((st->score - was) * (left - 1) < wanted - st->score) break;
    }
    focus(st);
}

/* A grain moves. Where it fits better itself, those that it displaces are given time to find places before it is
 * decided: at once they lose what their old neighbours were to them, and no grain would ever move. */
static int move_grain(State *st, int count, const Motion *m, float t) {
    float least = least_gain(st, t), gain;
    if (!gain_of_moving(st, count, m, &gain)) return propose_rigid(st, count, m, t);
    if (gain < least) return 0; /* what it displaces hardly ever gains */
    int changes = rigid_changes(st, count, m);
    if (!changes) return 0;
    double before = st->score;
    leave(st);
    memcpy(st->backup, st->code, (size_t)st->p->ncell * sizeof(int32_t));
    st->score += apply_changes(st, st->change, changes);
    arrive(st);
    if (st->score < before + least) settle(st, changes, t, before + least);
    if (st->score >= before + least) return 1;
    leave(st);
    load_codes(st, st->backup);
    st->score = before;
    return 0;
}

enum { LARGEST_REGION = 2500 }; /* cells that move at once: a proposal must not cost more the larger the puzzle is */

/* A component moves so that one of its outer sides touches a likely partner. */
static int move_component(State *st, float t) {
    static const float LEAST[8] = {-3.0f, -2.0f, -1.4f, -1.0f, -0.7f, -0.4f, -0.2f, -0.1f};
    const Problem *p = st->p;
    Rng *rng = &st->rng;
    int start = some_cell(st);
    if (fragment_of(st->code[start]) == p->n) return 0;
    int large = p->slots / 2 < LARGEST_REGION ? p->slots / 2 : LARGEST_REGION;
    int most = 2 + rng_below(rng, p->slots < 40 ? p->slots : (rng_below(rng, 16) ? 40 : large));
    int count = component(st, start, LEAST[rng_below(rng, 8)], most);
    if (count < 2) return 0;
    for (int attempt = 0; attempt < 6; attempt++) {
        int cell = st->set[rng_below(rng, count)];
        uint64_t bits = rng_next(rng);
        int b = (int)(bits & 3);
        if (st->stamp[cell + p->offset[b]] == st->mark) continue;
        int s = st->face[4 * (int64_t)cell + b];
        int partner = p->pick[(int64_t)s * PICKS + (bits >> 2) % PICKS];
        if (partner < 0) continue;
        int beside = st->cell_of[partner >> 2];
        if (beside < 0 || st->stamp[beside] == st->mark) continue;
        int faces = (partner + st->code[beside]) & 3, to = beside + p->offset[faces];
        if (p->cell_slot[to] < 0) continue;
        int turns = (turns_to_face(s, faces + 2) - st->code[cell]) & 3;
        if ((p->upright && turns) || (to == cell && !turns)) continue;
        Motion m = {p->cell_row[cell], p->cell_col[cell], p->cell_row[to], p->cell_col[to], turns};
        return st->settling && count >= GRAIN && !p->full ? move_grain(st, count, &m, t) : propose_rigid(st, count, &m, t);
    }
    return 0;
}

/* Everything moves by one step, or turns where a unary term could tell the gauge; the row or column that falls off comes back at the other side. */
static int move_whole(State *st, float t) {
    const Problem *p = st->p;
    Rng *rng = &st->rng;
    Motion m = {0, 0, 0, 0, 0};
    if (rng_below(rng, p->slots) >= 100) return 0; /* its cost grows with the grid, so its share falls */
    if ((p->unary_turns || p->unary_cells) && !p->upright && rng_below(rng, 4) == 0) {
        m.turns = p->rows == p->cols ? 1 + rng_below(rng, 3) : 2;
        int far_row, far_col; /* where the last cell lands when the first one stays */
        turn_offset(p, m.turns, p->rows - 1, p->cols - 1, &far_row, &far_col);
        m.to_row = far_row < 0 ? -far_row : 0;
        m.to_col = far_col < 0 ? -far_col : 0;
        return propose_rigid(st, rectangle(st, 0, 0, p->rows, p->cols), &m, t);
    }
    int b = rng_below(rng, 4), by = 1 + (rng_below(rng, 4) == 0);
    m.to_row = by * p->d_row[b];
    m.to_col = by * p->d_col[b];
    return propose_rigid(st, rectangle(st, 0, 0, p->rows, p->cols), &m, t);
}

/* One axis of the grid as a circle of lines, columns or rows, the last one beside the first.
 * Shapes: (length) each. */
typedef struct {
    double *seam;        /* scores between line k and the next one */
    double *first, *last; /* border scores of line k if it were the first one, the last one */
    int length, turned;  /* turned: steps that the lines moved since these were summed up */
} Ring;

static void ring_sum(Ring *r, const State *st, int axis) {
    const Problem *p = st->p;
    int forward = 0; /* the bearing along the axis */
    while ((axis ? p->d_col : p->d_row)[forward] != 1) forward++;
    memset(r->seam, 0, 3 * (size_t)r->length * sizeof(double));
    for (int slot = 0; slot < p->slots; slot++) {
        int row = slot / p->cols, col = slot % p->cols, k = axis ? col : row;
        int next = axis ? slot - col + (col + 1) % p->cols : (row + 1) % p->rows * p->cols + col;
        int code = st->code[p->slot_cell[slot]], beside = st->code[p->slot_cell[next]];
        r->seam[k] += score(p, side_facing(code, forward), side_facing(beside, forward + 2));
        if (!p->border) continue;
        r->first[k] += p->border[side_facing(code, forward + 2)];
        r->last[k] += p->border[side_facing(code, forward)];
    }
    r->turned = 0;
}

/* What the seams and the border gain when all lines move by `by`. */
static double ring_gain(const Ring *r, int by) {
    int n = r->length, end = (2 * n - 1 - r->turned) % n, begin = (n - r->turned) % n;
    int cut = (end + n - by) % n, opens = (cut + 1) % n; /* line `cut` becomes the last one, `opens` the first */
    return r->seam[end] - r->seam[cut] + r->first[opens] - r->first[begin] + r->last[cut] - r->last[end];
}

/* Everything moves along one axis by whatever number of steps is best, in a circle. A picture whose first columns found
 * their place beyond the last ones is far from right by single steps, and neither half can move without the other. Only
 * slides that seams and border do not speak clearly against are summed up in full. Returns 0 when memory ran out. */
static int slide_whole(State *st) {
    const Problem *p = st->p;
    int longest = p->rows > p->cols ? p->rows : p->cols, told = p->unary_cells || p->unary_poses || p->full;
    if (p->n_pinned) return 1;
    double *sums = zeros(3 * (int64_t)longest, sizeof(double));
    if (!sums) return 0;
    for (int axis = 0; axis < 2; axis++) {
        int length = axis ? p->cols : p->rows;
        Ring ring = {sums, sums + length, sums + 2 * length, length, 0};
        ring_sum(&ring, st, axis);
        for (int by = 1; by < length && !over(st->control); by++) {
            if (!told && ring_gain(&ring, by) < -1.0 - 1e-4 * fabs(st->score)) {
                rng_next(&st->rng); /* as whatever is refused takes one */
                continue;
            }
            for (int slot = 0; slot < p->slots; slot++) {
                int row = slot / p->cols, col = slot % p->cols;
                int to = axis ? row * p->cols + (col + by) % p->cols : (row + by) % p->rows * p->cols + col;
                Change c = {p->slot_cell[to], st->code[p->slot_cell[slot]]};
                st->change[slot] = c;
            }
            if (propose_changes(st, st->change, p->slots, 0.0f)) ring.turned = (ring.turned + by) % length;
        }
    }
    free(sums);
    return 1;
}
