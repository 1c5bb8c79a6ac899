#include "engine/spec/chip.h"

#include <string.h>

static const struct adv_chip_field fields[] = {
#define CHIP_FIELD(name, unit, what) {#name, unit, what, offsetof(struct adv_chip, name)},
    ADV_CHIP_FIELDS(CHIP_FIELD)
#undef CHIP_FIELD
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

const struct adv_chip_field *adv_chip_fields(int *count)
{
    *count = FIELDS;
    return fields;
}

const struct adv_chip_field *adv_chip_field(const char *name)
{
    for (int i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0) return &fields[i];
    return NULL;
}

double adv_chip_field_get(const struct adv_chip *chip, const struct adv_chip_field *field)
{
    double value;
    memcpy(&value, (const char *)chip + field->offset, sizeof value);
    return value;
}

void adv_chip_field_set(struct adv_chip *chip, const struct adv_chip_field *field, double value)
{
    memcpy((char *)chip + field->offset, &value, sizeof value);
}
