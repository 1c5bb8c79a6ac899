#include "engine/json/decode_proof.h"

#include "engine/json/json_read.h"

adv_code adv_decode_proof_request(const char *json, size_t json_bytes, struct adv_proof_request *request,
                                  adv_err *err)
{
    static const char *const names[] = {"rank", "top", "mode"};
    static const char *const modes[] = {"assign", "whole"};
    json_t *root = NULL;
    *request = (struct adv_proof_request){.first_rank = 1, .last_rank = 1};
    adv_code code = adv_json_parse(json, json_bytes, &root, err);
    if (code) return code;
    if (adv_json_is_object(root, "", err)) {
        int mode = 0;
        (void)adv_json_known_members(root, "", names, 3, err);
        const bool one =
            adv_json_int(root, "", "rank", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &request->first_rank, err);
        if (one) request->last_rank = request->first_rank;
        if (adv_json_int(root, "", "top", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &request->last_rank, err) &&
            one)
            (void)adv_err_add(err, ADV_E_INVALID, "/top", "leave one of them out",
                              "rank names one plan and top the first ones: they exclude each other");
        (void)adv_json_choice(root, "", "mode", ADV_JSON_OPTIONAL, modes, 2, &mode, err);
        request->whole = mode == 1;
    }
    json_decref(root);
    return err->code;
}
