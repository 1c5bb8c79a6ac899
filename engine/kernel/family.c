#include "engine/kernel/family.h"

static const struct adv_kernel_family *const families[] = {
#define ROW(name) &adv_family_##name,
    ADV_KERNEL_FAMILIES(ROW)
#undef ROW
};

#define ONE(name) +1
enum { FAMILIES = ADV_KERNEL_FAMILIES(ONE) };

const struct adv_kernel_family *const *adv_kernel_families(int *count)
{
    *count = FAMILIES;
    return families;
}

/* Every kernel is of one. */
const struct adv_kernel_family *adv_kernel_family_of(enum adv_kernel kernel)
{
    for (int f = 0; f < FAMILIES; f++)
        for (int i = 0; i < families[f]->kernels_count; i++)
            if (families[f]->kernels[i].kernel == kernel) return families[f];
    return families[0];
}

const struct adv_kernel_info *adv_kernel_info_of(enum adv_kernel kernel)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(kernel);
    int i = family->kernels_count - 1;
    while (i > 0 && family->kernels[i].kernel != kernel) i--;
    return &family->kernels[i];
}

bool adv_kernel_tiles_itself(const struct adv_kernel_request *request)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    return family->operation || (family->own_tiles && family->own_tiles(request));
}
