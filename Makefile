# TPU Advisor. `make help` lists the front doors.
BUILD    ?= build
CC       ?= gcc
OPT      ?= -O2 -g
SANITIZER ?=
COVERAGE ?=
WERROR   ?=
V        ?=

PREFIX   ?= /usr/local
DESTDIR  ?=

VERSION  := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
PKGS     := jansson yaml-0.1
SERVER_PKGS := libmicrohttpd libpq
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) $(SERVER_PKGS) 2>/dev/null)
PKG_LIBS   = $(shell pkg-config --libs $(PKGS) 2>/dev/null)
SERVER_LIBS = $(shell pkg-config --libs $(SERVER_PKGS) 2>/dev/null)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion -Wformat=2 \
        -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla -Wundef -Wwrite-strings \
        -Wcast-qual -Wnull-dereference -Wpointer-arith -Wswitch-enum -Wimplicit-fallthrough
HARDEN := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE $(OPT) -ffp-contract=off $(WARN) $(if $(WERROR),-Werror) \
        $(if $(findstring -O0,$(OPT)),,$(if $(SANITIZER),,$(HARDEN))) -fno-common -pthread -I. -I$(BUILD)/gen \
        $(if $(SANITIZER),-fsanitize=$(SANITIZER) -fno-omit-frame-pointer) $(if $(COVERAGE),--coverage) $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = -pthread -pie -Wl,-z,relro,-z,now $(if $(SANITIZER),-fsanitize=$(SANITIZER)) $(if $(COVERAGE),--coverage) $(LDFLAGS)

ENGINE_SRC := $(wildcard engine/*.c engine/*/*.c)
SERVER_SRC := $(wildcard server/*.c)
MAIN_SRC   := server/main.c
ENGINE_OBJ := $(ENGINE_SRC:%.c=$(BUILD)/%.o) $(BUILD)/gen/embedded_catalog.o
SERVER_OBJ := $(filter-out $(BUILD)/$(MAIN_SRC:.c=.o),$(SERVER_SRC:%.c=$(BUILD)/%.o)) $(BUILD)/gen/embedded_web.o $(BUILD)/gen/embedded_sql.o
PROGRAM    := $(BUILD)/tpu-advisor
ENGINE_LIB := $(BUILD)/libadv.a

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' "$(1)" "$(2)")

.PHONY: all
all: $(PROGRAM)

CATALOG_DATA := $(notdir $(wildcard engine/catalog/data/*.json))
SQL_DATA     := $(notdir $(wildcard sql/migrations/*.sql))
WEB_DIST     ?= web
WEB_DATA     := $(shell cd $(WEB_DIST) 2>/dev/null && find . -type f \( -name '*.html' -o -name '*.js' -o -name '*.css' -o -name '*.svg' \) -not -path './node_modules/*' | sed 's,^\./,,' | LC_ALL=C sort)

$(BUILD)/gen/embedded_catalog.c: $(CATALOG_DATA:%=engine/catalog/data/%) engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh catalog engine/catalog/data $(CATALOG_DATA) > $@

$(BUILD)/gen/embedded_sql.c: $(SQL_DATA:%=sql/migrations/%) engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh sql sql/migrations $(SQL_DATA) > $@

$(BUILD)/gen/embedded_web.c: $(WEB_DATA:%=$(WEB_DIST)/%) engine/base/embed.sh Makefile
	@mkdir -p $(@D)
	$(call say,EMBED,$@)
	$(Q)engine/base/embed.sh web $(WEB_DIST) $(WEB_DATA) > $@

$(BUILD)/gen/embedded_%.o: $(BUILD)/gen/embedded_%.c
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -c -o $@ $<

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(ENGINE_LIB): $(ENGINE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(PROGRAM): $(BUILD)/$(MAIN_SRC:.c=.o) $(SERVER_OBJ) $(ENGINE_LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(BUILD)/$(MAIN_SRC:.c=.o) $(SERVER_OBJ) $(ENGINE_LIB) $(SERVER_LIBS) $(PKG_LIBS) -lm

-include $(ENGINE_OBJ:.o=.d) $(SERVER_OBJ:.o=.d)

# Tests in C: every tests/<kind>/test_*.c is one cmocka program, linked with the engine (and, for kind api and sql
# helpers written in C, nothing else). Run them all with `make check`.
UNIT_SRC := $(wildcard tests/unit/test_*.c tests/property/test_*.c tests/oracle/test_*.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)

$(BUILD)/tests/%: tests/%.c $(ENGINE_LIB)
	@mkdir -p $(@D)
	$(call say,TEST,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(ENGINE_LIB) $(PKG_LIBS) -lcmocka -lm

.PHONY: check
check: $(UNIT_BIN) ## unit, property and oracle tests of the engine
	$(Q)failed=0; for t in $(UNIT_BIN); do $$t || failed=1; done; exit $$failed

.PHONY: clean
clean: ## remove the build folder
	rm -rf $(BUILD)
