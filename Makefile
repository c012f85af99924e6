# A thin front door over CMake presets. `cmake --preset release && cmake --build --preset release` works alone.
.PHONY: all build install deb deb-test docs demo pictures test conformance asan tsan valgrind bench peers gpu-test fuzz soak clean

all: build

build:
	@scripts/deps.sh build
	@cmake --preset release
	@cmake --build --preset release

# Into PREFIX (/usr/local), below DESTDIR where that is set: program, libraries, headers, man pages (docs/embedding.md).
PREFIX ?= /usr/local
install: build
	@cmake --install build/release --prefix "$(PREFIX)" --strip

# The public headers as pages, build/docs/html/index.html; wants doxygen.
docs:
	@mkdir -p build/docs
	@doxygen docs/Doxyfile

# Packages for this Debian, in build/deb: tidemark, libtidemark0, libtidemark-dev, and debug symbols.
deb:
	@scripts/deps.sh deb
	@cmake --preset deb
	@cmake --build --preset deb
	@python3 scripts/sbom.py "$$(sed -n 's/^#define TIDE_VERSION "\(.*\)"/\1/p' include/tidemark/version.h)" \
	    build/deb/cli/tidemark build/deb/lib/libtidemark*.so > build/deb/tidemark.spdx.json.new
	@mv build/deb/tidemark.spdx.json.new build/deb/tidemark.spdx.json
	@rm -f build/deb/*.deb build/deb/*.ddeb
	@cd build/deb && cpack -G DEB
	@python3 tests/house/package.py . build/deb

# The packages in an empty Debian 12 (debootstrap, as root): installed, used, removed without a trace.
deb-test: deb
	@scripts/deb_root.sh build/deb

# The main job on a network that is built in, into a fresh folder (tidemark demo).
demo: build
	@build/release/cli/tidemark demo

# The pictures of README.md (scripts/pictures.sh).
pictures: build
	@scripts/pictures.sh build/release/cli/tidemark

# The unit tests under AddressSanitizer and UBSan; then, in Release with warnings as errors, those of operators and
# runtime once more, the program as its users run it, and the house. ctest's closing line comes last.
# One test more at a time than there are processors; of the program two more, for its tests wait much.
# The memory that was freed last, 2 MB, stays poisoned (16 MB in make asan and make soak), and is not given back page by page.
test:
	@scripts/deps.sh test
	@cmake --preset asan
	@cmake --build --preset asan --target unit
	@ctest --preset asan-unit -j "$$(($$(nproc) + 1))"
	@cmake --preset test
	@cmake --build --preset test
	@ctest --preset test -j "$$(($$(nproc) + 2))"

# ONNX's own operator tests through the real runtime (docs/conformance.md), each refused case with the reason.
conformance:
	@scripts/deps.sh test
	@cmake --preset test
	@cmake --build --preset test --target tidemark
	@TIDE_VERBOSE=1 TIDEMARK=build/test/cli/tidemark python3 tests/cli/conformance.py

# The suite under other eyes: asan and tsan everything, valgrind the unit tests (five minutes).
asan tsan valgrind:
	@scripts/deps.sh $(if $(filter valgrind,$@),valgrind,test)
	@cmake --preset $@
	@cmake --build --preset $@
	@ctest --preset $@

# Allocators of the house beside glibc, mimalloc and jemalloc, the planner on instances, models and sizes (about ten
# minutes), the recorder beside heaptrack and bare SQLite (about ten more; bench_planner SECTION and bench_recorder
# SECTION run one part): prints, never passes or fails.
bench:
	@scripts/deps.sh bench
	@cmake --preset bench
	@cmake --build --preset bench
	@build/bench/bench/bench_allocators
	@build/bench/bench/bench_planner
	@build/bench/bench/bench_recorder
	@python3 bench/bench_record.py build/bench/cli/tidemark build/bench/bench/bench_record_loop
	@build/bench/bench/bench_tui
	@python3 bench/bench_reports.py build/bench/cli/tidemark
	@python3 bench/bench_import.py build/bench/cli/tidemark 256
	@python3 bench/bench_models.py build/bench/cli/tidemark

# Programs of others under tidemark record, which are installed for it (PyTorch, ONNX Runtime, jemalloc, Open MPI, chromium;
# half a gigabyte): names of modules, and totals held against a library that counts by itself.
peers:
	@scripts/deps.sh peers
	@cmake --preset test
	@cmake --build --preset test
	@ctest --preset test -R 'cli_torch_scopes$$'
	@TIDEMARK=build/test/cli/tidemark TIDE_PRELOAD_DIR=build/test/tests/preload TIDE_SOURCE_DIR="$(CURDIR)" \
	    python3 tests/peers/programs.py

# What only a machine with an NVIDIA GPU can tell, written into docs/gpu-results.md: the driver's and CUPTI's answers that
# the simulation in `make test` gives, devices and allocators on the device, PyTorch recorded, what recording costs.
gpu-test:
	@scripts/deps.sh test
	@cmake --preset gpu
	@cmake --build --preset gpu
	@python3 tests/cuda/gpu_test.py build/gpu -o docs/gpu-results.md

# Readers of foreign files under libFuzzer and the sanitizers, each RUNS times: make fuzz RUNS=100000 READERS="onnx torch".
RUNS ?= 10000000
fuzz:
	@scripts/deps.sh fuzz
	@cmake --preset test
	@cmake --build --preset test --target tidemark
	@cmake --preset fuzz
	@cmake --build --preset fuzz
	@scripts/fuzz.sh $(RUNS) $(READERS)

# What takes too long for the suite (hours): 200 kills of recording programs in each way there is, of programs, collectors
# and both while a trace is closed, a thousand of collectors alone, then a day's billion events through a trace of bounded
# size, the unit tests with their long loops whole (TIDE_SOAK), a hundred thousand random keys, clicks and sizes in the
# terminal view, a hundred kills of a recorded CUDA program, files with hardly anything in them through every command,
# memory that runs out at 150 places of every
# command, the project's own gate, runs and all, on six processors that qemu plays, and a thousand warm runs of every model
# under a malloc that counts. Fails when an event was lost, a
# cell is stale, a command ends in anything but words, or an unchanged tree does not pass.
soak:
	@scripts/deps.sh bench
	@cmake --preset bench
	@cmake --build --preset bench
	@build/bench/bench/bench_kill_recorder --victim build/bench/bench/bench_kill_victim --kills 200 \
	    thread process both recovery closing expanding openers watched starting restarting \
	    stopped forked forking dropping attached
	@build/bench/bench/bench_kill_recorder --victim build/bench/bench/bench_kill_victim --kills 600 collected
	@build/bench/bench/bench_kill_recorder --victim build/bench/bench/bench_kill_victim --kills 500 collector detached
	@build/bench/bench/bench_recorder --day-events 1000000000 day
	@cmake --preset asan -DTIDE_TEST_TIMEOUT=7200
	@cmake --build --preset asan
	@TIDE_SOAK=1 ctest --preset asan-soak -j "$$(nproc)"
	@TIDEMARK=build/asan/cli/tidemark TIDE_SCENARIO_TRACE=build/asan/tests/cli/scenario_trace TIDE_DEGENERATE=all \
	    python3 tests/cli/degenerate.py
	@TIDE_FUZZ_EVENTS=25000 build/asan/tests/tui/test_tui tui_fuzz
	@cmake --preset test
	@cmake --build --preset test --target tidemark tide_oom_preload
	@TIDE_OOM_VALUES=150 TIDEMARK=build/test/cli/tidemark TIDE_OOM_PRELOAD=$(CURDIR)/build/test/tests/cli/tide_oom_preload.so \
	    python3 tests/cli/oom.py
	@TIDE_SOAK=1 TIDEMARK=build/bench/cli/tidemark python3 tests/cli/gate_machines.py OtherProcessors
	@cmake --build --preset test
	@TIDE_SOAK=1 ctest --preset test

clean:
	rm -rf build
