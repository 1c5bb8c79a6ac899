/* api.h: the handlers that the route table names; one file per resource, api_<resource>.c. */
#ifndef ADV_SERVER_API_H
#define ADV_SERVER_API_H

#include "server/exchange.h"

void adv_api_answer(struct adv_exchange *exchange); /* POST estimate, advise, kernels, lint: route->kind says which */

void adv_api_catalog_list(struct adv_exchange *exchange);
void adv_api_catalog_entry(struct adv_exchange *exchange);

void adv_api_runs_list(struct adv_exchange *exchange);
void adv_api_run_get(struct adv_exchange *exchange);
void adv_api_run_delete(struct adv_exchange *exchange);
void adv_api_compare(struct adv_exchange *exchange);
void adv_api_baseline_get(struct adv_exchange *exchange);
void adv_api_baseline_put(struct adv_exchange *exchange);

void adv_api_livez(struct adv_exchange *exchange);
void adv_api_readyz(struct adv_exchange *exchange);
void adv_api_metrics(struct adv_exchange *exchange);
void adv_api_version(struct adv_exchange *exchange);
void adv_api_openapi(struct adv_exchange *exchange);

/* The web form's files. `adv_api_web_has`: whether a path ("/", "/js/form.js") is one of them. */
void adv_api_web(struct adv_exchange *exchange);
bool adv_api_web_has(const char *path);

#endif
