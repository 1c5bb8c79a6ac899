/* version.h: the engine's version, part of every answer. Raised when answers change for another reason than
 * data. */
#ifndef ADV_BASE_VERSION_H
#define ADV_BASE_VERSION_H

#define ADV_ENGINE_VERSION "1.0.0"

#endif
