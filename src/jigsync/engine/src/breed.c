/* Kernel-growth crossover (Sholomon, David and Netanyahu 2013): a child grows from one fragment outwards.
 *
 * At every free boundary of the kernel, in this order: (1) a fragment that both parents have there, (2) a best buddy
 * that one parent has there, (3) the most compatible fragment that is left. Sides are numbered 4 * fragment + bearing;
 * "there" means touching the same side, so parents that differ by a shift or a global turn still agree. A fragment
 * with turns k shows its side (d - k) mod 4 towards bearing d of the canvas. The kernel floats: only its bounding box
 * has to fit into rows x cols, unless fragments are pinned, which fixes the frame.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t cell, side; /* a free cell, and the placed fragment's side that faces it */
    int32_t bearing;    /* of the cell as seen from that fragment */
} BreedBoundary;

typedef struct {
    BreedBoundary *entry;
    int count;
} BreedBag;

typedef struct {
    int n, rows, cols, upright, width, height, floating;
    const int32_t *step, *rank, *buddy;
    int ranked;
    double skip_agreed, skip_best;
    /* the child being grown */
    int32_t *occupant, *free_fragments, *free_index; /* (height * width), (n,), (n,) */
    int free_count, top, bottom, left, right, placed;
    BreedBag agreed, buddies, open;
    uint64_t random;
} BreedNursery;

static uint64_t breed_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int breed_below(BreedNursery *y, int count) { return (int)(breed_random(&y->random) % (uint64_t)count); }

static int breed_chance(BreedNursery *y, double probability) {
    return (double)(breed_random(&y->random) >> 11) * 0x1p-53 < probability;
}

static BreedBoundary breed_take(BreedNursery *y, BreedBag *bag) {
    int at = breed_below(y, bag->count);
    BreedBoundary chosen = bag->entry[at];
    bag->entry[at] = bag->entry[--bag->count];
    return chosen;
}

static int breed_fits(const BreedNursery *y, int cell) {
    int row = cell / y->width, col = cell % y->width;
    if (y->occupant[cell] >= 0) return 0;
    if (!y->floating) return 1;
    int top = row < y->top ? row : y->top, bottom = row > y->bottom ? row : y->bottom;
    int left = col < y->left ? col : y->left, right = col > y->right ? col : y->right;
    return bottom - top < y->rows && right - left < y->cols;
}

static int breed_is_free(const BreedNursery *y, int fragment) { return y->free_index[fragment] >= 0; }

static void breed_place(BreedNursery *y, int cell, int fragment, int turns, const int32_t *touch_a,
                        const int32_t *touch_b, int32_t *cells, int32_t *turns_out) {
    int row = cell / y->width, col = cell % y->width;
    y->occupant[cell] = fragment;
    cells[fragment] = cell;
    turns_out[fragment] = turns;
    y->placed++;
    int at = y->free_index[fragment], last = y->free_fragments[--y->free_count];
    y->free_fragments[at] = last;
    y->free_index[last] = at;
    y->free_index[fragment] = -1;
    if (row < y->top) y->top = row;
    if (row > y->bottom) y->bottom = row;
    if (col < y->left) y->left = col;
    if (col > y->right) y->right = col;
    for (int d = 0; d < 4; d++) {
        int r = row + y->step[2 * d], c = col + y->step[2 * d + 1];
        if (r < 0 || r >= y->height || c < 0 || c >= y->width || y->occupant[r * y->width + c] >= 0) continue;
        int side = 4 * fragment + ((d - turns) & 3);
        BreedBoundary b = {r * y->width + c, side, d};
        y->open.entry[y->open.count++] = b;
        if (touch_a[side] >= 0 && touch_a[side] == touch_b[side])
            y->agreed.entry[y->agreed.count++] = b;
        else if (y->buddy[side] >= 0 && (y->buddy[side] == touch_a[side] || y->buddy[side] == touch_b[side]))
            y->buddies.entry[y->buddies.count++] = b;
    }
}

static void breed_grow(BreedNursery *y, const int32_t *touch_a, const int32_t *touch_b, int32_t *cells,
                       int32_t *turns) {
    int target = y->n < y->rows * y->cols ? y->n : y->rows * y->cols;
    while (y->placed < target) {
        int wanted = -1, stray = 0; /* the side that goes there; or a stray (mutated) fragment */
        BreedBoundary b;
        if (y->agreed.count) {
            b = breed_take(y, &y->agreed);
            wanted = touch_a[b.side];
            if (!breed_fits(y, b.cell) || !breed_is_free(y, wanted / 4)) continue;
            stray = breed_chance(y, y->skip_agreed);
        } else if (y->buddies.count) {
            b = breed_take(y, &y->buddies);
            wanted = y->buddy[b.side];
            if (!breed_fits(y, b.cell) || !breed_is_free(y, wanted / 4)) continue;
        } else if (y->open.count) {
            b = breed_take(y, &y->open);
            if (!breed_fits(y, b.cell)) continue;
            const int32_t *rank = y->rank + (size_t)b.side * (size_t)y->ranked;
            for (int at = 0; at < y->ranked && wanted < 0 && rank[at] >= 0; at++)
                if (breed_is_free(y, rank[at] / 4)) wanted = rank[at];
            stray = wanted < 0 || breed_chance(y, y->skip_best);
        } else {
            return;
        }
        if (stray) {
            int fragment = y->free_fragments[breed_below(y, y->free_count)];
            breed_place(y, b.cell, fragment, y->upright ? 0 : breed_below(y, 4), touch_a, touch_b, cells, turns);
        } else {
            breed_place(y, b.cell, wanted / 4, (b.bearing + 2 - wanted) & 3, touch_a, touch_b, cells, turns);
        }
    }
}

/* Grows `children` children.
 *
 *   step (4, 2): (row, col) of one step along each bearing
 *   rank (4n, ranked): sides in falling compatibility with each side, -1 ends a row early
 *   buddy (4n,): mutual best or -1
 *   touch (population, 4n): the side that each side touches, or -1; parent_turns (population, n)
 *   parents (children, 2); seeds (children,)
 *   pin_fragment, pin_slot, pin_turns (pins,): placed first, in the frame of the grid
 *   slots_out, turns_out (children, n): slot or -1
 * Returns 0, or -1 when memory is short. */
API int jig_breed(int n, int rows, int cols, int upright, const int32_t *step, const int32_t *rank, int ranked,
                  const int32_t *buddy, double skip_agreed, double skip_best, int children, const int32_t *touch,
                  const int32_t *parent_turns, const int32_t *parents, const uint64_t *seeds, int pins,
                  const int32_t *pin_fragment, const int32_t *pin_slot, const int32_t *pin_turns, int32_t *slots_out,
                  int32_t *turns_out) {
    BreedNursery y = {.n = n, .rows = rows, .cols = cols, .upright = upright, .floating = pins == 0};
    y.height = y.floating ? 2 * rows - 1 : rows;
    y.width = y.floating ? 2 * cols - 1 : cols;
    y.step = step;
    y.rank = rank;
    y.ranked = ranked;
    y.buddy = buddy;
    y.skip_agreed = skip_agreed;
    y.skip_best = skip_best;
    size_t canvas = (size_t)y.height * (size_t)y.width, sides = 4 * (size_t)n;
    y.occupant = malloc(canvas * sizeof *y.occupant);
    y.free_fragments = malloc((size_t)n * sizeof *y.free_fragments);
    y.free_index = malloc((size_t)n * sizeof *y.free_index);
    y.agreed.entry = malloc(sides * sizeof(BreedBoundary));
    y.buddies.entry = malloc(sides * sizeof(BreedBoundary));
    y.open.entry = malloc(sides * sizeof(BreedBoundary));
    int ready = y.occupant && y.free_fragments && y.free_index && y.agreed.entry && y.buddies.entry && y.open.entry;
    for (int child = 0; ready && child < children; child++) {
        const int32_t *touch_a = touch + (size_t)parents[2 * child] * sides;
        const int32_t *touch_b = touch + (size_t)parents[2 * child + 1] * sides;
        int32_t *cells = slots_out + (size_t)child * (size_t)n, *turns = turns_out + (size_t)child * (size_t)n;
        memset(y.occupant, 0xff, canvas * sizeof *y.occupant);
        for (int i = 0; i < n; i++) {
            y.free_fragments[i] = y.free_index[i] = i;
            cells[i] = -1;
            turns[i] = 0;
        }
        y.free_count = n;
        y.placed = y.agreed.count = y.buddies.count = y.open.count = 0;
        y.top = y.height;
        y.left = y.width;
        y.bottom = y.right = -1;
        y.random = seeds[child];
        for (int i = 0; i < pins; i++)
            breed_place(&y, pin_slot[i], pin_fragment[i], pin_turns[i], touch_a, touch_b, cells, turns);
        if (pins == 0) {
            int first = breed_below(&y, n);
            int first_turns = parent_turns[(size_t)parents[2 * child] * (size_t)n + (size_t)first];
            breed_place(&y, (rows - 1) * y.width + cols - 1, first, first_turns, touch_a, touch_b, cells, turns);
        }
        breed_grow(&y, touch_a, touch_b, cells, turns);
        for (int i = 0; i < n; i++)
            if (cells[i] >= 0 && y.floating)
                cells[i] = (cells[i] / y.width - y.top) * cols + cells[i] % y.width - y.left;
    }
    free(y.occupant);
    free(y.free_fragments);
    free(y.free_index);
    free(y.agreed.entry);
    free(y.buddies.entry);
    free(y.open.entry);
    return ready ? 0 : -1;
}
