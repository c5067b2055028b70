# Short names for the usual work; CMake does the building. "make help" lists them.
# Every target first runs scripts/setup, which costs nothing once everything is there.

JOBS ?= $(shell nproc)
WERROR ?= OFF
KILLS ?= 200
# On a terminal the build shows one line that changes; in a log, errors and warnings alone.
NINJA_FLAGS := $(shell test -t 2 || echo --quiet)

.PHONY: help setup onednn configure program build demo test fresh bench lint format parity asan torture fuzz package clean

help:            ## this list
	@sed -n 's/^\([a-z]*\): .*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup:           ## install packages and build StarPU, once
	@scripts/setup

onednn: setup    ## use oneDNN 3 in build/, built once (docs/cpu.md says when it pays)
	@JOBS=$(JOBS) scripts/onednn build >/dev/null
	@cmake --preset release -DREGATTA_ONEDNN=BUILT --log-level=WARNING >/dev/null

configure: setup
	@cmake --preset release -DREGATTA_WERROR=$(WERROR) --log-level=WARNING >/dev/null

program: configure ## build/regatta alone
	@cmake --build build -j $(JOBS) --target regatta -- $(NINJA_FLAGS)

build: program   ## build/regatta, its tests and examples
	@cmake --build build -j $(JOBS) -- $(NINJA_FLAGS)

demo: program    ## train LeNet-5 on MNIST
	@scripts/demo

test: build      ## all tests
	@scripts/test

fresh:           ## the two commands from nothing, in a bare Debian made by debootstrap (root)
	@scripts/fresh

bench: program   ## Regatta beside PyTorch, images a second
	@scripts/bench

lint: build      ## formatting, clang-tidy, shellcheck, include rules
	@scripts/lint

format: setup    ## format all C++ in place
	@git ls-files -co --exclude-standard '*.cpp' '*.h' '*.cu' '*.cuh' | xargs -r clang-format -i

parity: build    ## compare numbers with PyTorch (needs python3-torch)
	@/usr/bin/python3 scripts/parity-checkpoint build/regatta
	@/usr/bin/python3 scripts/parity-ticket build/regatta
	@scripts/parity-fixtures --whole build/parity
	@scripts/parity-zoo --whole build/parity
	@REGATTA_PARITY=build/parity build/regatta_tests --gtest_filter='*Parity*'

asan: setup      ## all tests under the address and undefined-behaviour sanitizers
	@cmake --preset asan --log-level=WARNING >/dev/null
	@cmake --build build-asan -j $(JOBS)
	@cd build-asan && ctest --output-on-failure -j 2

torture: build   ## kill training runs and workers of a search KILLS times (200) each, and disturb ranks
	@REGATTA_TORTURE=$(KILLS) STARPU_WORKERS_NOBIND=1 STARPU_SILENT=1 \
	  STARPU_HOME=$(CURDIR)/build/starpu-home build/regatta_tests --gtest_filter='Torture.*:TicketTorture.*:Cluster.ARunGoesOnWithoutANodeThatDied'
	@scripts/torture-ranks

package: build   ## build/packages: a .deb for Debian 12, and a .tar.gz that needs only glibc
	@cpack --config build/CPackConfig.cmake

fuzz: setup      ## feed every reader of files nonsense, FUZZ_SECONDS (60) each
	@scripts/fuzz

clean:           ## remove everything that was built here
	@rm -rf build build-*
