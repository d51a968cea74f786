/* The compiled decoder of JigSync: one translation unit, so that the compiler sees every hot path whole.
 *
 * It maximises
 *
 *     sum over touching slot pairs of score[side_at(i, k_i, b), side_at(j, k_j, b + 2)]
 *       + sum over placed fragments of unary_turns[i, k_i] + unary_cells[i, slot_i]   (+ full pair terms, full.c)
 *
 * over placements (slot, turns) of every fragment. docs/design/engine.md says why it is C and how it searches;
 * engine.py is its only caller. No function keeps state outside the objects handed to it, so calls on one
 * `Problem` may run in several threads at once.
 */
#include "engine_src/rng.h"
#include "engine_src/problem.h"
#include "engine_src/state.h"
#include "engine_src/problem.c"
#include "engine_src/links.c"
#include "engine_src/state.c"
#include "engine_src/full.c"
#include "engine_src/moves.c"
#include "engine_src/rigid.c"
#include "engine_src/growth.c"
#include "engine_src/assign.c"
#include "engine_src/lns.c"
#include "engine_src/anneal.c"
#include "engine_src/beliefs.c"
#include "engine_src/ladder.c"
#include "engine_src/marginals.c"
#include "engine_src/api.c"
/* Of the classical solvers (solvers/native.py); they use only API of api.c. Do not drop: tests/test_solvers_*. */
#include "engine_src/exact.c"
#include "engine_src/breed.c"
