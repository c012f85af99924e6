# A thin front door over CMake presets. `cmake --preset release && cmake --build --preset release` works alone.
.PHONY: all build demo test asan tsan clean

all: build

build:
	@scripts/deps.sh build
	@cmake --preset release
	@cmake --build --preset release

# The main job on a graph of sample_graphs/: every strategy, naive and planned runs, trace, HTML and CSV.
demo: build
	@scripts/demo.sh build/release/cli/tidemark

# Warnings are errors; the whole suite; ctest's closing line comes last.
test:
	@scripts/deps.sh test
	@cmake --preset test
	@cmake --build --preset test
	@ctest --preset test

asan tsan:
	@scripts/deps.sh test
	@cmake --preset $@
	@cmake --build --preset $@
	@ctest --preset $@

clean:
	rm -rf build demo-out
