#include "engine/cost/step.h"

void adv_cost_software_age(const struct adv_cost *cost, struct adv_account *account)
{
    if (cost->plan->family.software_date < cost->constants->software_settled_year)
        adv_account_busy(account, ADV_TERM_SOFTWARE_AGE,
                         cost->constants->software_early_frac * adv_account_total_s(account), 1.0, 0.0, 0.0);
}
