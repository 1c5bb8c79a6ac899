#include "engine/json/decode_calibration.h"

#include <string.h>

#include "engine/json/json_read.h"

adv_code adv_decode_calibration(const char *json, size_t json_bytes, char project[ADV_LIMIT_NAME],
                                adv_err *err)
{
    static const char *const names[] = {"project"};
    const char *name = NULL;
    json_t *root = NULL;
    if (adv_json_parse(json, json_bytes, &root, err)) return err->code;
    if (adv_json_is_object(root, "", err)) {
        (void)adv_json_known_members(root, "", names, 1, err);
        if (adv_json_string(root, "", "project", ADV_JSON_REQUIRED, &name, err)) {
            if (!*name || strlen(name) >= ADV_LIMIT_NAME)
                (void)adv_err_add(err, ADV_E_INVALID, "/project", NULL, "a project has 1 to %d bytes",
                                  ADV_LIMIT_NAME - 1);
            else
                memcpy(project, name, strlen(name) + 1);
        }
    }
    json_decref(root);
    return err->code;
}
