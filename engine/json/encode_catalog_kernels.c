/* The input of /v1/kernels/simulate and /tune, as data: kernels, the members of shape and tile, the space
 * tune searches. */
#include <string.h>

#include "engine/json/encode_catalog.h"
#include "engine/json/kernel_members.h"
#include "engine/kernel/families.h"

static json_t *encode_kernel(enum adv_kernel kernel)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(kernel);
    json_t *object = json_object();
    adv_encode_set_string(object, "name", adv_kernel_name(kernel));
    adv_encode_set_string(object, "what", adv_kernel_info_of(kernel)->what);
    (void)json_object_set_new(object, "shape", adv_kernel_members_describe(kernel, ADV_KERNEL_SHAPE));
    (void)json_object_set_new(object, "tile",
                              family->operation ? json_array() /* XLA tiles it itself */
                                                : adv_kernel_members_describe(kernel, ADV_KERNEL_TILE));
    adv_encode_set_string(object, "search_space", family->space);
    return object;
}

json_t *adv_encode_catalog_kernels(const struct adv_catalog *catalog)
{
    (void)catalog;
    json_t *list = json_array();
    for (int i = 0; i < ADV_KERNEL_COUNT; i++)
        (void)json_array_append_new(list, encode_kernel((enum adv_kernel)i));
    return list;
}

/* Was the kernel measured? A flag among the chip's constants. */
static bool is_measured(const struct adv_constants *constants, enum adv_kernel kernel)
{
    const size_t at = adv_kernel_info_of(kernel)->measured;
    double flag = 0.0;
    if (at != ADV_KERNEL_NEVER_MEASURED) memcpy(&flag, (const char *)constants + at, sizeof flag);
    return flag > 0.0;
}

json_t *adv_encode_catalog_kernel(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < ADV_KERNEL_COUNT; i++) {
        if (strcmp(adv_kernel_name((enum adv_kernel)i), name) != 0) continue;
        json_t *object = encode_kernel((enum adv_kernel)i);
        json_t *measured = json_array();
        for (int c = 0; c < adv_catalog_chips_count(catalog); c++) {
            const struct adv_catalog_chip *chip = adv_catalog_chip_at(catalog, c);
            if (chip->chip.is_tpu && is_measured(&chip->constants, (enum adv_kernel)i))
                (void)json_array_append_new(measured, json_string(chip->chip.name));
        }
        (void)json_object_set_new(object, "measured_on", measured);
        return object;
    }
    return NULL;
}
