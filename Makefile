# TPU Advisor. `make help` lists the front doors, and the variables below.
SANITIZER ?=#  address,undefined or thread: build with these sanitizers (make api-test SANITIZER=thread)
COVERAGE  ?=#  1: build for gcov
WERROR    ?=#  1: warnings are errors, as in CI
# a sanitizer's checks make gcc see null pointers at -O3 that cannot be
OPT       ?= $(if $(SANITIZER),-O2,-O3) -g
V         ?=#  1: show the commands
PREFIX    ?= /usr/local
DESTDIR   ?=

# Each way of building has its own folder, so that flags never mix.
comma := ,
BUILD ?= build$(if $(SANITIZER),-$(subst $(comma),-,$(SANITIZER)))$(if $(COVERAGE),-coverage)
ifeq ($(origin CC),default)
CC := gcc
endif

PKGS        := jansson yaml-0.1
SERVER_PKGS := libmicrohttpd libpq libssl libcrypto zlib
PKG_CFLAGS  := $(shell pkg-config --cflags $(PKGS) $(SERVER_PKGS) 2>/dev/null)
PKG_LIBS    := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
SERVER_LIBS := $(shell pkg-config --libs $(SERVER_PKGS) 2>/dev/null)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion -Wformat=2 \
        -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla -Wundef -Wwrite-strings \
        -Wcast-qual -Wnull-dereference -Wpointer-arith -Wswitch-enum -Wimplicit-fallthrough
# gcc copies a struct with an instruction that takes longer to start than most of ours take to copy; the C library knows
# the processor. Where the compiler has no such option it has no such habit.
COPY_BY_CALL := -mmemcpy-strategy=libcall:-1:noalign -mmemset-strategy=libcall:-1:noalign
COPY := $(shell $(CC) $(COPY_BY_CALL) -fsyntax-only -x c /dev/null 2>/dev/null && echo $(COPY_BY_CALL))
# What searches spend most time in is compiled as one piece where the compiler can, for a twentieth of it: the parts
# call each other's small functions millions of times. The piece is an object like any other.
JOINED_DIRS := cost hardware
JOIN_BY := -r -flto -flto-partition=none -flinker-output=nolto-rel
JOIN := $(if $(SANITIZER)$(COVERAGE)$(findstring -O0,$(OPT)),,$(shell echo 'int joined;' | \
        $(CC) $(JOIN_BY) -x c -o /dev/null - 2>/dev/null && echo $(JOIN_BY)))
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE $(OPT) -ffp-contract=off $(COPY) $(WARN) $(if $(WERROR),-Werror) \
        $(if $(findstring -O0,$(OPT)),,$(if $(SANITIZER),,$(HARDEN))) -fno-common -pthread -I. -I$(BUILD)/gen \
        $(if $(SANITIZER),-fsanitize=$(SANITIZER) -fno-omit-frame-pointer) $(if $(COVERAGE),--coverage) $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = -pthread -pie -Wl,-z,relro,-z,now $(if $(SANITIZER),-fsanitize=$(SANITIZER)) $(if $(COVERAGE),--coverage) $(LDFLAGS)

ENGINE_SRC := $(wildcard engine/*.c engine/*/*.c)
SERVER_SRC := $(wildcard server/*.c)
MAIN_SRC   := server/main.c
ENGINE_OBJ := $(ENGINE_SRC:%.c=$(BUILD)/%.o) $(BUILD)/gen/embedded_catalog.o $(BUILD)/gen/embedded_templates.o \
              $(BUILD)/gen/engine_version.o
JOINED_OBJ := $(if $(JOIN),$(patsubst %.c,$(BUILD)/%.o,$(wildcard $(JOINED_DIRS:%=engine/%/*.c))))
SERVER_OBJ := $(filter-out $(BUILD)/$(MAIN_SRC:.c=.o),$(SERVER_SRC:%.c=$(BUILD)/%.o)) $(BUILD)/gen/embedded_web.o $(BUILD)/gen/embedded_sql.o \
              $(BUILD)/gen/embedded_openapi.o $(BUILD)/gen/embedded_verifier.o
PROGRAM    := $(BUILD)/tpu-advisor
ENGINE_LIB := $(BUILD)/libadv.a

# Written when the compiler or a flag changes; every object depends on it.
FLAGS_NOW = $(CC) $(CFLAGS_ALL) :: $(JOIN) :: $(LDFLAGS_ALL)
.PHONY: force
$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $@ || echo '$(subst ','\'',$(FLAGS_NOW))' > $@

Q := $(if $(V),,@)
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-7s %s\n' "$(1)" "$(2)")

.DEFAULT_GOAL := all
.PHONY: all
all: $(PROGRAM) ## build/tpu-advisor

CATALOG_DATA := $(notdir $(wildcard engine/catalog/data/*.json))
VERIFIER_DATA := $(notdir $(wildcard server/verifier/*))
VERIFIER_DATA := $(filter-out __pycache__,$(VERIFIER_DATA))
TEMPLATES    := $(notdir $(wildcard engine/emit/templates/*))
SQL_DATA     := $(notdir $(wildcard sql/migrations/*.sql))
# The form as browsers get it: bundled by web/build.mjs. One folder for all ways of building; its names carry digests, so
# what is in it is listed when it is embedded.
WEB_DIST    := build/web
WEB_SOURCES := engine/README.md tests/accuracy/report.md tests/compile/report.md tests/data/kernel_timings.json $(wildcard web/*.html web/*.svg web/*.mjs web/css/*.css web/js/*.js web/js/*/*.js)

web/node_modules/.package-lock.json: web/package-lock.json
	$(call say,NPM,web/node_modules)
	$(Q)command -v npm > /dev/null || { echo 'make: npm bundles the web form and is missing; make deps-run installs it' >&2; exit 1; }
	$(Q)npm ci --prefix web --no-fund --no-audit --loglevel=error > /dev/null && touch $@

$(WEB_DIST)/index.html: $(WEB_SOURCES) web/node_modules/.package-lock.json
	$(call say,BUNDLE,$(WEB_DIST))
	$(Q)node web/build.mjs $(WEB_DIST)

# The engine's name in its answers: a digest of its sources, so that no two engines share one. Written when it changes.
ENGINE_DIGESTED := $(sort $(wildcard engine/*.[ch] engine/*/*.[ch]))
$(BUILD)/gen/engine_version.c: $(ENGINE_DIGESTED) Makefile
	@mkdir -p $(@D)
	$(Q)build=$$(sha256sum $(ENGINE_DIGESTED) | sha256sum | cut -c1-12) && \
	    printf '#include "engine/base/version.h"\n\nconst char adv_engine_version_text[] = ADV_ENGINE_VERSION "+%s";\n' "$$build" > $@.new
	$(Q)if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(BUILD)/gen/engine_version.o: $(BUILD)/gen/engine_version.c $(BUILD)/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -c -o $@ $<

# Written when an embedded file comes, goes or is renamed.
EMBEDDED := $(CATALOG_DATA) $(TEMPLATES) $(SQL_DATA) $(VERIFIER_DATA)
$(BUILD)/embedded: force
	@mkdir -p $(@D)
	@echo '$(EMBEDDED)' | cmp -s - $@ || echo '$(EMBEDDED)' > $@

$(BUILD)/gen/embedded_catalog.c: $(CATALOG_DATA:%=engine/catalog/data/%) $(BUILD)/embedded engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh catalog engine/catalog/data $(CATALOG_DATA) > $@

$(BUILD)/gen/embedded_templates.c: $(TEMPLATES:%=engine/emit/templates/%) $(BUILD)/embedded engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh templates engine/emit/templates $(TEMPLATES) > $@

$(BUILD)/gen/embedded_sql.c: $(SQL_DATA:%=sql/migrations/%) $(BUILD)/embedded engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh sql sql/migrations $(SQL_DATA) > $@

$(BUILD)/gen/embedded_openapi.c: server/openapi.yaml engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh openapi server openapi.yaml > $@

$(BUILD)/gen/embedded_verifier.c: $(VERIFIER_DATA:%=server/verifier/%) $(BUILD)/embedded engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh verifier server/verifier $(VERIFIER_DATA) > $@

$(BUILD)/gen/embedded_web.c: $(WEB_DIST)/index.html engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh web $(WEB_DIST) $$(cd $(WEB_DIST) && find * -type f | LC_ALL=C sort) > $@

$(BUILD)/gen/embedded_%.o: $(BUILD)/gen/embedded_%.c $(BUILD)/flags
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -c -o $@ $<

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(JOINED) -MMD -MP -c -o $@ $<

$(JOINED_OBJ): private JOINED := -flto

$(BUILD)/engine/joined.o: $(JOINED_OBJ)
	$(call say,JOIN,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(JOIN) -o $@ $^

$(ENGINE_LIB): $(filter-out $(JOINED_OBJ),$(ENGINE_OBJ)) $(if $(JOIN),$(BUILD)/engine/joined.o)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(PROGRAM): $(BUILD)/$(MAIN_SRC:.c=.o) $(SERVER_OBJ) $(ENGINE_LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(BUILD)/$(MAIN_SRC:.c=.o) $(SERVER_OBJ) $(ENGINE_LIB) $(SERVER_LIBS) $(PKG_LIBS) -lm

-include $(ENGINE_OBJ:.o=.d) $(SERVER_OBJ:.o=.d) $(BUILD)/$(MAIN_SRC:.c=.d)

# Tests in C: every tests/<kind>/test_*.c is one cmocka program, linked with the engine (and, for kind api and sql
# helpers written in C, nothing else). Run them all with `make check`.
UNIT_SRC := $(wildcard tests/oracle/test_*.c tests/property/test_*.c tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)

$(BUILD)/tests/%: tests/%.c $(ENGINE_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,TEST,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes -MMD -MP -MF $@.d $(LDFLAGS_ALL) -o $@ $< $(filter tests/accuracy/%.c,$^) $(ENGINE_LIB) $(PKG_LIBS) -lcmocka -lm

# The timings of each fitted constant are named beside the fit.
$(BUILD)/tests/oracle/test_kernel_accuracy: tests/accuracy/fit_kernels.c
$(BUILD)/tests/unit/test_kernel_rows: tests/accuracy/fit_kernels.c tests/accuracy/derive_kernels.c

-include $(UNIT_BIN:%=%.d)

.PHONY: check
check: $(UNIT_BIN) ## unit, property and oracle tests of the engine
	$(Q)tests/check.sh $(UNIT_BIN)

# ---- Front doors -------------------------------------------------------------------------------------------

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'
	@echo
	@sed -n 's/^\([A-Z]*\) *?= *# *\(.*\)/  \1|\2/p' Makefile | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'
	@echo '  OPT PREFIX DESTDIR CC  as usual'

# docker/deps.sh puts a newer Node.js here where the machine's is too old for the tests.
ifneq ($(wildcard build/node/node_modules/node/bin/node),)
export PATH := $(CURDIR)/build/node/node_modules/node/bin:$(PATH)
# Unlike Debian's, it does not know the certificates that this machine trusts.
export NODE_EXTRA_CA_CERTS ?= $(wildcard /etc/ssl/certs/ca-certificates.crt)
endif

.PHONY: deps deps-run
deps: ## install what building and testing need and this machine lacks (Debian; root or sudo)
	@docker/deps.sh test
deps-run: ## the same for building and running only
	@docker/deps.sh run

.PHONY: test
test: deps ## every suite that needs no container engine; installs what is missing first
	@$(MAKE) --no-print-directory test-suites
.PHONY: test-suites
test-suites: # make again, so that what deps has just installed is seen
	@tests/run.sh

.PHONY: bench
bench: all ## the engine's own speed: plans per second, latency of fixed searches, growth with the space (plot in build/bench)
	@mkdir -p $(BUILD)/bench
	$(Q)$(PROGRAM) bench --plot $(BUILD)/bench/growth.svg > $(BUILD)/bench/bench.json
	$(Q)cat $(BUILD)/bench/bench.json

# Lint: each part can be run alone. Files are those git knows, so that build products are never looked at.
C_FILES      = $(shell git ls-files '*.c' '*.h')
# A template becomes a script when it is filled; the API tests let bash parse the filled ones.
SCRIPT_FILES = $(filter-out engine/emit/templates/%,$(shell git ls-files '*.sh' .ci/run))

# With WERROR, as in CI, gcc's build is the one that the tests use afterwards; golden uses clang's.
.PHONY: lint lint-format lint-warnings lint-tidy lint-cppcheck lint-scripts lint-house lint-readme
lint: lint-format lint-warnings lint-tidy lint-cppcheck lint-scripts lint-house lint-readme ## formatting, gcc and clang warnings, clang-tidy, cppcheck, shellcheck, house rules

lint-format:
	$(Q)clang-format --dry-run $(C_FILES) 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:.*code should be.*/lint: not formatted (make format): \1/p' | \
	    sort | uniq -c | (! grep .)
	@echo 'lint: formatting is clean ($(words $(C_FILES)) files)'

lint-warnings:
	$(Q)$(MAKE) -s -k -j$$(nproc) CC=gcc BUILD=$(if $(WERROR),build,build-gcc) WERROR=1 everything
	$(Q)$(MAKE) -s -k -j$$(nproc) CC=clang BUILD=build-clang WERROR=1 all warnings-of-tests
	@echo 'lint: gcc and clang compile without a warning'

# clang warns of what it has read, before it optimizes; gcc warns later, too. Only gcc's test programs are run.
.PHONY: warnings-of-tests
warnings-of-tests:
	$(Q)printf '%s\n' $(UNIT_SRC) tests/accuracy/fit_kernels.c tests/accuracy/derive_kernels.c | \
	    xargs -P 2 -n 16 $(CC) $(CFLAGS_ALL) -Wno-missing-prototypes -fsyntax-only

lint-tidy:
	$(Q)printf '%s\n' $(filter %.c,$(C_FILES)) | xargs -P 2 -n 4 tests/lint/tidy.sh
	@echo 'lint: clang-tidy is clean'

lint-cppcheck:
	$(Q)cppcheck -q -j2 --std=c11 --enable=warning,portability,performance --inline-suppr --error-exitcode=1 --template='{file}:{line}: {message} [{id}]' \
	    --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=uninitvar --suppress=legacyUninitvar \
	    --suppress=invalidPointerCast -I. $(filter %.c,$(C_FILES))
	@echo 'lint: cppcheck is clean'

lint-scripts:
	$(Q)shellcheck -S warning $(SCRIPT_FILES)
	@echo 'lint: shellcheck is clean ($(words $(SCRIPT_FILES)) scripts)'

lint-house:
	$(Q)failed=0; for script in $(filter-out %/tidy.sh,$(filter tests/lint/%,$(SCRIPT_FILES))); do $$script || failed=1; done; exit $$failed

.PHONY: readme
readme: all ## write the generated parts of README.md: exchange, settings, accuracy, one job's three levels
	node tests/readme/update.mjs

lint-readme: all
	@node tests/readme/update.mjs --check

.PHONY: generated
generated: all ## write anew all that is generated and committed: accuracy report, golden answers, README
	$(Q)$(MAKE) --no-print-directory accuracy-update kernel-accuracy-update golden-update
	$(Q)$(MAKE) --no-print-directory readme

.PHONY: everything
everything: all $(UNIT_BIN) ## the program and every C test, without running them

.PHONY: format
format: ## clang-format over all C files
	clang-format -i $(C_FILES)

.PHONY: run api-test sql-test
run: deps-run ## build and serve on 127.0.0.1:8080 with a private PostgreSQL (or TPU_ADVISOR_DATABASE_URL)
	@$(MAKE) --no-print-directory run-built
.PHONY: run-built
run-built: all # make again, so that what deps has just installed is seen
	@sql/with-cluster.sh $(PROGRAM) serve $(ARGS)

api-test: all ## every endpoint, every error, hostile and slow clients, faults, against a daemon of its own
	@PROGRAM=$(PROGRAM) SANITIZER=$(SANITIZER) tests/api/run.sh

SWEEP_KILLS ?= 1000#  daemons that `make sweep-kills` kills, about two a second
.PHONY: sweep-kills
sweep-kills: all ## SWEEP_KILLS daemons killed at random moments of sweeps: no item lost, none ended or stored twice (minutes)
	@SWEEP_KILLS=$(SWEEP_KILLS) TIMEOUT_MS=$$((60000 + $(SWEEP_KILLS) * 3000)) tests/api/run.sh tests/api/sweep_kills.test.mjs

THREAD_TESTS = $(addprefix tests/,api/cache.test.mjs api/health.test.mjs api/limits.test.mjs api/runs.test.mjs api/tokens.test.mjs \
    fault/faults.test.mjs fault/upgrade.test.mjs)
.PHONY: thread-test
thread-test: ## the daemon built with ThreadSanitizer, before the tests that use many threads at once (minutes)
	$(Q)$(MAKE) -s SANITIZER=thread build-thread/tpu-advisor
	@PROGRAM=build-thread/tpu-advisor SANITIZER=thread tests/api/run.sh $(THREAD_TESTS)

.PHONY: eco-test eco-update
eco-test: all ## emitted files before the real MaxText, XPK and JobSet schema, installed under build/eco (3 GB from PyPI)
	@PROGRAM=$(abspath $(PROGRAM)) tests/eco/run.sh
eco-update: all ## the same, and store the page and what `make test` replays of it
	@PROGRAM=$(abspath $(PROGRAM)) tests/eco/run.sh --update

sql-test: all ## migrations, constraints, roles and the dev cluster, against a cluster of its own
	@PROGRAM=$(PROGRAM) tests/sql/run.sh
	@PROGRAM=$(PROGRAM) tests/sql/scale.sh 100000

.PHONY: sql-scale
sql-scale: all ## every filter and order of the list of runs on a million runs: indexes and buffers (minutes)
	@PROGRAM=$(PROGRAM) tests/sql/scale.sh 1000000
# ---- Golden answers and fuzzing ------------------------------------------------------------------------------

GOLDEN_VARIANTS := gcc-O0 clang-O0
GOLDEN_PROGRAMS  = $(PROGRAM) build-clang/tpu-advisor $(GOLDEN_VARIANTS:%=build-golden-%/tpu-advisor)

.PHONY: golden golden-update
golden: $(PROGRAM) ## the stored answers, byte for byte, from gcc and clang builds at -O0 and -O3
	$(Q)$(MAKE) -s CC=clang BUILD=build-clang WERROR=1 all
	$(Q)for variant in $(GOLDEN_VARIANTS); do \
	    $(MAKE) -s CC=$${variant%-*} OPT=-$${variant#*-} BUILD=build-golden-$$variant all || exit 1; done
	$(Q)tests/golden/run.sh $(abspath $(GOLDEN_PROGRAMS))
golden-update: $(PROGRAM) ## store today's answers as the golden ones
	$(Q)tests/golden/run.sh --update $(abspath $(PROGRAM))

FUZZ_SECONDS ?= 60#  how long `make fuzz` runs each target
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_REPLAY  := $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/fuzz_%)
FUZZ_LIBS     = $(SERVER_LIBS) $(PKG_LIBS) -lm

$(BUILD)/tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c tests/fuzz/fuzz.h $(ENGINE_LIB) $(SERVER_OBJ) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,TEST,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< tests/fuzz/replay.c $(SERVER_OBJ) $(ENGINE_LIB) $(FUZZ_LIBS)

$(BUILD)/tests/fuzz/libfuzzer_%: tests/fuzz/fuzz_%.c tests/fuzz/fuzz.h $(ENGINE_LIB) $(SERVER_OBJ) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $< $(SERVER_OBJ) $(ENGINE_LIB) $(FUZZ_LIBS)

.PHONY: fuzz fuzz-replay
check: fuzz-replay
fuzz-replay: $(FUZZ_REPLAY)
	$(Q)for t in $(FUZZ_TARGETS); do \
	    $(BUILD)/tests/fuzz/fuzz_$$t tests/fuzz/corpus/$$t tests/fuzz/regression/$$t || exit 1; done

# Without libFuzzer's entropic schedule, whose bookkeeping of rare features took two thirds of the time of long runs.
fuzz: ## libFuzzer with sanitizers on each entry point, FUZZ_SECONDS each; a failing input lands in tests/fuzz/regression
	$(Q)$(MAKE) -s CC=clang BUILD=build-fuzz SANITIZER=fuzzer-no-link,address,undefined $(FUZZ_TARGETS:%=build-fuzz/tests/fuzz/libfuzzer_%)
	$(Q)total=0; for t in $(FUZZ_TARGETS); do mkdir -p build-fuzz/corpus/$$t tests/fuzz/regression/$$t; \
	    build-fuzz/tests/fuzz/libfuzzer_$$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -entropic=0 \
	        -dict=tests/fuzz/request.dict -artifact_prefix=tests/fuzz/regression/$$t/ build-fuzz/corpus/$$t tests/fuzz/corpus/$$t \
	        2> build-fuzz/$$t.log || { tail -40 build-fuzz/$$t.log; exit 1; }; \
	    count=$$(sed -n 's/^stat::number_of_executed_units: *//p' build-fuzz/$$t.log); total=$$((total + count)); \
	    echo "fuzz: $$t: $$count inputs, $$((count / $(FUZZ_SECONDS))) a second, nothing found"; done; \
	    echo "fuzz: $$total inputs in all"

.PHONY: load
load: all ## the daemon under load for half a minute: a table, and gates on ratios, errors, memory and descriptors
	@PROGRAM=$(PROGRAM) tests/load/run.sh
	@PROGRAM=$(PROGRAM) tests/load/sweeps.sh

.PHONY: compose-test
compose-test: ## docker/ for real: kills, scales, upgrades, in a container engine of its own (root; minutes; VERIFIER=1: the compiler, too)
	@tests/compose/run.sh

.PHONY: web-test
web-test: all ## the web form in real Chromium: unit, page and daemon tests
	@PROGRAM=$(PROGRAM) tests/web/run.sh
.PHONY: web-bench
web-bench: all ## what the reader of the web form waits for: click to picture, slider to answer
	@PROGRAM=$(PROGRAM) tests/web/run.sh bench

.PHONY: install
install: all ## copy the program and the systemd unit below PREFIX
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/tpu-advisor
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's,@PREFIX@,$(PREFIX),g' docker/tpu-advisor.service.in > $(DESTDIR)$(PREFIX)/lib/systemd/system/tpu-advisor.service

# The fit of the kernel constants (needs libnlopt-dev; not part of the program).
KERNEL_FIT_BIN := $(BUILD)/tests/accuracy/fit_kernels

$(KERNEL_FIT_BIN): tests/accuracy/fit_kernels_main.c tests/accuracy/fit_kernels.c tests/accuracy/derive_kernels.c $(ENGINE_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS_ALL) -o $@ $(filter %.c,$^) $(ENGINE_LIB) $(PKG_LIBS) -lnlopt -lm

.PHONY: fit-kernels
fit-kernels: $(KERNEL_FIT_BIN) ## fit the kernel constants on the published timings, with cross validation
	$(Q)$(KERNEL_FIT_BIN) tests/data/kernel_timings.json --write engine/catalog/data/kernel_constants.json > $(BUILD)/fit_kernels.txt
	$(Q)grep -E 'rows,|left out' $(BUILD)/fit_kernels.txt

KERNEL_REPORT_BIN := $(BUILD)/tests/accuracy/kernels_report

$(KERNEL_REPORT_BIN): tests/accuracy/kernels_report_main.c tests/accuracy/fit_kernels.c $(ENGINE_LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS_ALL) -o $@ $(filter %.c,$^) $(ENGINE_LIB) $(PKG_LIBS) -lm

.PHONY: kernel-accuracy kernel-accuracy-update
kernel-accuracy: $(KERNEL_REPORT_BIN) ## judge the kernel simulation on published timings; fails when worse than tests/accuracy/kernels_report.md
	$(Q)tests/accuracy/kernels_run.sh $(KERNEL_REPORT_BIN) tests/data/kernel_timings.json $(BUILD)/accuracy
kernel-accuracy-update: $(KERNEL_REPORT_BIN) ## write tests/accuracy/kernels_report.md anew
	$(Q)$(KERNEL_REPORT_BIN) tests/data/kernel_timings.json tests/accuracy/kernels_report.md

# The fit of the whole-step constants and the accuracy page (needs libgsl-dev; not part of the program).
FIT_SRC := $(wildcard tests/accuracy/fit_main.c tests/accuracy/parameters.c tests/accuracy/report.c tests/accuracy/solve.c \
    tests/accuracy/spread.c)
FIT_BIN := $(BUILD)/tests/accuracy/fit_steps

$(FIT_BIN): $(FIT_SRC) $(wildcard tests/accuracy/*.h) $(ENGINE_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS_ALL) -o $@ $(FIT_SRC) $(ENGINE_LIB) $(PKG_LIBS) -lgsl -lgslcblas -lm

.PHONY: accuracy accuracy-update fit
accuracy: $(FIT_BIN) ## judge predictions on published steps; fails when worse than tests/accuracy/report.md
	$(Q)tests/accuracy/run.sh $(FIT_BIN) $(BUILD)/accuracy

accuracy-update: $(FIT_BIN) ## write tests/accuracy/report.md anew from the committed constants
	$(Q)$(FIT_BIN) tests/accuracy/e2e.json --report tests/accuracy/report.md --accounts tests/accuracy/resisting.json --picture tests/accuracy/predicted.svg --leave-one-out | tail -40

fit: $(FIT_BIN) ## fit the step constants on the published steps, then write the accuracy page
	$(Q)$(FIT_BIN) tests/accuracy/e2e.json --write engine/catalog/data/step_constants.json --leave-one-out > $(BUILD)/fit.txt
	$(Q)tail -40 $(BUILD)/fit.txt
	$(Q)$(MAKE) --no-print-directory accuracy-update

# Memory against the real compiler: rows of compiled steps, their page, the fit of the counts.
COMPILED_ROWS  = $(sort $(wildcard tests/compile/truth/*.json))
FIT_MEMORY_BIN := $(BUILD)/tests/compile/fit_memory

$(FIT_MEMORY_BIN): tests/compile/fit_main.c tests/compile/rows.c tests/compile/rows.h $(ENGINE_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS_ALL) -o $@ $(filter %.c,$^) $(ENGINE_LIB) $(PKG_LIBS) -lgsl -lgslcblas -lm

MEMORY_REPORT_BIN := $(BUILD)/tests/compile/memory_report

$(MEMORY_REPORT_BIN): tests/compile/report_main.c tests/compile/rows.c tests/compile/rows.h $(ENGINE_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS_ALL) -o $@ $(filter %.c,$^) $(ENGINE_LIB) $(PKG_LIBS) -lm

# Time of single operations against the real compiler: rows of what XLA says each costs, their page.
CYCLE_ROWS       = $(sort $(wildcard tests/compile/cycles/*.json))
CYCLE_REPORT_BIN := $(BUILD)/tests/compile/cycle_report

$(CYCLE_REPORT_BIN): tests/compile/cycles_main.c $(ENGINE_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS_ALL) -o $@ $(filter %.c,$^) $(ENGINE_LIB) $(PKG_LIBS) -lm

.PHONY: cycle-accuracy cycle-accuracy-update cycle-truth
cycle-accuracy: $(CYCLE_REPORT_BIN) ## judge the time of single operations on compiled ones; fails when worse than tests/compile/cycles.md
	$(Q)tests/compile/accuracy.sh $(CYCLE_REPORT_BIN) tests/compile/cycles.md $(BUILD)/accuracy/compile $(CYCLE_ROWS)
cycle-accuracy-update: $(CYCLE_REPORT_BIN) ## write tests/compile/cycles.md anew
	$(Q)$(CYCLE_REPORT_BIN) $(CYCLE_ROWS) > tests/compile/cycles.md
cycle-truth: ## compile single operations for every chip with the real libtpu: tests/compile/cycles/*.json (CHIP=name: one; 2 to 15 minutes each)
	$(Q)"$$(server/verifier/environment.sh)" tests/compile/cycles.py tests/compile/cycles $(if $(CHIP),--chip $(CHIP))

.PHONY: schedule-report
schedule-report: ## write tests/compile/schedules.md anew: what is asynchronous in compiled steps, per chip
	$(Q)python3 tests/compile/schedule.py tests/compile/schedules.json > tests/compile/schedules.md

.PHONY: memory-accuracy memory-accuracy-update explain-memory compile-env compile-truth compile-keep
memory-accuracy: $(MEMORY_REPORT_BIN) ## judge predicted memory on compiled steps; fails when worse than tests/compile/report.md
	$(Q)tests/compile/accuracy.sh $(MEMORY_REPORT_BIN) tests/compile/report.md $(BUILD)/accuracy/compile $(COMPILED_ROWS)
memory-accuracy-update: $(MEMORY_REPORT_BIN) ## write tests/compile/report.md anew
	$(Q)$(MEMORY_REPORT_BIN) $(COMPILED_ROWS) > tests/compile/report.md
explain-memory: $(MEMORY_REPORT_BIN) ## ROW=id: our parts beside the buffers that the compiler had at its peak
	$(Q)$(MEMORY_REPORT_BIN) --explain '$(ROW)' $(COMPILED_ROWS)
compile-env: ## the private Python with the pinned MaxText, JAX and libtpu, outside the tree (minutes, 3 GB, PyPI)
	@server/verifier/environment.sh
compile-truth: ## CASES=file OUT=file.jsonl: compile the cases of tests/compile/cases.py with the real MaxText and libtpu
	$(Q)"$$(server/verifier/environment.sh)" tests/compile/compile.py $(CASES) $(or $(OUT),$(BUILD)/compiled.jsonl)

compile-keep: ## OUT=file.jsonl ROWS=name: make what compile-truth wrote rows of tests/compile/truth/name.json
	$(Q)python3 tests/compile/keep.py $(or $(OUT),$(BUILD)/compiled.jsonl) tests/compile/truth/$(or $(ROWS),plans).json

.PHONY: releases
releases: ## ask releases of MaxText, JAX and libtpu what they know and refuse; writes engine/catalog/data/releases.json (PyPI, 20 minutes)
	$(Q)"$$(server/verifier/environment.sh)" tests/compile/releases.py engine/catalog/data/releases.json

.PHONY: compile-truth-add verify-test
compile-truth-add: ## RUN=id: a verified run whose memory was predicted more than 5 % off becomes a row of truth
	$(Q)node tests/compile/truth_add.mjs --run '$(RUN)'
verify-test: all ## verification for real: MaxText and libtpu compile small plans, a verifier is killed in the middle (needs compile-env)
	@PROGRAM=$(PROGRAM) TIMEOUT_MS=900000 tests/api/run.sh tests/compile/verify.test.mjs

.PHONY: fit-memory
fit-memory: $(FIT_MEMORY_BIN) ## fit the counts of tensors in memory on the compiled steps
	$(Q)$(FIT_MEMORY_BIN) --write engine/catalog/data/memory_constants.json $(COMPILED_ROWS)

.PHONY: clean
clean: ## remove the build folders
	rm -rf build build-*
