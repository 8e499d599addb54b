/* libFuzzer target: any bytes as a .tg file.  The frontend must neither crash nor hang; what it accepts must hold
 * before the verifier, and its text must read back and print the same.
 *
 * The first byte chooses the defines: 'F' as the first character of the file fixes F, so that both ways are met. */
#include "frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(base_arena *a, const ir_module *m) {
    base_str err = {0}, first = {0}, second = {0};
    if (!ir_verify(m, &err))
        BASE_BUG("the frontend made IR that does not hold: %s", base_str_text(&err));
    ir_print(m, IR_LEVEL_K | IR_LEVEL_P, &first);
    base_diags d;
    base_diags_init(&d, a, "fuzz.ir", base_str_text(&first));
    const ir_module *again = ir_parse(a, "fuzz.ir", base_str_text(&first), &d);
    if (!again) {
        base_diags_render(&d, false, &err);
        BASE_BUG("the text of the IR does not parse:\n%s\n%s", base_str_text(&first), base_str_text(&err));
    }
    ir_print(again, IR_LEVEL_K | IR_LEVEL_P, &second);
    if (strcmp(base_str_text(&first), base_str_text(&second)) != 0)
        BASE_BUG("the text of the IR changed:\n%s\n%s", base_str_text(&first), base_str_text(&second));
    base_str_fini(&err);
    base_str_fini(&first);
    base_str_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    base_arena *a = base_arena_new();
    base_diags d;
    base_diags_init(&d, a, "fuzz.tg", text);
    fe_define f = {.name = "F", .value = 4};
    ir_module *m = fe_compile(a, "fuzz.tg", text, &f, size && data[0] == 'F', &d);
    if ((m == NULL) != (d.n_errors > 0))
        BASE_BUG("a module and errors, or neither");
    base_str shown = {0};
    base_diags_render(&d, false, &shown);
    base_str_fini(&shown);
    if (m)
        round_trip(a, m);
    base_arena_free(a);
    free(text);
    return 0;
}
