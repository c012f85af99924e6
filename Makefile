# A thin front door over CMake presets. `cmake --preset release && cmake --build --preset release` works alone.
.PHONY: all build demo test asan tsan valgrind bench clean

all: build

build:
	@scripts/deps.sh build
	@cmake --preset release
	@cmake --build --preset release

# The main job on a graph of sample_graphs/: every strategy, naive and planned runs, trace, HTML and CSV.
demo: build
	@scripts/demo.sh build/release/cli/tidemark

# The unit tests under AddressSanitizer and UBSan, then the whole suite in Release with warnings as errors; ctest's
# closing line comes last.
test:
	@scripts/deps.sh test
	@cmake --preset asan
	@cmake --build --preset asan
	@ctest --preset asan-unit
	@cmake --preset test
	@cmake --build --preset test
	@ctest --preset test

# The suite under other eyes: asan and tsan everything, valgrind the unit tests (five minutes).
asan tsan valgrind:
	@scripts/deps.sh $(if $(filter valgrind,$@),valgrind,test)
	@cmake --preset $@
	@cmake --build --preset $@
	@ctest --preset $@

# Allocators of the house beside glibc, mimalloc and jemalloc, then the planner on instances, models and sizes (about
# ten minutes; bench_planner SECTION runs one part): prints, never passes or fails.
bench:
	@scripts/deps.sh bench
	@cmake --preset bench
	@cmake --build --preset bench
	@build/bench/bench/bench_allocators
	@build/bench/bench/bench_planner

clean:
	rm -rf build demo-out
