/* The full pair score of small puzzles: beyond touching sides, every ordered pair of placed fragments adds
 *
 *     full[i, j, relation_of[d_row, d_col, k_i, k_j]],   (d_row, d_col) from i's cell to j's,
 *
 * and nothing where the table says -1 (the caller leaves unit steps to the side scores). A change of m fragments
 * costs O(m N). */

static inline float full_ordered(const Problem *p, int cell_i, int code_i, int cell_j, int code_j) {
    int d_row = p->cell_row[cell_j] - p->cell_row[cell_i] + p->rows - 1;
    int d_col = p->cell_col[cell_j] - p->cell_col[cell_i] + p->cols - 1;
    int relation = p->relation_of[16 * (d_row * (2 * p->cols - 1) + d_col) + 4 * turn_of(code_i) + turn_of(code_j)];
    if (relation < 0) return 0.0f;
    return p->full[((int64_t)fragment_of(code_i) * p->n + fragment_of(code_j)) * p->n_rel + relation];
}

static inline float full_pair(const Problem *p, int cell_i, int code_i, int cell_j, int code_j) {
    return full_ordered(p, cell_i, code_i, cell_j, code_j) + full_ordered(p, cell_j, code_j, cell_i, code_i);
}

static double full_score(const State *st) {
    const Problem *p = st->p;
    double sum = 0.0;
    if (!p->full) return 0.0;
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++)
            if (st->cell_of[i] >= 0 && st->cell_of[j] >= 0)
                sum += full_pair(p, st->cell_of[i], st->code[st->cell_of[i]], st->cell_of[j], st->code[st->cell_of[j]]);
    return sum;
}

/* All pair terms of the fragments in changed (stamped) cells, each pair once. */
static float full_around(const State *st, const Change *change, int count) {
    const Problem *p = st->p;
    double sum = 0.0;
    if (!p->full) return 0.0f;
    for (int i = 0; i < count; i++) {
        int cell = change[i].cell, code = st->code[cell];
        if (fragment_of(code) >= p->n) continue;
        for (int slot = 0; slot < p->slots; slot++) {
            int other = p->slot_cell[slot], other_code = st->code[other];
            if (other == cell || fragment_of(other_code) >= p->n) continue;
            if (st->stamp[other] == st->mark && other < cell) continue;
            sum += full_pair(p, cell, code, other, other_code);
        }
    }
    return (float)sum;
}
