/* Branch and bound over (slot, turns): the placement with the largest sum of side scores, proven.
 *
 * Items are the n fragments followed by holes (a hole scores 0 with everything), so there are at least as many
 * items as slots. Bearings E, N, W, S are 0..3; an item with turns k shows its side (d - k) mod 4 towards bearing d
 * of the canvas, and touches its neighbour in direction d, which shows it its own side facing d + 2.
 *
 * Bound at a node (Gilmore 1962, Lawler 1963, for this quadratic assignment): an unfilled slot p given item f with
 * turns k is worth at most
 *
 *     c[p][f][k] = sum over filled neighbours  score(side of f, side that faces it)
 *                + border scores of the sides that face out of the grid
 *                + 1/2 sum over unfilled neighbours  max over unused g  score(side of f, any side of g)
 *
 * and a linear assignment of unused items to unfilled slots with c[p][f] = max over k bounds the whole rest. Its dual
 * variables bound every child as well: value - reduced cost of (p, f, k). The slot with the fewest surviving children
 * is branched on, its best child first. Everything is summed in double precision; a child is cut when it cannot be
 * better than the best known by more than EXACT_TOLERANCE.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MOST 16 /* items; MOST_ITEMS of solvers/exact.py */
#define EXACT_TURNS 4
#define EXACT_FORBIDDEN 1e7
#define EXACT_TOLERANCE 1e-7
#define EXACT_NODES_PER_CALL 8192

typedef int (*exact_go_on)(int64_t nodes, double best);

typedef struct {
    int n, items, slots;
    const float *score;              /* (4n, 4n) */
    const float *border;             /* (4n) score of facing out of the grid */
    const int32_t *neighbour;        /* (slots, 4): slot in direction d, or -1 */
    const uint8_t *allowed;          /* (n, slots): bit k set when turns k are allowed there */
    uint8_t turns_anywhere[EXACT_MOST];
    /* Partners of side a of f when it faces d, best first: items and their scores. */
    int8_t partner[EXACT_MOST][EXACT_TURNS][EXACT_TURNS][EXACT_MOST];
    double partner_score[EXACT_MOST][EXACT_TURNS][EXACT_TURNS][EXACT_MOST];
    int partners[EXACT_MOST][EXACT_TURNS][EXACT_TURNS];

    int item_at[EXACT_MOST], turns_at[EXACT_MOST]; /* of each slot; item -1 while unfilled */
    int used[EXACT_MOST];
    double best;
    int best_item[EXACT_MOST], best_turns[EXACT_MOST], found;
    int64_t nodes;
    exact_go_on go_on;
    int stopped;
} ExactSearch;

typedef struct {
    double bound;
    int item, turns;
} ExactChild;

static int exact_side(int d, int turns) { return (d - turns) & 3; }

static double exact_pair(const ExactSearch *z, int f, int a, int g, int b) {
    if (f >= z->n || g >= z->n) return 0.0;
    return z->score[(size_t)(4 * f + a) * (size_t)(4 * z->n) + (size_t)(4 * g + b)];
}

/* The border scores of item f in slot p with turns k. */
static double exact_border(const ExactSearch *z, int p, int f, int k) {
    double sum = 0.0;
    for (int d = 0; d < EXACT_TURNS && f < z->n; d++)
        if (z->neighbour[4 * p + d] < 0) sum += z->border[4 * f + exact_side(d, k)];
    return sum;
}

static unsigned exact_allowed(const ExactSearch *z, int item, int slot) {
    return item >= z->n ? 1u : z->allowed[item * z->slots + slot];
}

static void exact_list_partners(ExactSearch *z) {
    for (int f = 0; f < z->n; f++)
        for (int a = 0; a < EXACT_TURNS; a++)
            for (int d = 0; d < EXACT_TURNS; d++) {
                int count = 0;
                for (int g = 0; g < z->items; g++) {
                    double top = -EXACT_FORBIDDEN;
                    int any = 0;
                    if (g == f) continue;
                    for (int b = 0; b < EXACT_TURNS; b++) {
                        if (g < z->n && !(z->turns_anywhere[g] >> ((d + 2 - b) & 3) & 1)) continue;
                        double s = exact_pair(z, f, a, g, b);
                        if (!any || s > top) top = s;
                        any = 1;
                    }
                    if (!any) continue;
                    int at = count++;
                    while (at > 0 && z->partner_score[f][a][d][at - 1] < top) {
                        z->partner_score[f][a][d][at] = z->partner_score[f][a][d][at - 1];
                        z->partner[f][a][d][at] = z->partner[f][a][d][at - 1];
                        at--;
                    }
                    z->partner_score[f][a][d][at] = top;
                    z->partner[f][a][d][at] = (int8_t)g;
                }
                z->partners[f][a][d] = count;
            }
}

/* The best an unused item other than f can score against side a of f facing d. */
static double exact_best_partner(const ExactSearch *z, int f, int a, int d) {
    for (int at = 0; at < z->partners[f][a][d]; at++)
        if (!z->used[z->partner[f][a][d][at]]) return z->partner_score[f][a][d][at];
    return 0.0;
}

/* Minimum-cost assignment of all rows to different columns (rows <= columns), shortest augmenting paths.
 * cost[r][c]; fills the dual variables u[r], v[c] (v <= 0) and the row of each column, and returns the minimum. */
static double exact_assign(double cost[EXACT_MOST][EXACT_MOST], int rows, int columns, double *u_out,
                           double *v_out, int *column_of_row) {
    double u[EXACT_MOST + 1] = {0}, v[EXACT_MOST + 1] = {0}, slack[EXACT_MOST + 1];
    int row_of[EXACT_MOST + 1] = {0}, way[EXACT_MOST + 1], seen[EXACT_MOST + 1];
    for (int r = 1; r <= rows; r++) {
        int column = 0;
        row_of[0] = r;
        for (int c = 0; c <= columns; c++) {
            slack[c] = 1e300;
            seen[c] = 0;
            way[c] = 0;
        }
        do {
            int row = row_of[column], next = 0;
            double delta = 1e300;
            seen[column] = 1;
            for (int c = 1; c <= columns; c++) {
                if (seen[c]) continue;
                double reduced = cost[row - 1][c - 1] - u[row] - v[c];
                if (reduced < slack[c]) {
                    slack[c] = reduced;
                    way[c] = column;
                }
                if (slack[c] < delta) {
                    delta = slack[c];
                    next = c;
                }
            }
            for (int c = 0; c <= columns; c++) {
                if (seen[c]) {
                    u[row_of[c]] += delta;
                    v[c] -= delta;
                } else {
                    slack[c] -= delta;
                }
            }
            column = next;
        } while (row_of[column] != 0);
        do {
            int previous = way[column];
            row_of[column] = row_of[previous];
            column = previous;
        } while (column != 0);
    }
    double total = 0.0;
    for (int c = 1; c <= columns; c++) {
        v_out[c - 1] = v[c];
        if (row_of[c]) {
            column_of_row[row_of[c] - 1] = c - 1;
            total += cost[row_of[c] - 1][c - 1];
        }
    }
    for (int r = 1; r <= rows; r++) u_out[r - 1] = u[r];
    return total;
}

/* The score of a whole arrangement: every touching pair once, seen from its left or lower slot. */
static double exact_whole(const ExactSearch *z, const int *item, const int *turns) {
    double total = 0.0;
    for (int p = 0; p < z->slots; p++) {
        total += exact_border(z, p, item[p], turns[p]);
        for (int d = 0; d < 2; d++) {
            int q = z->neighbour[4 * p + d];
            if (q >= 0)
                total += exact_pair(z, item[p], exact_side(d, turns[p]), item[q], exact_side(d + 2, turns[q]));
        }
    }
    return total;
}

static void exact_offer(ExactSearch *z, const int *item, const int *turns) {
    double score = exact_whole(z, item, turns);
    if (score > z->best) {
        z->best = score;
        z->found = 1;
        memcpy(z->best_item, item, sizeof z->best_item);
        memcpy(z->best_turns, turns, sizeof z->best_turns);
    }
}

static void exact_branch(ExactSearch *z, double gained) {
    int open[EXACT_MOST], rows = 0, item[EXACT_MOST], columns = 0;
    double worth[EXACT_MOST][EXACT_MOST][EXACT_TURNS], cost[EXACT_MOST][EXACT_MOST], u[EXACT_MOST], v[EXACT_MOST];
    int column_of_row[EXACT_MOST], top_turns[EXACT_MOST][EXACT_MOST];

    if (++z->nodes % EXACT_NODES_PER_CALL == 0 && z->go_on && !z->go_on(z->nodes, z->best)) z->stopped = 1;
    if (z->stopped) return;
    for (int p = 0; p < z->slots; p++)
        if (z->item_at[p] < 0) open[rows++] = p;
    if (rows == 0) {
        exact_offer(z, z->item_at, z->turns_at);
        return;
    }
    for (int f = 0; f < z->items; f++)
        if (!z->used[f]) item[columns++] = f;

    for (int c = 0; c < columns; c++) {
        int f = item[c];
        double half[EXACT_TURNS][EXACT_TURNS]; /* [own side][direction]: half of the best partner's score */
        if (f < z->n)
            for (int a = 0; a < EXACT_TURNS; a++)
                for (int d = 0; d < EXACT_TURNS; d++)
                    half[a][d] = z->turns_anywhere[f] >> ((d - a) & 3) & 1 ? 0.5 * exact_best_partner(z, f, a, d) : 0.0;
        for (int r = 0; r < rows; r++) {
            int p = open[r];
            unsigned turns = exact_allowed(z, f, p);
            double top = -EXACT_FORBIDDEN;
            top_turns[r][c] = 0;
            for (int k = 0; k < EXACT_TURNS; k++) {
                double sum = exact_border(z, p, f, k);
                if (!(turns >> k & 1)) {
                    worth[r][c][k] = -EXACT_FORBIDDEN;
                    continue;
                }
                if (f < z->n)
                    for (int d = 0; d < EXACT_TURNS; d++) {
                        int q = z->neighbour[4 * p + d], a = exact_side(d, k);
                        if (q < 0) continue;
                        if (z->item_at[q] >= 0)
                            sum += exact_pair(z, f, a, z->item_at[q], exact_side(d + 2, z->turns_at[q]));
                        else
                            sum += half[a][d];
                    }
                worth[r][c][k] = sum;
                if (sum > top) {
                    top = sum;
                    top_turns[r][c] = k;
                }
            }
            cost[r][c] = -top;
        }
    }
    double rest = -exact_assign(cost, rows, columns, u, v, column_of_row);
    if (rest < -0.5 * EXACT_FORBIDDEN || gained + rest <= z->best + EXACT_TOLERANCE) return;

    { /* The relaxed answer is an arrangement too: a start that often is the best. */
        int items_now[EXACT_MOST], turns_now[EXACT_MOST];
        memcpy(items_now, z->item_at, sizeof items_now);
        memcpy(turns_now, z->turns_at, sizeof turns_now);
        for (int r = 0; r < rows; r++) {
            items_now[open[r]] = item[column_of_row[r]];
            turns_now[open[r]] = top_turns[r][column_of_row[r]];
        }
        exact_offer(z, items_now, turns_now);
    }

    int branch = -1, fewest = EXACT_MOST * EXACT_TURNS + 1;
    for (int r = 0; r < rows; r++) {
        int count = 0, hole = 0;
        for (int c = 0; c < columns; c++) {
            if (item[c] >= z->n && hole++) continue; /* holes are all alike */
            for (int k = 0; k < EXACT_TURNS; k++)
                count += gained + rest - (-worth[r][c][k] - u[r] - v[c]) > z->best + EXACT_TOLERANCE;
        }
        if (count < fewest) {
            fewest = count;
            branch = r;
        }
    }
    ExactChild children[EXACT_MOST * EXACT_TURNS];
    int count = 0, hole = 0;
    for (int c = 0; c < columns; c++) {
        if (item[c] >= z->n && hole++) continue;
        for (int k = 0; k < EXACT_TURNS; k++) {
            double bound = gained + rest - (-worth[branch][c][k] - u[branch] - v[c]);
            if (bound <= z->best + EXACT_TOLERANCE) continue;
            int at = count++;
            while (at > 0 && children[at - 1].bound < bound) {
                children[at] = children[at - 1];
                at--;
            }
            children[at] = (ExactChild){bound, item[c], k};
        }
    }
    int p = open[branch];
    for (int at = 0; at < count && !z->stopped; at++) {
        int f = children[at].item, k = children[at].turns;
        double gain = exact_border(z, p, f, k);
        if (children[at].bound <= z->best + EXACT_TOLERANCE) break;
        for (int d = 0; d < EXACT_TURNS; d++) {
            int q = z->neighbour[4 * p + d];
            if (q >= 0 && z->item_at[q] >= 0)
                gain += exact_pair(z, f, exact_side(d, k), z->item_at[q], exact_side(d + 2, z->turns_at[q]));
        }
        z->item_at[p] = f;
        z->turns_at[p] = k;
        z->used[f] = 1;
        exact_branch(z, gained + gain);
        z->used[f] = 0;
        z->item_at[p] = -1;
    }
}

/* Finds the arrangement with the largest score above `floor`.
 *
 *   score (4n, 4n) finite, symmetric; border (4n); neighbour (slots, 4); allowed (n, slots)
 *   item_out (slots,): fragment, or -1 for a hole; turns_out (slots,)
 *   score_out, nodes_out: of the best arrangement; nodes looked at
 * Returns 0 when nothing is above the floor, 1 when item_out holds the best; plus 2 when it was stopped before the
 * proof was complete; -1 when there are more than EXACT_MOST items or memory is short. */
API int jig_exact(int n, int slots, const float *score, const float *border, const int32_t *neighbour, const uint8_t *allowed, double floor,
                  exact_go_on go_on, int32_t *item_out, int32_t *turns_out, double *score_out, int64_t *nodes_out) {
    if (n < 0 || slots < 1 || n > EXACT_MOST || slots > EXACT_MOST) return -1;
    ExactSearch *z = calloc(1, sizeof *z);
    if (!z) return -1;
    z->n = n;
    z->slots = slots;
    z->items = n > slots ? n : slots;
    z->score = score;
    z->border = border;
    z->neighbour = neighbour;
    z->allowed = allowed;
    z->best = floor;
    z->go_on = go_on;
    for (int f = 0; f < n; f++)
        for (int p = 0; p < slots; p++) z->turns_anywhere[f] |= allowed[f * slots + p];
    for (int p = 0; p < EXACT_MOST; p++) z->item_at[p] = -1;
    exact_list_partners(z);
    exact_branch(z, 0.0);
    for (int p = 0; p < slots; p++) {
        item_out[p] = z->found && z->best_item[p] < n ? z->best_item[p] : -1;
        turns_out[p] = z->found ? z->best_turns[p] : 0;
    }
    *score_out = z->best;
    *nodes_out = z->nodes;
    int result = (z->found ? 1 : 0) | (z->stopped ? 2 : 0);
    free(z);
    return result;
}
