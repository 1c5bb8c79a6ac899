/* version.h: the engine's version, part of every answer: "1.0.0+4f1d0c9a7b2e". The number is raised when
 * people should know; the build is a digest of the engine's sources, made by the Makefile. So two engines
 * that may answer differently never have the same name: stored answers and baselines are another engine's
 * then.
 */
#pragma once

#define ADV_ENGINE_VERSION "1.0.0"

extern const char adv_engine_version_text[];
