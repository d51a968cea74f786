/* Building a Problem: score access, pins, and the links that guide every proposal. */

static void problem_free(Problem *p) {
    if (!p) return;
    free(p->dense_own);
    free(p->hash_start);
    free(p->hash_mask);
    free(p->hash_key);
    free(p->hash_value);
    free(p->unary_turns);
    free(p->unary_cells);
    free(p->full);
    free(p->relation_of);
    free(p->pinned_at);
    free(p->fixed);
    free(p->excluded);
    free(p->free_cells);
    free(p->slot_cell);
    free(p->cell_slot);
    free(p->cell_row);
    free(p->cell_col);
    free(p->top_side);
    free(p->top_score);
    free(p->pick);
    free(p->log_u);
    free(p->log_out);
    free(p);
}

/* calloc of at least one byte, so that NULL always means that memory ran out. */
static void *zeros(int64_t count, size_t size) { return calloc(count > 0 ? (size_t)count : 1, size); }

static int problem_dense(Problem *p, const float *dense) {
    int64_t side_count = 4 * (int64_t)p->n;
    p->ld = side_count + 4;
    p->dense_own = zeros(p->ld * p->ld, sizeof(float));
    if (!p->dense_own) return 0;
    for (int64_t s = 0; s < side_count; s++)
        memcpy(p->dense_own + s * p->ld, dense + s * side_count, (size_t)side_count * sizeof(float));
    p->dense = p->dense_own;
    return 1;
}

static int problem_sparse(Problem *p, const int64_t *indptr, const int32_t *indices, const float *values) {
    int64_t side_count = 4 * (int64_t)p->n;
    p->hash_start = zeros(side_count + 1, sizeof(int64_t));
    p->hash_mask = zeros(side_count, sizeof(int32_t));
    if (!p->hash_start || !p->hash_mask) return 0;
    int64_t total = 0;
    for (int64_t s = 0; s < side_count; s++) {
        int64_t buckets = 4;
        while (buckets < 2 * (indptr[s + 1] - indptr[s])) buckets *= 2;
        p->hash_start[s] = total;
        p->hash_mask[s] = (int32_t)(buckets - 1);
        total += buckets;
    }
    p->hash_key = zeros(total, sizeof(int32_t));
    p->hash_value = zeros(4 * total, sizeof(float));
    if (!p->hash_key || !p->hash_value) return 0;
    for (int64_t b = 0; b < total; b++) p->hash_key[b] = -1;
    for (int64_t s = 0; s < side_count; s++) {
        for (int64_t e = indptr[s]; e < indptr[s + 1]; e++) {
            int f = indices[e] >> 2;
            uint32_t h = (uint32_t)f * 2654435761u >> 8;
            int64_t bucket = p->hash_start[s] + (h & (uint32_t)p->hash_mask[s]);
            while (p->hash_key[bucket] >= 0 && p->hash_key[bucket] != f)
                bucket = p->hash_start[s] + (++h & (uint32_t)p->hash_mask[s]);
            if (p->hash_key[bucket] < 0) {
                p->hash_key[bucket] = f;
                for (int a = 0; a < 4; a++) p->hash_value[4 * bucket + a] = p->floor;
            }
            p->hash_value[4 * bucket + (indices[e] & 3)] = values[e];
        }
    }
    return 1;
}

/* One candidate partner of side s goes into its sorted top list; returns the weight that fell off the end. */
static double top_insert(Problem *p, int s, int t, float value) {
    int32_t *side = p->top_side + (int64_t)s * TOP;
    float *value_of = p->top_score + (int64_t)s * TOP;
    double lost;
    if (side[TOP - 1] >= 0 && value <= value_of[TOP - 1]) return exp(fmin(value, 30.0));
    lost = side[TOP - 1] >= 0 ? exp(fmin(value_of[TOP - 1], 30.0)) : 0.0;
    int at = TOP - 1;
    while (at > 0 && (side[at - 1] < 0 || value_of[at - 1] < value)) {
        side[at] = side[at - 1];
        value_of[at] = value_of[at - 1];
        at--;
    }
    side[at] = t;
    value_of[at] = value;
    return lost;
}

static int may_touch(const Problem *p, int s, int t) {
    if ((s >> 2) == (t >> 2) || p->excluded[t >> 2]) return 0;
    return !p->upright || ((s ^ t) & 3) == 2;
}

/* Links: a side touches at most one other, so scores compete. With weights w = exp(score) and weight 1 for "no
 * partner", the matching probability is approximated by the symmetric Sinkhorn fixed point
 *
 *     P(s, t) = u_s u_t w(s, t),   u_s (1 + sum_t w(s, t) u_t) = 1,
 *
 * iterated with geometric damping. Partners past the best TOP count with the mean u. */
static int problem_links(Problem *p, const int64_t *indptr, const int32_t *indices, const float *values) {
    int side_count = 4 * p->n;
    p->top_side = zeros((int64_t)side_count * TOP, sizeof(int32_t));
    p->top_score = zeros((int64_t)side_count * TOP, sizeof(float));
    p->pick = zeros((int64_t)side_count * PICKS, sizeof(int32_t));
    p->log_u = zeros(side_count + 4, sizeof(float));
    p->log_out = zeros(side_count + 4, sizeof(float));
    double *tail = zeros(side_count, sizeof(double)), *u = zeros(side_count, sizeof(double));
    double *u_next = zeros(side_count, sizeof(double)), *weight = zeros((int64_t)side_count * TOP, sizeof(double));
    int ok = p->top_side && p->top_score && p->pick && p->log_u && p->log_out && tail && u && u_next && weight;
    if (ok) {
        for (int64_t e = 0; e < (int64_t)side_count * TOP; e++) p->top_side[e] = -1;
        for (int s = 0; s < side_count; s++) {
            if (p->dense) {
                for (int t = 0; t < side_count; t++)
                    if (may_touch(p, s, t)) tail[s] += top_insert(p, s, t, p->dense[(int64_t)s * p->ld + t]);
            } else {
                int64_t listed = indptr[s + 1] - indptr[s];
                for (int64_t e = indptr[s]; e < indptr[s + 1]; e++)
                    if (may_touch(p, s, indices[e])) tail[s] += top_insert(p, s, indices[e], values[e]);
                tail[s] += exp(fmin(p->floor, 30.0)) * fmax(0.0, (p->upright ? p->n : side_count) - (double)listed);
            }
            double sum = 1.0 + tail[s];
            for (int r = 0; r < TOP; r++) {
                int64_t e = (int64_t)s * TOP + r;
                weight[e] = p->top_side[e] < 0 ? 0.0 : exp(fmin(p->top_score[e], 30.0));
                sum += weight[e];
            }
            u[s] = 1.0 / sqrt(sum);
        }
        for (int round = 0; round < 20; round++) {
            double mean = 0.0;
            for (int s = 0; s < side_count; s++) mean += u[s] / side_count;
            for (int s = 0; s < side_count; s++) {
                double sum = 1.0 + tail[s] * mean;
                for (int r = 0; r < TOP && p->top_side[(int64_t)s * TOP + r] >= 0; r++)
                    sum += weight[(int64_t)s * TOP + r] * u[p->top_side[(int64_t)s * TOP + r]];
                u_next[s] = sqrt(u[s] / sum);
            }
            memcpy(u, u_next, (size_t)side_count * sizeof(double));
        }
        for (int s = 0; s < side_count; s++) {
            p->log_u[s] = (float)log(u[s]);
            p->log_out[s] = p->log_u[s];
            /* Proposals follow sqrt(P), flatter than P: a search must also try what is unlikely. */
            double share[TOP], sum = 0.0;
            int count = 0;
            for (; count < TOP && p->top_side[(int64_t)s * TOP + count] >= 0; count++) {
                int64_t e = (int64_t)s * TOP + count;
                sum += share[count] = sqrt(weight[e] * u[p->top_side[e]]);
            }
            int at = 0;
            double owed = 0.0;
            for (int r = 0; r < count && at < PICKS; r++) {
                owed += share[r] / sum * PICKS;
                int until = (int)(owed + 0.5);
                while (at < until && at < PICKS) p->pick[(int64_t)s * PICKS + at++] = p->top_side[(int64_t)s * TOP + r];
            }
            while (at < PICKS) p->pick[(int64_t)s * PICKS + at++] = count ? p->top_side[(int64_t)s * TOP] : -1;
        }
    }
    free(tail);
    free(u);
    free(u_next);
    free(weight);
    return ok;
}

static int problem_geometry(Problem *p, const int32_t *steps) {
    p->slots = p->rows * p->cols;
    p->stride = p->cols + 2;
    p->ncell = (p->rows + 2) * p->stride;
    p->slot_cell = zeros(p->slots, sizeof(int32_t));
    p->cell_slot = zeros(p->ncell, sizeof(int32_t));
    p->cell_row = zeros(p->ncell, sizeof(int16_t));
    p->cell_col = zeros(p->ncell, sizeof(int16_t));
    p->pinned_at = zeros(p->ncell, sizeof(int32_t));
    p->free_cells = zeros(p->slots, sizeof(int32_t));
    p->fixed = zeros(p->n + 1, 1);
    p->excluded = zeros(p->n + 1, 1);
    if (!p->slot_cell || !p->cell_slot || !p->cell_row || !p->cell_col || !p->pinned_at || !p->free_cells ||
        !p->fixed || !p->excluded)
        return 0;
    for (int b = 0; b < 4; b++) {
        p->d_row[b] = steps[2 * b];
        p->d_col[b] = steps[2 * b + 1];
        p->offset[b] = p->d_row[b] * p->stride + p->d_col[b];
    }
    for (int c = 0; c < p->ncell; c++) {
        p->cell_slot[c] = -1;
        p->pinned_at[c] = -1;
        p->cell_row[c] = (int16_t)(c / p->stride - 1);
        p->cell_col[c] = (int16_t)(c % p->stride - 1);
    }
    for (int slot = 0; slot < p->slots; slot++) {
        int cell = (slot / p->cols + 1) * p->stride + slot % p->cols + 1;
        p->slot_cell[slot] = cell;
        p->cell_slot[cell] = slot;
    }
    return 1;
}
