/* version.h: the engine's version, part of every answer. Raised when answers change for another reason than
 * data. */
#pragma once

#define ADV_ENGINE_VERSION "1.0.0"
