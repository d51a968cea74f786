/* Building a Problem: score access and geometry. */

static void problem_free(Problem *p) {
    if (!p) return;
    free(p->dense_own);
    free(p->hash_start);
    free(p->hash_mask);
    free(p->hash_key);
    free(p->hash_value);
    free(p->unary_turns);
    free(p->unary_cells);
    free(p->unary_poses);
    free(p->border);
    free(p->outside);
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
    free(p->top_gain);
    free(p->top_link);
    free(p->link);
    free(p->pick);
    free(p->log_u);
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

static int problem_geometry(Problem *p, const int32_t *steps) {
    p->slots = p->rows * p->cols;
    p->stride = p->cols + 2;
    p->ncell = (p->rows + 2) * p->stride;
    p->slot_cell = zeros(p->slots, sizeof(int32_t));
    p->cell_slot = zeros(p->ncell, sizeof(int32_t));
    p->cell_row = zeros(p->ncell, sizeof(int32_t));
    p->cell_col = zeros(p->ncell, sizeof(int32_t));
    p->pinned_at = zeros(p->ncell, sizeof(int32_t));
    p->free_cells = zeros(p->slots, sizeof(int32_t));
    p->outside = zeros(p->ncell, 1);
    p->fixed = zeros(p->n + 1, 1);
    p->excluded = zeros(p->n + 1, 1);
    if (!p->slot_cell || !p->cell_slot || !p->cell_row || !p->cell_col || !p->pinned_at || !p->free_cells ||
        !p->outside || !p->fixed || !p->excluded)
        return 0;
    for (int b = 0; b < 4; b++) {
        p->d_row[b] = steps[2 * b];
        p->d_col[b] = steps[2 * b + 1];
        p->offset[b] = p->d_row[b] * p->stride + p->d_col[b];
    }
    for (int c = 0; c < p->ncell; c++) {
        p->cell_slot[c] = -1;
        p->pinned_at[c] = -1;
        p->cell_row[c] = c / p->stride - 1;
        p->cell_col[c] = c % p->stride - 1;
    }
    for (int slot = 0; slot < p->slots; slot++) {
        int cell = (slot / p->cols + 1) * p->stride + slot % p->cols + 1;
        p->slot_cell[slot] = cell;
        p->cell_slot[cell] = slot;
    }
    for (int slot = 0; slot < p->slots; slot++)
        for (int b = 0; b < 4; b++)
            if (p->cell_slot[p->slot_cell[slot] + p->offset[b]] < 0) p->outside[p->slot_cell[slot]] |= 1 << b;
    return 1;
}
