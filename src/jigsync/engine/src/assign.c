/* Linear assignment: shortest augmenting paths with dual potentials (Jonker and Volgenant's scheme). */

typedef struct {
    double *u, *v, *reach; /* duals of rows and columns, shortest reduced path to a column */
    int32_t *row_of, *way; /* (cols + 1) */
    uint8_t *done;
} Assigner;

static void assigner_free(Assigner *a) {
    free(a->u);
    free(a->v);
    free(a->reach);
    free(a->row_of);
    free(a->way);
    free(a->done);
}

static int assigner_new(Assigner *a, int rows, int cols) {
    a->u = zeros(rows + 1, sizeof(double));
    a->v = zeros(cols + 1, sizeof(double));
    a->reach = zeros(cols + 1, sizeof(double));
    a->row_of = zeros(cols + 1, sizeof(int32_t));
    a->way = zeros(cols + 1, sizeof(int32_t));
    a->done = zeros(cols + 1, 1);
    return a->u && a->v && a->reach && a->row_of && a->way && a->done;
}

/* Maximises the sum of value[r, column of r] over assignments of each row to its own column; rows <= cols.
 * Shapes: value rows x cols, col_of (rows). Index 0 of the scratch is the virtual column. */
static void assign_most(Assigner *a, const float *value, int rows, int cols, int32_t *col_of) {
    memset(a->v, 0, (size_t)(cols + 1) * sizeof(double));
    memset(a->u, 0, (size_t)(rows + 1) * sizeof(double));
    memset(a->row_of, 0, (size_t)(cols + 1) * sizeof(int32_t));
    for (int r = 1; r <= rows; r++) {
        int col = 0;
        a->row_of[0] = r;
        for (int c = 0; c <= cols; c++) a->reach[c] = 1e300;
        memset(a->done, 0, (size_t)cols + 1);
        do {
            a->done[col] = 1;
            int row = a->row_of[col], next = 0;
            double shortest = 1e300, base = a->u[row];
            const float *v = value + (int64_t)(row - 1) * cols;
            for (int c = 1; c <= cols; c++) {
                if (a->done[c]) continue;
                double reduced = -(double)v[c - 1] - base - a->v[c];
                if (reduced < a->reach[c]) {
                    a->reach[c] = reduced;
                    a->way[c] = col;
                }
                if (a->reach[c] < shortest) {
                    shortest = a->reach[c];
                    next = c;
                }
            }
            for (int c = 0; c <= cols; c++) {
                if (a->done[c]) {
                    a->u[a->row_of[c]] += shortest;
                    a->v[c] -= shortest;
                } else {
                    a->reach[c] -= shortest;
                }
            }
            col = next;
        } while (a->row_of[col]);
        do {
            int before = a->way[col];
            a->row_of[col] = a->row_of[before];
            col = before;
        } while (col);
    }
    for (int c = 1; c <= cols; c++)
        if (a->row_of[c]) col_of[a->row_of[c] - 1] = c - 1;
}
