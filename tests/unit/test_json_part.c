/* A part of a text is what the whole text holds there, and no text is read past its end; a plan of a stored
 * answer is asked for again as by one who reads all of the answer. */
#include "tests/unit/answer_fixture.h"

#include "engine/json/gate_side.h"
#include "engine/json/json_part.h"

/* What may be passed over comes before what is looked for. */
#define ODD                                                                                                  \
    " {\"a\" : \"}\\\"],{\\\\\" ,\"nested\":{\"b\":[0,{\"b\":1}],\"c\":\"\\\\\"},\n\"empty\":[ ],\"none\":"  \
    "{},\"b\":[ 1 ,-2.5e3, \"x]\\u005d\", [[],[\"[\"]], {\"b\":{}} , true,null],\"bb\":false ,\t\"last\":7} "

static void a_part_is_what_the_whole_text_holds(void **state)
{
    (void)state;
    ADV_JSON_OWN json_t *whole = adv_json_load_string(ODD, JSON_REJECT_DUPLICATES);
    int members = 0;
    for (struct adv_json_walk member = {.in = whole}; adv_json_next_member(&member); members++) {
        const char *part = adv_json_part_member(ODD, member.key);
        ADV_JSON_OWN json_t *found = adv_json_part_load(part);
        if (!json_equal(found, member.value)) fail_msg("member %s", member.key);
        for (struct adv_json_walk element = {.in = member.value}; adv_json_next(&element);) {
            ADV_JSON_OWN json_t *same = adv_json_part_load(adv_json_part_element(part, (int)element.index));
            if (!json_equal(same, element.value)) fail_msg("element %zu of %s", element.index, member.key);
        }
        assert_null(adv_json_part_element(part, (int)json_array_size(member.value)));
        assert_null(adv_json_part_element(part, -1));
    }
    assert_int_equal(members, 7);
    static const char *const absent[] = {"c", "", "las", "\\u0061"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_null(adv_json_part_member(ODD, absent[i]));
    assert_null(adv_json_part_member(NULL, "a"));
    assert_null(adv_json_part_member("[\"a\",1]", "a"));
    assert_null(adv_json_part_element("{\"a\":1}", 0));
    assert_null(adv_json_part_element(NULL, 0));
    assert_null(adv_json_part_load(NULL));
}

/* The sanitizers watch that nothing behind the copy is read. */
static void a_text_that_ends_early_is_not_read_past(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < sizeof ODD; bytes++) {
        char *text = malloc(bytes + 1);
        assert_non_null(text);
        memcpy(text, ODD, bytes);
        text[bytes] = '\0';
        const char *part = adv_json_part_member(text, "b");
        if (part) assert_in_range(part - text, 0, bytes);
        for (int i = 0; i < 8; i++) {
            const char *element = adv_json_part_element(part, i);
            if (element) assert_in_range(element - text, 0, bytes);
            json_decref(adv_json_part_load(element));
        }
        json_decref(adv_json_part_load(part));
        assert_null(adv_json_part_member(text, "not there"));
        free(text);
    }
}

/* The estimate request of a plan, by all that the answer says. */
static json_t *asked_again(const json_t *request, const json_t *answer, int rank)
{
    const json_t *plan = json_array_get(json_object_get(answer, "ranked"), (size_t)rank - 1);
    const json_t *chosen = json_object_get(answer, "cluster");
    json_t *cluster = json_object_get(request, "cluster");
    json_t *own =
        cluster ? json_incref(cluster)
                : json_pack("{s:O,s:O,s:O}", "chip", json_object_get(chosen, "chip"), "topology",
                            json_object_get(chosen, "topology"), "slices", json_object_get(chosen, "slices"));
    json_t *price = json_object_get(chosen, "price_usd_per_chip_hour");
    if (!cluster && json_is_number(price)) (void)json_object_set(own, "price_usd_per_chip_hour", price);
    return json_pack("{s:O,s:o,s:O,s:O}", "model", json_object_get(request, "model"), "cluster", own,
                     "config", json_object_get(plan, "config"), "xla_flags",
                     json_object_get(plan, "xla_flags"));
}

static void a_plan_is_asked_for_again_as_by_who_reads_all(void **state)
{
    static const char *const requests[] = {
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":"
        "{\"seq_len\":8192,\"global_batch_sequences\":64},\"search\":{\"top_k\":4}}",
        "{\"model\":\"llama3.1-8b\",\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"any\",\"chips\":16},{\"chip\":"
        "\"tpu7x\",\"topology\":\"2x2x1\",\"price_usd_per_chip_hour\":10}],\"workload\":{\"seq_len\":4096,"
        "\"global_batch_sequences\":64},\"search\":{\"top_k\":3}}"};
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        ADV_JSON_OWN json_t *request = json_loads(requests[i], 0, NULL);
        ADV_JSON_OWN json_t *answer = answer_to(ADV_REQUEST_ADVISE, requests[i]);
        char *response = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(17));
        const json_t *ranked = json_object_get(answer, "ranked");
        assert_true(json_array_size(ranked) >= 3);
        for (int rank = 1; rank <= (int)json_array_size(ranked); rank++) {
            const json_t *told = json_object_get(json_array_get(ranked, (size_t)rank - 1), "estimate");
            adv_err err = adv_err_empty();
            struct adv_price price;
            char *json = NULL;
            assert_int_equal(adv_gate_ask_again(requests[i], response, rank, "", &json, &err), ADV_OK);
            ADV_JSON_OWN json_t *again = json_loads(json, 0, NULL);
            ADV_JSON_OWN json_t *by_all = asked_again(request, answer, rank);
            if (!json_equal(again, by_all)) fail_msg("rank %d of %s: %s", rank, requests[i], json);
            assert_int_equal(adv_price_within(catalog, json, strlen(json), NULL, &price, &err), ADV_OK);
            assert_close(price.step_time_s, adv_json_number_of(told, "step_time_s"), 1e-9);
            assert_close(price.hbm_bytes_per_device, adv_json_number_of(told, "hbm_bytes_per_device"), 1e-9);
            free(json);
        }
        free(response);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_what_the_whole_text_holds),
        cmocka_unit_test(a_text_that_ends_early_is_not_read_past),
        cmocka_unit_test(a_plan_is_asked_for_again_as_by_who_reads_all),
    };
    return run_group_with_catalog(tests);
}
