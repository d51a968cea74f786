/* Links: how likely two sides touch, judged before any search, by two kinds of evidence that a score alone lacks.
 *
 * One to one: a side touches at most one other, so scores compete. With weights w = exp(score + gain) and weight 1
 * for "no partner", the matching probability is the symmetric Sinkhorn fixed point
 *
 *     P(s, t) = u_s u_t w(s, t),   u_s (1 + sum_t w(s, t) u_t) = 1,
 *
 * iterated with geometric damping; partners past the best TOP count with the mean u.
 *
 * Loops: inside a picture, a true pair is part of two closed loops of 2 x 2 fragments, one on either hand. If the
 * pair is true, the fragments beside it touch as well; the posterior of that last touch over its prior 1 / 4N,
 * averaged over who may stand beside the pair, is the evidence that a hand gives:
 *
 *     gain(s, t) = sum over hands of log(1 + LOOP_WEIGHT 4N sum_{m, l} P(s', m) P(t', l) P(m', l')).
 *
 * Matching and loops are judged in turn. On planted puzzles of 10 x 10 whose true partners come first in 60 % of
 * rows, they come first by P in 98 % (benchmarks/decoder.py prints it). */

#define LOOP_WEIGHT 10.0f
enum { LOOP_WIDTH = 10, LOOP_PASSES = 3, STRIDE = 64 /* sides between two looks at the clock */ };

/* One candidate partner of side s goes into its sorted top list; returns the weight that fell off the end. */
static double top_insert(Problem *p, int s, int t, float value) {
    int32_t *side = p->top_side + (int64_t)s * TOP;
    float *value_of = p->top_score + (int64_t)s * TOP;
    if (side[TOP - 1] >= 0 && value <= value_of[TOP - 1]) return exp(fmin(value, 30.0));
    double lost = side[TOP - 1] >= 0 ? exp(fmin(value_of[TOP - 1], 30.0)) : 0.0;
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

/* Best partners of every side; tail: weight of all others above the row's least, which stands for "ruled out". */
static void links_top(Problem *p, const Control *c, const int64_t *indptr, const int32_t *indices, const float *values, double *tail) {
    int side_count = 4 * p->n;
    for (int64_t e = 0; e < (int64_t)side_count * TOP; e++) p->top_side[e] = -1;
    for (int s = 0; s < side_count; s++) {
        if (s % STRIDE == 0 && over(c)) return; /* the rest has no partners */
        if (p->dense) {
            const float *row = p->dense + (int64_t)s * p->ld;
            float least = 1e30f;
            int others = -TOP;
            for (int t = 0; t < side_count; t++) {
                if (!may_touch(p, s, t)) continue;
                if (row[t] < least) least = row[t];
                tail[s] += top_insert(p, s, t, row[t]);
                others++;
            }
            tail[s] = others > 0 ? fmax(0.0, tail[s] - others * exp(fmin(least, 30.0))) : 0.0;
        } else {
            for (int64_t e = indptr[s]; e < indptr[s + 1]; e++)
                if (may_touch(p, s, indices[e])) tail[s] += top_insert(p, s, indices[e], values[e]);
        }
    }
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The temperature at which a placement melts: setting a fragment right wins two edges of contrast (best score of a
 * side over an ordinary score) and gives up the choice among 4N poses, t = 2 contrast / log(4N). Temperatures of the
 * searches are in units of it, so that they suit any measurer and size. scratch: (4n). */
static float melting_point(const Problem *p, float *scratch) {
    enum { DRAWS = 1024 };
    int side_count = 4 * p->n, count = 0, draws = 0;
    float ordinary[DRAWS], usual = p->floor;
    Rng rng;
    rng_seed(&rng, 1);
    for (int s = 0; s < side_count; s++)
        if (p->top_side[(int64_t)s * TOP] >= 0) scratch[count++] = p->top_score[(int64_t)s * TOP];
    for (int i = 0; i < 4 * DRAWS && draws < DRAWS && p->dense; i++) {
        int s = rng_below(&rng, side_count), t = rng_below(&rng, side_count);
        if (may_touch(p, s, t)) ordinary[draws++] = score(p, s, t);
    }
    if (!count) return 1.0f;
    qsort(scratch, (size_t)count, sizeof(float), by_value);
    qsort(ordinary, (size_t)draws, sizeof(float), by_value);
    if (draws) usual = ordinary[draws / 2];
    return fmaxf(0.1f, 2.0f * (scratch[count / 2] - usual) / logf((float)(p->upright ? p->n : side_count) + 1.0f));
}

/* Entry e of a row that starts at `first` gets its link and sinks to its place by falling link. */
static void links_sink(Problem *p, int64_t first, int64_t e, float link) {
    int32_t side = p->top_side[e];
    float value = p->top_score[e], gain = p->top_gain[e];
    for (; e > first && p->top_link[e - 1] < link; e--) {
        p->top_side[e] = p->top_side[e - 1];
        p->top_score[e] = p->top_score[e - 1];
        p->top_gain[e] = p->top_gain[e - 1];
        p->top_link[e] = p->top_link[e - 1];
    }
    p->top_side[e] = side;
    p->top_score[e] = value;
    p->top_gain[e] = gain;
    p->top_link[e] = link;
}

/* The Sinkhorn fixed point over scores and gains: fills log_u and top_link, sorted by it; p->link
 * holds their probabilities for now. weight, u, next: scratch. */
static void links_match(Problem *p, const Control *c, const double *tail, double *weight, double *u, double *next) {
    int side_count = 4 * p->n;
    for (int s = 0; s < side_count; s++) {
        double sum = 1.0 + tail[s];
        for (int64_t e = (int64_t)s * TOP; e < (int64_t)(s + 1) * TOP; e++) {
            weight[e] = p->top_side[e] < 0 ? 0.0 : exp(fmin(p->top_score[e] + p->top_gain[e], 30.0));
            sum += weight[e];
        }
        u[s] = 1.0 / sqrt(sum);
    }
    for (int round = 0; round < 20 && !over(c); round++) {
        double mean = 0.0;
        for (int s = 0; s < side_count; s++) mean += u[s] / side_count;
        for (int s = 0; s < side_count; s++) {
            double sum = 1.0 + tail[s] * mean;
            for (int64_t e = (int64_t)s * TOP; e < (int64_t)(s + 1) * TOP && p->top_side[e] >= 0; e++)
                sum += weight[e] * u[p->top_side[e]];
            next[s] = sqrt(u[s] / sum);
        }
        memcpy(u, next, (size_t)side_count * sizeof(double));
    }
    for (int s = 0; s < side_count; s++) p->log_u[s] = (float)log(u[s]);
    for (int s = 0; s < side_count; s++) {
        int64_t first = (int64_t)s * TOP;
        for (int64_t e = first; e < first + TOP && p->top_side[e] >= 0; e++) {
            float l = p->top_score[e] + p->top_gain[e] + p->log_u[s] + p->log_u[p->top_side[e]];
            links_sink(p, first, e, fminf(0.0f, fmaxf(NO_LINK, l)));
        }
        for (int64_t e = first; e < first + TOP && p->top_side[e] >= 0 && p->link; e++)
            p->link[(int64_t)s * p->ld + p->top_side[e]] = p->top_link[e] > NO_LINK ? expf(p->top_link[e]) : 0.0f;
    }
}

/* The matrix of log-probabilities of all pairs, for dense scores. */
static void links_fill(Problem *p) {
    if (!p->link) return;
    for (int64_t s = 0; s < p->ld; s++)
        for (int64_t t = 0; t < p->ld; t++) {
            int hole = s >= 4 * p->n || t >= 4 * p->n;
            float l = hole ? NO_LINK : p->dense[s * p->ld + t] + p->log_u[s] + p->log_u[t];
            p->link[s * p->ld + t] = fminf(0.0f, fmaxf(NO_LINK, l));
        }
    for (int64_t e = 0; e < 4 * (int64_t)p->n * TOP; e++)
        if (p->top_side[e] >= 0) p->link[e / TOP * p->ld + p->top_side[e]] = p->top_link[e];
}

typedef struct {
    int count, side[LOOP_WIDTH]; /* of the fragment beside, the side that faces across the loop */
    float p[LOOP_WIDTH];
} Beside;

/* Who may stand at `hand` (canvas bearing N or S) of the fragment of side s when s faces `faces` (E or W). */
static void beside(const Problem *p, int s, int faces, int hand, Beside *out) {
    int64_t row = (int64_t)side_facing((s & ~3) | turns_to_face(s, faces), hand) * TOP;
    out->count = 0;
    for (int64_t e = row; e < row + LOOP_WIDTH && p->top_side[e] >= 0; e++) {
        if (p->top_link[e] <= NO_LINK) continue;
        int m = p->top_side[e];
        out->side[out->count] = side_facing((m & ~3) | turns_to_face(m, hand + 2), faces);
        out->p[out->count++] = expf(p->top_link[e]);
    }
}

/* P(s, t), 0 where NO_LINK. */
static inline float likely(const Problem *p, int s, int t) {
    if (p->link) return p->link[(int64_t)s * p->ld + t];
    float l = link_of(p, s, t);
    return l > NO_LINK ? expf(l) : 0.0f;
}

/* The sum over closed loops, see the top of this file. */
static float loop_support(const Problem *p, int s, int t, const Beside *near_s, const Beside *near_t) {
    float sum = 0.0f;
    for (int i = 0; i < near_s->count; i++) {
        int m = near_s->side[i];
        if ((m >> 2) == (t >> 2)) continue;
        for (int j = 0; j < near_t->count; j++) {
            int l = near_t->side[j];
            float two = near_s->p[i] * near_t->p[j];
            if (two < 1e-5f || (l >> 2) == (m >> 2) || (l >> 2) == (s >> 2)) continue;
            sum += two * likely(p, m, l);
        }
    }
    return sum;
}

static void links_loops(Problem *p, const Control *c, float *gain, Beside *west) {
    float prior = LOOP_WEIGHT * 4.0f * (float)p->n;
    int side_count = 4 * p->n;
    for (int t = 0; t < side_count; t++)
        for (int hand = 0; hand < 2; hand++) beside(p, t, 2, 1 + 2 * hand, &west[2 * t + hand]);
    for (int s = 0; s < side_count; s++) {
        if (s % STRIDE == 0 && over(c)) return;
        Beside east[2];
        for (int hand = 0; hand < 2; hand++) beside(p, s, 0, 1 + 2 * hand, &east[hand]);
        for (int64_t e = (int64_t)s * TOP; e < (int64_t)(s + 1) * TOP && p->top_side[e] >= 0; e++) {
            int t = p->top_side[e];
            gain[e] = 0.0f;
            for (int hand = 0; hand < 2; hand++)
                gain[e] += log1pf(prior * loop_support(p, s, t, &east[hand], &west[2 * t + hand]));
        }
    }
    memcpy(p->top_gain, gain, (size_t)side_count * TOP * sizeof(float));
}

/* Proposals follow P^0.8, a little flatter than P: a search must also try what is unlikely. */
static void links_picks(Problem *p) {
    for (int s = 0; s < 4 * p->n; s++) {
        double share[TOP], sum = 0.0, owed = 0.0;
        int count = 0, at = 0;
        for (; count < TOP && p->top_side[(int64_t)s * TOP + count] >= 0; count++)
            sum += share[count] = exp(0.8 * p->top_link[(int64_t)s * TOP + count]);
        for (int r = 0; r < count && at < PICKS; r++) {
            owed += share[r] / sum * PICKS;
            while (at < (int)(owed + 0.5) && at < PICKS)
                p->pick[(int64_t)s * PICKS + at++] = p->top_side[(int64_t)s * TOP + r];
        }
        while (at < PICKS) p->pick[(int64_t)s * PICKS + at++] = count ? p->top_side[(int64_t)s * TOP] : -1;
    }
}

/* When it is stopped, links say less, and are links all the same. */
static int problem_links(Problem *p, const Control *c, const int64_t *indptr, const int32_t *indices, const float *values) {
    int side_count = 4 * p->n;
    int64_t entries = (int64_t)side_count * TOP;
    p->top_side = zeros(entries, sizeof(int32_t));
    p->top_score = zeros(entries, sizeof(float));
    p->top_gain = zeros(entries, sizeof(float));
    p->top_link = zeros(entries, sizeof(float));
    p->pick = zeros((int64_t)side_count * PICKS, sizeof(int32_t));
    p->log_u = zeros(side_count + 4, sizeof(float));
    double *tail = zeros(side_count, sizeof(double)), *u = zeros(side_count, sizeof(double));
    double *next = zeros(side_count, sizeof(double)), *weight = zeros(entries, sizeof(double));
    float *gain = zeros(entries, sizeof(float));
    Beside *west = zeros(2 * (int64_t)side_count, sizeof(Beside));
    if (p->dense) p->link = zeros(p->ld * p->ld, sizeof(float));
    int ok = p->top_side && p->top_score && p->top_gain && p->top_link && p->pick && p->log_u && tail && u && next &&
             weight && gain && west && (p->link || !p->dense);
    if (ok) {
        links_top(p, c, indptr, indices, values, tail);
        p->melting = melting_point(p, gain);
        links_match(p, c, tail, weight, u, next);
        for (int pass = 0; pass < LOOP_PASSES && !over(c); pass++) {
            links_loops(p, c, gain, west);
            links_match(p, c, tail, weight, u, next);
        }
        links_fill(p);
        links_picks(p);
    }
    free(tail);
    free(u);
    free(next);
    free(weight);
    free(gain);
    free(west);
    return ok;
}
