/* Meeting: where threads wait for each other, asleep, so that one that the machine forgets costs the others nothing. */
#ifndef JIG_MEETING_H
#define JIG_MEETING_H

#if defined(_WIN32)
#include <windows.h>
typedef SRWLOCK Lock;
typedef CONDITION_VARIABLE Signal;
#define lock_new(lock) InitializeSRWLock(lock)
#define lock_free(lock) (void)(lock)
#define lock_take(lock) AcquireSRWLockExclusive(lock)
#define lock_leave(lock) ReleaseSRWLockExclusive(lock)
#define signal_new(signal) InitializeConditionVariable(signal)
#define signal_free(signal) (void)(signal)
#define signal_wait(signal, lock) SleepConditionVariableSRW(signal, lock, INFINITE, 0)
#define signal_all(signal) WakeAllConditionVariable(signal)
#else
#include <pthread.h>
typedef pthread_mutex_t Lock;
typedef pthread_cond_t Signal;
#define lock_new(lock) pthread_mutex_init(lock, NULL)
#define lock_free(lock) pthread_mutex_destroy(lock)
#define lock_take(lock) pthread_mutex_lock(lock)
#define lock_leave(lock) pthread_mutex_unlock(lock)
#define signal_new(signal) pthread_cond_init(signal, NULL)
#define signal_free(signal) pthread_cond_destroy(signal)
#define signal_wait(signal, lock) pthread_cond_wait(signal, lock)
#define signal_all(signal) pthread_cond_broadcast(signal)
#endif

typedef struct {
    Lock lock;
    Signal ended;
    int waiting;
    int64_t held; /* meetings so far */
} Meeting;

static void meeting_new(Meeting *m) {
    lock_new(&m->lock);
    signal_new(&m->ended);
}

static void meeting_free(Meeting *m) {
    signal_free(&m->ended);
    lock_free(&m->lock);
}

/* Waits until all `workers` have come and the meeting is ended. Returns 1 at once to whoever comes last, who holds the
 * lock and ends it. */
static int meeting_join(Meeting *m, int workers) {
    lock_take(&m->lock);
    int64_t held = m->held;
    if (++m->waiting == workers) return 1;
    while (m->held == held) signal_wait(&m->ended, &m->lock);
    lock_leave(&m->lock);
    return 0;
}

static void meeting_end(Meeting *m) {
    m->waiting = 0;
    m->held++;
    signal_all(&m->ended);
    lock_leave(&m->lock);
}

#endif
