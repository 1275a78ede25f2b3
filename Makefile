# make          the command line program, ./carnn
# make deps     what building and testing needs, from Debian's packages
# make test     everything that can be wrong; the last line reads N passed, N failed
# make demo     trains on the sample dialogs and talks, with explanations
# make bench    kernels, cells and whole tasks against this machine's own limits
# make results  DATA=FOLDER [QUICK=1]: the figures of README.md and data/RESULTS.md
# make tools    what is in C in data/
# make data     makes the sample data sets anew
# make build/NAME  an example, examples/NAME.c
# make portability  builds and tests for other machines, with what is at hand of them
# make install  PREFIX=/usr/local DESTDIR=; make uninstall
# make clean    removes carnn and build/

CC = cc
CXX = c++
CFLAGS = -O2
PREFIX = /usr/local
VERSION = $(shell sed -n 's/.*CARNN_VERSION "\(.*\)"/\1/p' carnn.h)

LIBS = -lm -lpthread
STRICT = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
# Without the checks of every single access that AddressSanitizer makes already, and functions with
# more than 300 of them, which are kernels, call their checks: inline they take minutes to compile.
# Where all checks are calls, running the tests takes three times as long. gcc's finer choice of
# registers takes a quarter of the time, for nothing.
COARSE = $(shell $(CC) -fira-region=one -fsyntax-only -x c /dev/null 2> /dev/null && echo -fira-region=one)
SANITIZE = -g1 -Og $(COARSE) -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-sanitize=null,alignment,object-size,pointer-overflow \
	--param asan-instrumentation-with-call-threshold=300
JOBS = $(shell getconf _NPROCESSORS_ONLN)

# Which tests run as they are, under the sanitizers of memory, under that of threads. -O1: compiling
# the header costs more than running most of them, so it is compiled once for all (tests/gather.sh).
TESTS = $(patsubst tests/%.c,%,$(wildcard tests/test_*.c))
MEMORY = $(filter-out test_bench test_math test_simd,$(TESTS))
THREADED = test_base test_mat
# Examples that define macros of the header, or are C++, are compiled with it, the others without;
# test_tag.c runs the task of tagger.c.
WHOLE = cell device embed page tagger
LINKED = $(filter-out $(WHOLE),$(basename $(notdir $(wildcard examples/*.c examples/*.cpp))))
GENERATORS = make_dialog make_lm make_answer make_classify make_pair make_cloze make_signal
TOOLS = $(GENERATORS) babi_reduced

carnn: cli.c carnn.h
	$(CC) -std=c99 $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ cli.c $(LIBS)

deps:
	apt-get update
	apt-get install -y --no-install-recommends gcc g++ clang libc6-dev libstb-dev

# --- tests: every program of tests/ as it is, under the sanitizers, and what must compile ---------

# Beside a compiler the sanitizers are several times as slow: they come last.
test:
	@$(MAKE) --no-print-directory -j$(JOBS) EXAMPLE_FLAGS=-O0 LIGHT_FLAGS=-DCARNN_NO_SIMD \
		carnn test-programs
	@sh tests/run.sh $(JOBS) "sh tests/compile.sh" "sh tests/readme.sh" "sh tests/results.sh" \
		$(call run,build/,$(TESTS)) "sh tests/cli.sh" "sh tests/examples.sh" \
		"sh tests/portability.sh quick" "sh tests/babi_reduced.sh build/babi_reduced" \
		$(call run,build/asan/,$(MEMORY)) $(call run,build/tsan/,$(THREADED))

portability: build/device.inc
	sh tests/portability.sh

run = $(patsubst test_%,"$(1)tests %",$(2))

test-programs: build/asan/tests build/tests build/tsan/tests build/carnn.o \
	$(filter-out build/tagger,$(WHOLE:%=build/%)) $(LINKED:%=build/examples/%) $(TOOLS:%=build/%)

build/tests.c: tests/gather.sh Makefile $(TESTS:%=tests/%.c)
	@mkdir -p build/asan build/tsan
	sh tests/gather.sh $(TESTS) > $@

build/threaded.c: tests/gather.sh Makefile $(THREADED:%=tests/%.c) tests/test_tag.c
	@mkdir -p build/tsan
	sh tests/gather.sh test_tag $(THREADED) > $@

# A local name may be one of another file.
build/tests: build/tests.c tests/test.h carnn.h
	$(CC) -std=c99 -O1 $(STRICT) -Wno-shadow -o $@ $< $(LIBS)

build/asan/tests: build/tests.c tests/test.h carnn.h
	$(CC) -std=c99 $(SANITIZE) -o $@ $< $(LIBS)

# What threads share is not a matter of the instruction set.
build/tsan/tests: build/threaded.c tests/test.h carnn.h
	$(CC) -std=c99 -g1 -O1 -DCARNN_NO_SIMD -fsanitize=thread -o $@ $< $(LIBS)

# The header alone; tests/compile.sh takes it, too.
build/carnn.o: carnn.h
	@mkdir -p build
	printf '#define CARNN_IMPLEMENTATION\n#include "carnn.h"\n' | \
		$(CC) -std=c99 -O1 $(STRICT) -I. -x c -c -o $@ -

# For the tests most examples share that compile of the header: each must compile as it stands, and
# is then built without the implementation, but with the headers that come with it. The others are
# built without optimisation, and but for cell without SIMD: they compute little.
LIGHT = device embed page
$(LIGHT:%=build/%): STRICT += $(LIGHT_FLAGS)
COME_WITH_IT = float limits math pthread stdarg stdio stdlib string time
build/examples/%: examples/%.c build/carnn.o
	@mkdir -p build/examples
	$(CC) -std=c99 $(STRICT) -DCARNN_NO_SIMD -fsyntax-only $<
	sed '/^#define CARNN_IMPLEMENTATION$$/d' $< | $(CC) -std=c99 -O1 $(STRICT) -Iexamples \
		$(COME_WITH_IT:%=-include %.h) -o $@ -x c - -x none build/carnn.o $(LIBS)

build/%: examples/%.c carnn.h
	@mkdir -p build
	$(CC) -std=c99 -O1 $(STRICT) $(EXAMPLE_FLAGS) -o $@ $< $(LIBS)

build/%: examples/%.cpp carnn.h
	@mkdir -p build
	$(CXX) -std=c++17 -O1 $(STRICT) $(EXAMPLE_FLAGS) -o $@ $< $(LIBS)

build/cell: examples/mgu.h

# A small model, with weights of 8 bits, as numbers of C.
build/device: build/device.inc
build/device.inc: carnn data/bike.txt
	@mkdir -p build
	./carnn train --task dialog --train data/bike.txt --hidden 32 --lr 0.02 --epochs 60 --quiet \
		--out build/floats.gguf
	./carnn test build/floats.gguf --data data/bike.txt --quantise --out build/device.gguf
	od -An -v -tx1 build/device.gguf | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g' > $@

build/%: data/%.c data/generate.h
	@mkdir -p build
	$(CC) -std=c99 $(CFLAGS) $(STRICT) -o $@ $< $(LIBS)

# --- the main job -------------------------------------------------------------------------------

demo: carnn
	@mkdir -p build
	./carnn train --task dialog --train data/dialog-train.txt --valid data/dialog-dev.txt \
		--candidates data/dialog-candidates.txt --epochs 40 --out build/demo.gguf
	./carnn test build/demo.gguf --data data/dialog-test.txt
	./carnn chat build/demo.gguf --explain < data/demo-chat.txt

bench: carnn
	./carnn bench

tools: carnn $(TOOLS:%=build/%)

results: tools
	DATA='$(DATA)' QUICK='$(QUICK)' sh data/results.sh

data: $(GENERATORS:%=build/%)
	for generator in $(GENERATORS); do build/$$generator data || exit 1; done

# --- install ------------------------------------------------------------------------------------

ROOT = $(DESTDIR)$(PREFIX)
SHARE = $(ROOT)/share
# What is installed beside bin/carnn, for everybody to read.
TEXTS = include/carnn.h lib/pkgconfig/carnn.pc share/man/man1/carnn.1 \
	share/bash-completion/completions/carnn share/zsh/site-functions/_carnn \
	share/fish/vendor_completions.d/carnn.fish

install: carnn
	for file in bin/carnn $(TEXTS); do install -d "$(ROOT)/$${file%/*}" || exit 1; done
	install carnn "$(ROOT)/bin"
	install carnn.h "$(ROOT)/include"
	./carnn help --man > "$(SHARE)/man/man1/carnn.1"
	./carnn help --complete bash > "$(SHARE)/bash-completion/completions/carnn"
	./carnn help --complete zsh > "$(SHARE)/zsh/site-functions/_carnn"
	./carnn help --complete fish > "$(SHARE)/fish/vendor_completions.d/carnn.fish"
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: carnn' \
		'Description: Context-dependent additive recurrent networks' 'Version: $(VERSION)' \
		'Cflags: -I$${prefix}/include' 'Libs: $(LIBS)' > "$(ROOT)/lib/pkgconfig/carnn.pc"
	cd "$(ROOT)" && chmod 644 $(TEXTS)

uninstall:
	for file in bin/carnn $(TEXTS); do rm -f "$(ROOT)/$$file" || exit 1; done

clean:
	rm -rf build carnn

.DELETE_ON_ERROR:
.PHONY: deps test test-programs portability demo bench tools results data install uninstall clean
