/* The compiled decoder of JigSync: one translation unit, so that the compiler sees every hot path whole.
 *
 * It maximises
 *
 *     sum over touching slot pairs of score[side_at(i, k_i, b), side_at(j, k_j, b + 2)]
 *       + sum over sides that face out of the grid of border[side]
 *       + sum over placed fragments of unary_turns[i, k_i] + unary_cells[i, slot_i] + unary_poses[i, slot_i, k_i]
 *       + full pair terms (full.c)
 *
 * over placements (slot, turns) of every fragment. docs/design/engine.md says why it is C and how it searches;
 * problem.py and native.py call it. No function keeps state outside the objects handed to it, so calls on one
 * `Problem` may run in several threads at once.
 */
#include "src/control.h"
#include "src/meeting.h"
#include "src/rng.h"
#include "src/problem.h"
#include "src/state.h"
#include "src/problem.c"
#include "src/links.c"
#include "src/state.c"
#include "src/full.c"
#include "src/moves.c"
#include "src/rigid.c"
#include "src/growth.c"
#include "src/assign.c"
#include "src/lns.c"
#include "src/anneal.c"
#include "src/beliefs.c"
#include "src/ladder.c"
#include "src/marginals.c"
#include "src/api.c"
/* Of the classical solvers (engine/native.py); they use only API of api.c. Do not drop: tests/test_solvers_*. */
#include "src/exact.c"
#include "src/breed.c"
/* Of free poses (engine/outlines.py). */
#include "src/outlines.c"
