/* Control: how long a search may take, and what it shares with whoever waits for it. */
#ifndef JIG_CONTROL_H
#define JIG_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ctypes knows these as plain numbers. */
_Static_assert(sizeof(_Atomic int32_t) == 4 && sizeof(_Atomic int64_t) == 8 && sizeof(_Atomic double) == 8,
               "an atomic number is as large as the number");

typedef struct {
    double deadline;                  /* now_seconds() at which to stop, or a huge number */
    _Atomic int32_t *cancel;          /* non-zero asks to stop; may be NULL */
    _Atomic double *progress_score;  /* best score so far, for whoever watches; may be NULL */
    _Atomic int64_t *progress_moves;
} Control;

static const Control ENDLESS = {1e300, NULL, NULL, NULL};

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Is it to end? Every loop that may take longer than some milliseconds asks. */
static int over(const Control *c) {
    return (c->cancel && atomic_load_explicit(c->cancel, memory_order_relaxed)) || now_seconds() > c->deadline;
}

/* Tells whoever watches how far it is; non-zero when it is to end. */
static int stopped(const Control *c, double best, int64_t moves) {
    if (c->progress_score) atomic_store_explicit(c->progress_score, best, memory_order_relaxed);
    if (c->progress_moves) atomic_store_explicit(c->progress_moves, moves, memory_order_relaxed);
    return over(c);
}

#endif
