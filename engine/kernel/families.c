#include "engine/kernel/families.h"

static const struct adv_kernel_family *const families[] = {
#define ROW(name) &adv_family_##name,
    ADV_KERNEL_FAMILIES(ROW)
#undef ROW
};

#define ONE(name) +1
enum { FAMILIES = ADV_KERNEL_FAMILIES(ONE) };
#undef ONE

const struct adv_kernel_family *const *adv_kernel_families(int *count)
{
    *count = FAMILIES;
    return families;
}

/* The row of a kernel and its family; never NULL: every kernel is of one. */
static const struct adv_kernel_info *find(enum adv_kernel kernel, const struct adv_kernel_family **family)
{
    for (int f = 0; f < FAMILIES; f++)
        for (int i = 0; i < families[f]->kernels_count; i++) {
            *family = families[f];
            if (families[f]->kernels[i].kernel == kernel) return &families[f]->kernels[i];
        }
    *family = families[0];
    return &families[0]->kernels[0];
}

const struct adv_kernel_family *adv_kernel_family_of(enum adv_kernel kernel)
{
    const struct adv_kernel_family *family;
    (void)find(kernel, &family);
    return family;
}

const struct adv_kernel_info *adv_kernel_info_of(enum adv_kernel kernel)
{
    const struct adv_kernel_family *family;
    return find(kernel, &family);
}

bool adv_kernel_tiles_itself(const struct adv_kernel_request *request)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    return family->operation || (family->own_tiles && family->own_tiles(request));
}
