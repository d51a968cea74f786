/* Replica exchange (Swendsen and Wang 1986; Geyer 1991): placements at temperatures t0 > ... > t1, in equal ratios.
 * After every batch of proposals neighbours on the ladder exchange temperatures with probability
 *
 *     min(1, exp((1 / T_i - 1 / T_j) (E_j - E_i)))
 *
 * so that what froze into a poor order melts again while better orders go on below.
 *
 * Several threads may climb one ladder: between two exchanges its replicas know nothing of each other, and each has a
 * generator of its own, so the answer does not depend on the threads. One long ladder finds more than two of half the
 * length (docs/design/engine.md). */

enum { MOST_REPLICAS = 16, BATCH = 1024, SETTLING = 5000 };

/* Regions move more often than in annealing, the whole grid never: it was not accepted once in a hundred thousand. */
static const int LADDER_SHARES[MOVE_KINDS] = {10, 56, 84, 68, 4, 4, 30, 0};

typedef struct {
    const Problem *p;
    Control control;
    Rng rng;                  /* of the exchanges */
    int count, going;
    State *at[MOST_REPLICAS]; /* by place on the ladder, hot first */
    float t[MOST_REPLICAS];
    uint8_t mix[MIX];
    int64_t round, rounds, since; /* since: the round of the last better placement */
    double best;
    Meeting meeting; /* of the workers at the end of a round */
} Ladder;

static void ladder_free(Ladder *l) {
    if (!l) return;
    for (int i = 0; i < l->count; i++) state_free(l->at[i]);
    meeting_free(&l->meeting);
    free(l);
}

/* The coldest replica begins with poses, the others anywhere. `moves` counts the proposals of all. */
static Ladder *ladder_new(const Problem *p, uint64_t seed, const int32_t *poses, Control control, int replicas,
                          int64_t moves, float t0, float t1) {
    Ladder *l = calloc(1, sizeof(Ladder));
    if (!l) return NULL;
    meeting_new(&l->meeting);
    l->p = p;
    l->control = control;
    l->going = p->n_free > 1;
    l->best = -1e300;
    l->rounds = moves / ((int64_t)BATCH * replicas) + 1;
    rng_seed(&l->rng, seed);
    mix_moves(p, LADDER_SHARES, l->mix);
    for (; l->count < replicas; l->count++) {
        State *st = state_new(p, rng_next(&l->rng));
        if (!st) {
            ladder_free(l);
            return NULL;
        }
        l->at[l->count] = st;
        st->control = &l->control;
        st->settling = SETTLING;
        l->t[l->count] = t0 * powf(t1 / t0, (float)l->count / (float)(replicas - 1));
        read_poses(st, poses);
        if (l->count < replicas - 1) scramble(st);
        restart_from_here(st);
    }
    return l;
}

/* Exchanges of neighbours, every other pair in turn; 40 % of the proposals without a better placement are enough. */
static void ladder_exchange(Ladder *l) {
    for (int i = 0; i < l->count; i++)
        if (l->at[i]->best_score > l->best + 1e-3) {
            l->best = l->at[i]->best_score;
            l->since = l->round;
        }
    for (int i = (int)(l->round & 1); i + 1 < l->count; i += 2) {
        State *hot = l->at[i], *cold = l->at[i + 1];
        float gain = (float)(hot->score - cold->score) * (1 / l->t[i + 1] - 1 / l->t[i]);
        if (!metropolis(l->p, &l->rng, gain, 1.0f)) continue;
        l->at[i] = cold;
        l->at[i + 1] = hot;
    }
    l->round++;
    l->going = l->round < l->rounds && 5 * (l->round - l->since) <= 2 * l->rounds;
    if (l->round % 4 == 0 && stopped(&l->control, l->best, l->round * BATCH * l->count)) {
        l->going = 0;
        l->rounds = 0;
    }
}

/* The end of a round: whoever comes last exchanges while the others sleep. */
static void ladder_meet(Ladder *l, int workers) {
    if (!meeting_join(&l->meeting, workers)) return;
    ladder_exchange(l);
    meeting_end(&l->meeting);
}

/* One of `workers` threads that climb together; returns when the ladder is done. */
static void ladder_climb(Ladder *l, int worker, int workers) {
    while (l->going) {
        for (int i = worker; i < l->count; i += workers) {
            State *st = l->at[i];
            if (l->round % 16 == 0) focus(st);
            propose(st, l->mix, BATCH, l->t[i]);
            if (l->round % 128 == 127) st->score = score_of(st);
        }
        ladder_meet(l, workers);
    }
}

/* The best placement that any replica saw, into poses. */
static double ladder_best(Ladder *l, int32_t *poses) {
    State *best = l->at[0];
    for (int i = 0; i < l->count; i++) {
        leave(l->at[i]);
        if (l->at[i]->best_score > best->best_score) best = l->at[i];
    }
    write_poses(best, best->best, poses);
    return best->best_score;
}
