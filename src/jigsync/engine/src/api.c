/* What Python calls. Poses are (n) int32: 4 * slot + turns, or -1 for a fragment that stands nowhere. */

#include <stdio.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

#ifndef JIG_SOURCE
#define JIG_SOURCE ""
#endif

typedef struct {
    int32_t n, rows, cols, upright;
    const int32_t *steps; /* 4 x 2: (d_row, d_col) of bearings E, N, W, S */
    const float *dense;   /* 4n x 4n, or NULL and the next three */
    const int64_t *indptr;
    const int32_t *indices;
    const float *values;
    const float *unary_turns; /* n x 4 or NULL */
    const float *unary_cells; /* n x slots or NULL */
    const float *unary_poses; /* n x slots x 4 or NULL */
    const float *border;      /* 4n or NULL */
    const float *full;        /* n x n x n_rel or NULL */
    const int32_t *relation_of;
    const int32_t *pins; /* (n) a pose, -1 for free, -2 for excluded; or NULL */
    float floor;
    int32_t n_rel;
    double seconds; /* time limit of the links, <= 0 for none */
    _Atomic int32_t *cancel;
} Input;

typedef struct {
    int64_t moves;   /* annealing proposals, fewer when the start is settled (remaining_work) */
    int64_t tempering; /* proposals of a ladder that a start far from settled is left to; 0: anneal */
    int32_t rounds;  /* large-neighbourhood steps after annealing, likewise; without annealing, all of them */
    int32_t grow;    /* start by the best of so many growths; 0: from the given poses, holes filled in order */
    int32_t melt;    /* forget a growth that is far from settled and anneal from a random placement */
    int32_t beliefs; /* steps of belief after all that */
    int32_t replicas; /* that exchange temperatures, 2 to 16 */
    float noise;     /* of growth */
    float hot, cold; /* temperatures of annealing, in melting points */
    float top, low;  /* of the hottest and the coldest replica, likewise */
    float lns;       /* temperature of large-neighbourhood search, likewise */
    double seconds;  /* time limit, <= 0 for none */
    _Atomic int32_t *cancel;
    _Atomic double *progress_score;
    _Atomic int64_t *progress_moves;
} Plan;

typedef struct {
    double score;
    int64_t moves, accepted;
    float settled;    /* share of cells that are surely linked to all their neighbours */
    int32_t finished; /* 0 when the time limit or a cancel ended the run */
    int32_t unsettled; /* ended with its start, which is for a ladder */
} Report;

/* Hash of the sources this library was built from. */
API const char *jig_source(void) { return JIG_SOURCE; }

#define AT(type, field) {#field, offsetof(type, field)}

/* Writes "name size field@offset ..." of every struct that Python fills or reads: library.py compares it with its own. */
API void jig_layout(char *out, int64_t room) {
    static const struct {
        const char *name;
        size_t value;
    } part[] = {
        {"Input", 0}, {"size", sizeof(Input)}, AT(Input, n), AT(Input, rows), AT(Input, cols), AT(Input, upright),
        AT(Input, steps), AT(Input, dense), AT(Input, indptr), AT(Input, indices), AT(Input, values),
        AT(Input, unary_turns), AT(Input, unary_cells), AT(Input, unary_poses), AT(Input, border), AT(Input, full),
        AT(Input, relation_of), AT(Input, pins), AT(Input, floor), AT(Input, n_rel), AT(Input, seconds),
        AT(Input, cancel),
        {"Plan", 0}, {"size", sizeof(Plan)}, AT(Plan, moves), AT(Plan, tempering), AT(Plan, rounds), AT(Plan, grow),
        AT(Plan, melt), AT(Plan, beliefs), AT(Plan, replicas), AT(Plan, noise), AT(Plan, hot), AT(Plan, cold),
        AT(Plan, top), AT(Plan, low), AT(Plan, lns), AT(Plan, seconds), AT(Plan, cancel), AT(Plan, progress_score),
        AT(Plan, progress_moves),
        {"Report", 0}, {"size", sizeof(Report)}, AT(Report, score), AT(Report, moves), AT(Report, accepted),
        AT(Report, settled), AT(Report, finished), AT(Report, unsettled),
    };
    int64_t at = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part && at < room; i++)
        at += snprintf(out + at, (size_t)(room - at), "%s@%zu ", part[i].name, part[i].value);
}

API void jig_problem_free(Problem *p) { problem_free(p); }

static Control control_until(double seconds, _Atomic int32_t *cancel) {
    return (Control){seconds > 0 ? now_seconds() + seconds : 1e300, cancel, NULL, NULL};
}

static int problem_unary(Problem *p, const Input *in) {
    if (in->unary_turns) {
        p->unary_turns = zeros(4 * (int64_t)p->n + 4, sizeof(float));
        if (!p->unary_turns) return 0;
        memcpy(p->unary_turns, in->unary_turns, 4 * (size_t)p->n * sizeof(float));
    }
    if (in->unary_cells) {
        p->unary_cells = zeros((int64_t)(p->n + 1) * p->ncell, sizeof(float));
        if (!p->unary_cells) return 0;
        for (int64_t f = 0; f < p->n; f++)
            for (int slot = 0; slot < p->slots; slot++)
                p->unary_cells[f * p->ncell + p->slot_cell[slot]] = in->unary_cells[f * p->slots + slot];
    }
    if (in->unary_poses) {
        p->unary_poses = zeros(4 * (int64_t)(p->n + 1) * p->ncell, sizeof(float));
        if (!p->unary_poses) return 0;
        for (int64_t f = 0; f < p->n; f++)
            for (int slot = 0; slot < p->slots; slot++)
                memcpy(p->unary_poses + 4 * (f * p->ncell + p->slot_cell[slot]),
                       in->unary_poses + 4 * (f * p->slots + slot), 4 * sizeof(float));
    }
    if (in->border) {
        p->border = zeros(4 * (int64_t)p->n + 4, sizeof(float));
        if (!p->border) return 0;
        memcpy(p->border, in->border, 4 * (size_t)p->n * sizeof(float));
    }
    if (in->full) {
        int64_t count = (int64_t)p->n * p->n * in->n_rel;
        int64_t cells = 16 * (int64_t)(2 * p->rows - 1) * (2 * p->cols - 1);
        p->n_rel = in->n_rel;
        p->full = zeros(count, sizeof(float));
        p->relation_of = zeros(cells, sizeof(int32_t));
        if (!p->full || !p->relation_of) return 0;
        memcpy(p->full, in->full, (size_t)count * sizeof(float));
        memcpy(p->relation_of, in->relation_of, (size_t)cells * sizeof(int32_t));
    }
    return 1;
}

/* NULL when memory ran out. Python has checked every value. */
API Problem *jig_problem_new(const Input *in) {
    Problem *p = calloc(1, sizeof(Problem));
    if (!p) return NULL;
    p->n = in->n;
    p->rows = in->rows;
    p->cols = in->cols;
    p->upright = in->upright;
    p->floor = in->floor;
    for (int i = 0; i < LOGS; i++) p->log_table[i] = logf(((float)i + 0.5f) / LOGS);
    if (!problem_geometry(p, in->steps)) goto fail;
    if (!(in->dense ? problem_dense(p, in->dense) : problem_sparse(p, in->indptr, in->indices, in->values))) goto fail;
    for (int f = 0; f < p->n; f++) {
        int pin = in->pins ? in->pins[f] : -1;
        p->fixed[f] = pin != -1;
        p->excluded[f] = pin == -2;
        if (pin >= 0) {
            p->pinned_at[p->slot_cell[pin >> 2]] = 4 * f + (pin & 3);
            p->n_pinned++;
        }
        p->n_usable += pin != -2;
    }
    for (int slot = 0; slot < p->slots; slot++)
        if (p->pinned_at[p->slot_cell[slot]] < 0) p->free_cells[p->n_free++] = p->slot_cell[slot];
    Control c = control_until(in->seconds, in->cancel);
    if (!problem_unary(p, in) || !problem_links(p, &c, in->indptr, in->indices, in->values)) goto fail;
    return p;
fail:
    problem_free(p);
    return NULL;
}

/* Best partners of every side and the log-probability that they touch, (4n) x TOP each; -1 past the end. */
API void jig_links(const Problem *p, int32_t *side, float *link) {
    memcpy(side, p->top_side, 4 * (size_t)p->n * TOP * sizeof(int32_t));
    memcpy(link, p->top_link, 4 * (size_t)p->n * TOP * sizeof(float));
}

/* The score of poses, from scratch; NaN when memory ran out. */
API double jig_score(const Problem *p, const int32_t *poses) {
    State *st = state_new(p, 0);
    if (!st) return NAN;
    read_poses(st, poses);
    double total = score_of(st);
    state_free(st);
    return total;
}

static Control control_of(const Plan *plan) {
    Control c = control_until(plan->seconds, plan->cancel);
    c.progress_score = plan->progress_score;
    c.progress_moves = plan->progress_moves;
    return c;
}

/* One restart: start, annealing, large-neighbourhood search. Deterministic for (problem, plan,
 * seed, poses) unless stopped. Returns 0 when memory ran out. */
API int32_t jig_run(const Problem *p, uint64_t seed, const Plan *plan, int32_t *poses, Report *report) {
    State *st = state_new(p, seed);
    Lns *w = lns_new(p);
    int ok = st && w;
    if (ok) {
        Control c = control_of(plan);
        st->control = &c;
        read_poses(st, poses);
        if (plan->grow) ok = grow_often(st, plan->grow, plan->noise);
        fill_holes(st);
        restart_from_here(st);
        ok = ok && slide_whole(st);
        report->finished = !over(&c);
        float work = remaining_work(st);
        if (plan->melt && work >= 1.0f) {
            scramble(st);
            restart_from_here(st);
        }
        int64_t moves = (int64_t)(work * (float)plan->moves);
        int rounds = plan->moves ? (int)ceilf(work * (float)plan->rounds) : plan->rounds;
        report->unsettled = work >= 1.0f && plan->tempering > 0;
        if (ok && !report->unsettled) {
            if (moves && report->finished) report->finished = anneal(st, moves, plan->hot * p->melting, plan->cold * p->melting);
            return_to_best(st);
            ok = slide_whole(st);
            if (report->finished && rounds)
                report->finished = search_neighbourhoods(st, w, rounds, plan->lns * p->melting);
            if (report->finished && plan->beliefs) {
                Beliefs *x = beliefs_new(p);
                ok = x != NULL;
                return_to_best(st);
                if (ok) report->finished = search_beliefs(st, w, x, plan->beliefs, plan->lns * p->melting);
                beliefs_free(x);
            }
        }
        return_to_best(st);
        write_poses(st, st->best, poses);
        report->score = st->best_score;
        report->settled = 1.0f - open_share(st);
        report->moves = st->moves;
        report->accepted = st->accepted;
    }
    lns_free(w);
    state_free(st);
    return ok;
}

/* A ladder of replicas as the plan says, the coldest with poses; NULL when memory ran out. */
API Ladder *jig_ladder_new(const Problem *p, uint64_t seed, const Plan *plan, const int32_t *poses) {
    return ladder_new(p, seed, poses, control_of(plan), plan->replicas, plan->tempering, plan->top * p->melting,
                      plan->low * p->melting);
}

API void jig_ladder_free(Ladder *l) { ladder_free(l); }

/* To be called by `workers` threads at once, each with a number of its own below that; all return together. */
API void jig_ladder_climb(Ladder *l, int32_t worker, int32_t workers) { ladder_climb(l, worker, workers); }

/* The best placement seen, into poses, and how it went. */
API void jig_ladder_best(Ladder *l, int32_t *poses, Report *report) {
    report->score = ladder_best(l, poses);
    report->moves = l->round * BATCH * l->count;
    report->finished = l->rounds > 0;
}

/* Draws around poses, laid over `best`; see sample_marginals. Returns the number of draws, -1 when memory ran out. */
API int64_t jig_marginals(const Problem *p, uint64_t seed, const int32_t *poses, const int32_t *best, float t,
                          int64_t samples, int64_t moves, double seconds, _Atomic int32_t *cancel, int64_t *kept) {
    State *st = state_new(p, seed);
    if (!st) return -1;
    Control c = control_until(seconds, cancel);
    st->control = &c;
    read_poses(st, poses);
    restart_from_here(st);
    int64_t made = sample_marginals(st, best, t, samples, moves, kept);
    state_free(st);
    return made;
}

/* For tests: assign_most. Returns 0 when memory ran out. */
API int32_t jig_assign(const float *value, int32_t rows, int32_t cols, int32_t *col_of) {
    Assigner a;
    int ok = assigner_new(&a, rows, cols);
    if (ok) assign_most(&a, value, rows, cols, col_of);
    assigner_free(&a);
    return ok;
}

/* For tests: `count` proposals of one kind at temperature t from poses, which are replaced by where it ends.
 * kind: the order of MOVES, then assignment, refill, regrow, sample, grain, beliefs. scores: incremental, from scratch, best kept. */
API int64_t jig_fuzz(const Problem *p, uint64_t seed, int32_t kind, int64_t count, float t, int32_t *poses,
                     double *scores) {
    State *st = state_new(p, seed);
    Lns *w = lns_new(p);
    Beliefs *x = beliefs_new(p);
    int ok = st && w && x;
    if (ok) {
        read_poses(st, poses);
        fill_holes(st);
        restart_from_here(st);
        st->settling = kind > MOVE_KINDS + 3 ? 2 * PART : 0;
        for (int64_t i = 0; i < count; i++) {
            if (kind < MOVE_KINDS) st->accepted += MOVES[kind](st, t);
            else if (kind == MOVE_KINDS) st->accepted += lns_assignment(st, w, 3 + rng_below(&st->rng, 30), t);
            else if (kind == MOVE_KINDS + 1) lns_refill(st, w, 4, t);
            else if (kind == MOVE_KINDS + 2) lns_regrow(st, w, t);
            else if (kind == MOVE_KINDS + 3) sample_step(st, t);
            else if (kind == MOVE_KINDS + 4) st->accepted += move_component(st, t);
            else if (may_believe(p)) {
                leave(st);
                keep_grains(st, 2.0f);
                lns_beliefs(st, x);
            }
        }
        scores[0] = st->score;
        scores[1] = score_of(st);
        leave(st);
        scores[2] = st->best_score;
        write_poses(st, st->code, poses);
    }
    int64_t accepted = ok ? st->accepted : -1;
    beliefs_free(x);
    lns_free(w);
    state_free(st);
    return accepted;
}
