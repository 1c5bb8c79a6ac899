#include "engine/json/decode_include.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bit;
} members[] = {{"timeline", ADV_INCLUDE_TIMELINE},
               {"roofline", ADV_INCLUDE_ROOFLINE},
               {"links", ADV_INCLUDE_LINKS},
               {"scaling", ADV_INCLUDE_SCALING},
               {"trade_off", ADV_INCLUDE_TRADE_OFF}};
enum { MEMBERS = sizeof members / sizeof *members };

static void list_allowed(unsigned allowed, char *text, size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "one of");
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].bit & allowed)
            used += (size_t)snprintf(text + used, text_bytes - used, " %s", members[i].name);
}

unsigned adv_decode_include(const json_t *root, unsigned allowed, adv_err *err)
{
    const json_t *list = adv_json_array(root, "", "include", ADV_JSON_OPTIONAL, err);
    unsigned include = 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *name = json_string_value(json_array_get(list, k));
        char pointer[ADV_LIMIT_POINTER], hint[ADV_LIMIT_DETAIL];
        int i = 0;
        while (i < MEMBERS && !(name && members[i].bit & allowed && strcmp(name, members[i].name) == 0)) i++;
        if (i < MEMBERS) {
            include |= members[i].bit;
            continue;
        }
        list_allowed(allowed, hint, sizeof hint);
        (void)adv_err_add(err, ADV_E_INVALID, adv_json_pointer_index(pointer, "/include", k), hint,
                          "this answer has no member %s to include", name ? name : "of that type");
    }
    return include;
}
