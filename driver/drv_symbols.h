/* The functions of libm and libc that code made at run time may call: drv_symbols.def, and no others. */
#ifndef DRV_SYMBOLS_H
#define DRV_SYMBOLS_H

#ifdef __cplusplus
extern "C" {
#endif

void *drv_symbol_find(const char *name); /* NULL: not in the list */

#ifdef __cplusplus
}
#endif
#endif
