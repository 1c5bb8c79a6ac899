/* release.h: the software that emitted files are written for. An upgrade of MaxText changes this, the key
 * tables of the catalog, and what `make eco-test` installs. */
#ifndef ADV_EMIT_RELEASE_H
#define ADV_EMIT_RELEASE_H

#define ADV_MAXTEXT_VERSION "0.2.5"    /* on PyPI */
#define ADV_MAXTEXT_COMMIT  "e591f30c" /* whose keys the catalog has */
#define ADV_MAXTEXT_RELEASE "MaxText " ADV_MAXTEXT_VERSION " (PyPI; keys of commit " ADV_MAXTEXT_COMMIT ")"
#define ADV_MAXTEXT_MODULES "maxtext.trainers.pre_train"

#endif
