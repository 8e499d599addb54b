/* passes/panels, shared by panels.c (the rows of a launch through panels of a matrix), panels_blocks.c (rows that do more
 * than multiply, some at a time) and panels_tiles.c (walks in these).  Private to these three. */
#ifndef TIGA_PANELS_H
#define TIGA_PANELS_H

#include "passes/pass_util.h"

enum { ROWS_AT_ONCE = 4, MOST_PANELS = 4, MOST_PRODUCTS = 4 };

typedef struct panel { /* of a matrix: a field (place 0), or an array of the preamble */
    uint32_t field;
    ir_id place, var;
    uint32_t lane_axis; /* which axis of the matrix runs along the panel */
} panel;

typedef struct panels {
    ir_module *m;
    ir_func *f;
    base_arena *scratch;
    bool in_block; /* the rows go over a block, beside others */
    ir_region *top, *in_rows; /* where the rows stand; what they hold */
    size_t rows_at, tiles_at,
        end; /* the rows in the first; the tiles in the second, and where what is behind them ends */
    ir_id extent, row; /* columns of the product; the argument of the rows */
    ir_id *loop_of; /* by id: the operation whose region it stands in, 0 at the top of the function */
    ir_id product[MOST_PRODUCTS], tile[MOST_PRODUCTS]; /* arrays for all columns; those for the columns of a tile */
    size_t n_products;
    ir_id begin, width; /* arguments of the tiles */
    int64_t lanes; /* of a panel */
    panel list[MOST_PANELS];
    size_t n;
    ir_id *map[ROWS_AT_ONCE]; /* copies, by row */
    const char *why; /* rows that would fit go one by one; NULL: they do not fit */
} panels;

/* panels.c */
void panels_begin(panels *p, ir_region *top, size_t rows_at); /* joins tiles, notes what stands where */
bool panels_walk(const panels *p, const ir_region *r); /* edges */
bool panels_fit_product(panels *p, size_t tiles_at); /* are these tiles such products? */
bool panels_fit_behind(const panels *p); /* may what stands behind them, up to `end`, be done tile by tile? */
bool panels_fit(panels *p); /* the rows as a whole */
void panels_turn_around(panels *p); /* rows that fit, the last in p->top */

/* panels_blocks.c */
bool panels_in_blocks(panels *p); /* false: nothing was changed */

/* panels_tiles.c */
void panels_tile_walk(panels *p, ir_region *rows); /* where it can be done */

#endif
