# Builds, tests and shows psd. `make help` lists the targets. Nothing here needs a network once the packages are there.

# ---- packages that a machine needs (Debian 12 names; this list is the only one) ----
DEPS      := gcc g++ libc6-dev libsimgrid-dev libyaml-dev libprotobuf-c-dev protobuf-c-compiler libdnnl-dev \
	libturbojpeg0-dev libssl-dev libyajl-dev zlib1g-dev libsqlite3-dev libcriterion-dev gnuplot-nox
DEPS_FUZZ := clang libclang-rt-14-dev
DEPS_STYLE := clang-format shellcheck
DEPS_DEB   := dpkg-dev
# Packages that the benchmarks compare with; without them the benchmarks name the skipped rows.
DEPS_BENCH := python3-torch libopenblas0-pthread openmpi-bin libopenmpi-dev libgloo-dev

# ---- settings of a user ----
CC         ?= cc
CXX        ?= c++
FUZZ_CC    ?= clang
CFLAGS     ?= $(if $(SANITIZE),-O1 -g1,-O2 -g)
CXXFLAGS   ?= $(if $(SANITIZE),-O1 -g1,-O2 -g)
PREFIX     ?= /usr/local
DESTDIR    ?=
SANITIZE   ?=
CUDA       ?=
STATIC     ?=
DEV        ?=
V          ?=
# Seconds each fuzz target runs.
FUZZ_SECONDS ?= 60
# Scenarios with extreme values, and the first of their seeds.
EXTREMES ?= 500
SEED     ?= 1
# Where SimGrid is, if not where the compiler looks by itself.
SIMGRID ?=
# With CUDA=1, for cuda as a training device: its compiler, and for which architectures to compile, as in "75 90"; those
# from 75 to 120 that the compiler has if not said.
NVCC       ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) nvcc)
CUDA_ARCHS ?=

# Scenarios whose CSV is kept in tests/golden/ and compared byte by byte; each takes less than a second.
GOLDEN := \
	quickstart \
	poseidon-2015/alexnet \
	poseidon-atc17/vgg19-22k-10gbe \
	poseidon-atc17/vgg19-22k-40gbe \
	gradientflow/resnet50-cluster-p \
	eight-gpus-a-node \
	gpt2

DEMO_SCENARIO := scenarios/poseidon-atc17/vgg19-22k-40gbe.yaml

# ---- derived ----
comma := ,
empty :=
space := $(empty) $(empty)
# A compiler that a user names is taken as it is. The default ones run below ccache where it is installed.
CCACHE := $(if $(shell command -v ccache),ccache$(space))
ifeq ($(origin CC),default)
CC := $(CCACHE)gcc
endif
ifeq ($(origin CXX),default)
CXX := $(CCACHE)g++
endif
Q     := $(if $(V),,@)

# One folder per set of sanitisers, with CUDA and for STATIC=1, so that objects never mix.
SANITIZED := $(subst $(comma),-,$(subst $(space),,$(SANITIZE)))
BUILD     := build$(if $(CUDA),/cuda)$(if $(STATIC),/static)$(if $(SANITIZED),/$(SANITIZED))

# A sanitiser sees conversions that are none: its warnings are no errors.
WARNINGS     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(DEV),$(if $(SANITIZE),,-Werror))
C_WARNINGS   := $(WARNINGS) -Wstrict-prototypes -Wmissing-prototypes -Wvla
SANITIZERS   := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CPPFLAGS := -I. -I$(BUILD)/generated $(if $(SIMGRID),-isystem $(SIMGRID)/include) $(if $(CUDA),-DPSD_HAS_CUDA) \
	$(if $(STATIC),-DPSD_STATIC) $(CPPFLAGS)
# Nobody asks for errno after a root, and without it a vector has its roots at once.
ALL_CFLAGS    = -std=c11 -fno-math-errno $(C_WARNINGS) -include engine/base/banned.h $(CFLAGS) $(SANITIZERS) -MMD -MP
ALL_CXXFLAGS  = -std=c++17 $(WARNINGS) $(CXXFLAGS) $(SANITIZERS) -MMD -MP
ALL_LDFLAGS  := $(LDFLAGS) $(SANITIZERS) $(if $(SIMGRID),-L$(SIMGRID)/lib -Wl$(comma)-rpath$(comma)$(SIMGRID)/lib)
ENGINE_LIBS  := -lyaml -lprotobuf-c -lm
IMPORT_LIBS  := -lyajl -lz -lsqlite3
SIM_LIBS     := -lsimgrid $(IMPORT_LIBS) $(ENGINE_LIBS)
# STATIC=1: only the C library is needed to start; what real/base/libraries.c lists is found when it is used.
STATIC_LIBS  := -Wl,-Bstatic -lturbojpeg -lyaml -lprotobuf-c $(if $(CUDA),-lcudart_static -lstdc++) \
	-Wl,-Bdynamic -static-libgcc -lm -ldl -lrt -lpthread
# OpenSSL, where real/net/secret.h says that it is here: asked when something is linked, once the packages are there.
TLS_LIBS      = $(if $(findstring here,$(shell printf '%b' \
	'\043include "real/net/secret.h"\n\043ifdef PSD_HAS_TLS\nhere\n\043endif\n' | \
	$(CC) $(ALL_CPPFLAGS) -E -P -x c - | tail -n 1)),-lssl -lcrypto)
REAL_LIBS     = $(if $(STATIC),,-ldnnl -lgomp -lturbojpeg $(TLS_LIBS) $(ENGINE_LIBS) -lpthread)
ifneq ($(CUDA),)
CUDA_FOLDER  := $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v $(NVCC))))
CUDA_HAS     := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
CUDA_FROM_TO := $(shell for arch in $(CUDA_HAS); do [ $$arch -lt 75 ] || [ $$arch -gt 120 ] || echo $$arch; done | \
	sort -n)
CUDA_FOR     := $(or $(CUDA_ARCHS),$(CUDA_FROM_TO),$(error no $(NVCC) that compiles for an architecture from 75 to 120))
CUDA_NEWEST  := $(lastword $(CUDA_FOR))
# Machine code for each, and for later ones what their driver compiles. Updates must round as the cpu's do: no fused
# multiply-add. Kernels that spill registers are refused.
NVCC_FLAGS   := -std=c++17 -O2 --fmad=false --threads 2 -Werror all-warnings \
	$(foreach arch,$(CUDA_FOR),-gencode arch=compute_$(arch),code=sm_$(arch)) \
	-gencode arch=compute_$(CUDA_NEWEST),code=compute_$(CUDA_NEWEST) \
	-Xptxas -warn-spills,-warn-lmem-usage -Xcompiler -Wall,-Wextra,-Wshadow,-Wconversion,-Werror
REAL_LIBS    += $(addprefix -L,$(wildcard $(CUDA_FOLDER)/lib64 $(CUDA_FOLDER)/lib)) \
	$(if $(STATIC),,$(addprefix -Wl$(comma)-rpath$(comma),$(wildcard $(CUDA_FOLDER)/lib64)) \
	-lcudart -lcublas -lcublasLt -lcudnn -lstdc++)
endif
REAL_LIBS    += $(if $(STATIC),$(STATIC_LIBS))
# With a hash of the changes where files differ from the commit: hosts of a run compare it.
COMMIT       := $(if $(wildcard .git),$(shell git describe --always --dirty --exclude='*' 2>/dev/null))
COMMIT       := $(COMMIT)$(if $(findstring -dirty,$(COMMIT)),-$(shell git diff HEAD | sha1sum | cut -c1-7))
VERSION      := $(shell cat VERSION)$(if $(COMMIT), (commit $(COMMIT)))

# Every file of those kinds below a folder: sources(FOLDER,KIND...), in order of name, so that links repeat exactly.
sources = $(sort $(shell find $(1) -type f \( -false $(foreach kind,$(2),-o -name '*.$(kind)') \)))
objects = $(addprefix $(BUILD)/,$(addsuffix .o,$(basename $(1))))

ENGINE_SOURCES := $(call sources,engine,c)
ENGINE_OBJECTS := $(call objects,$(ENGINE_SOURCES) generated/engine/model/onnx/onnx.pb-c.c)
SIM_OBJECTS    := $(call objects,$(call sources,sim,c cpp))
SIM_MAIN       := $(BUILD)/sim/main.o
SIM_PARTS      := $(filter-out $(SIM_MAIN),$(SIM_OBJECTS))
PLOT_OBJECTS   := $(call objects,$(call sources,plots,c))
PLOT_MAIN      := $(BUILD)/plots/main.o
PLOT_PARTS     := $(filter-out $(PLOT_MAIN),$(PLOT_OBJECTS))
# Readers of compressed and of profilers' traces.
IMPORT_PARTS   := $(filter $(BUILD)/sim/import/%,$(SIM_OBJECTS))
TEST_OBJECTS   := $(call objects,tests/runner.c $(wildcard tests/test_*.c) \
	$(call sources,tests/engine tests/sim tests/plots,c))
BENCH_OBJECTS  := $(call objects,$(wildcard tests/bench/bench_*.c))
BENCHES        := $(patsubst $(BUILD)/tests/bench/bench_%.o,%,$(BENCH_OBJECTS))
GPU_FOLDERS    := real/device/gpu real/device/cuda
REAL_SOURCES   := $(filter-out $(GPU_FOLDERS:%=%/%),$(call sources,real,c))
REAL_OBJECTS   := $(call objects,$(REAL_SOURCES) $(if $(CUDA),$(call sources,$(GPU_FOLDERS),c cu)))
# Open MPI's header, if it is here: psd-run loads the library itself only for systems that name it.
MPI_HEADERS    := $(firstword $(dir $(wildcard $(shell mpicc --showme:incdirs 2>/dev/null | sed 's|[^ ]*|&/mpi.h|g'))))
REAL_MAIN      := $(BUILD)/real/main.o
REAL_PARTS     := $(filter-out $(REAL_MAIN),$(REAL_OBJECTS))
CPU_PARTS      := $(filter-out $(GPU_FOLDERS:%=$(BUILD)/%/%),$(REAL_PARTS))
# Whole runs and cases that wait for time limits have a binary of their own, and the same helpers.
RUN_SUITES     := $(wildcard tests/real/test_run*.c) $(addprefix tests/real/,net/test_joining.c \
	net/test_joining_again.c session/test_stall.c session/test_replay.c)
REAL_SUITES    := $(filter-out $(RUN_SUITES),$(sort $(shell find tests/real -name 'test_*.c')))
REAL_HELPERS   := $(call objects,$(filter-out $(RUN_SUITES) $(REAL_SUITES),$(call sources,tests/real,c)) tests/runner.c)
REAL_TESTS     := $(REAL_HELPERS) $(call objects,$(RUN_SUITES) $(REAL_SUITES))
# The suites with threads, but for training runs of more than half a minute, long computation on one thread, and waits
# that are left out: each of these is the data race that it must be, which would be counted. any(PATTERN...): as the
# runner's filter writes it.
any             = @($(subst $(space),|,$(strip $(1))))
TSAN_SUITES    := lane feed data packed mesh joining joining_again secret connections ring_buffer transport shared \
	cpu_run cluster_kind load worker session session_contract session_library apart checkpoint replay \
	synthetic_method process_group emulation local emulation_end sparse run_secret stand_in* \
	cuda_$(call any,ahead calibrate checkpoint contract device engines fetch fused graphs kernels net packing \
	parameters seeds several shared staging training wire)
TSAN_CASES     := $(call any,$(call any,$(TSAN_SUITES))/!(every_call_that*|several_launches*|a_velocity*) \
	cuda_nccl/a_worker* run_$(call any,accumulate adaptive async clip encoded groups late local low_rank managed \
	packed partial sharded sparse stale)/!(accuracy*|every_other*|a_prediction*) \
	run/!(every_method_$(call any,learns trains)*))
TSAN_BINARIES   = $(filter-out psd-tests psd-plan-tests,$(SUITES))
# psd-run's CUDA device on a stand-in for CUDA's libraries, which needs their headers and no GPU (tests/README.md).
CUDA_PLACES    := $(addsuffix /include,$(CUDA_PATH) $(CUDA_HOME) /usr/local/cuda /opt/cuda /usr/local /usr)
cuda_folder     = $(firstword $(foreach folder,$(CUDA_PLACES),$(if $(wildcard $(folder)/$(1)),$(folder))))
CUDA_HEADERS   := cuda_runtime_api.h cublas_v2.h cublasLt.h cudnn.h
CUDA_LACKING   := $(strip $(foreach header,$(CUDA_HEADERS),$(if $(call cuda_folder,$(header)),,$(header))))
CUDA_FOLDERS   := $(sort $(foreach header,$(CUDA_HEADERS),$(call cuda_folder,$(header))))
STAND_IN_FLAGS := -DPSD_CUDA_STAND_IN \
	$(patsubst %,-isystem %,$(filter-out /usr/local/include /usr/include,$(CUDA_FOLDERS)))
STAND_IN       := $(BUILD)/stand-in
CUDA_SOURCES   := $(call sources,$(wildcard $(GPU_FOLDERS)) tests/cuda,c cu)
CUDA_TESTS     := $(addprefix $(STAND_IN)/,$(addsuffix .o,$(basename $(CUDA_SOURCES)))) \
	$(call objects,tests/runner.c tests/real/net.c tests/real/session_contract.c tests/real/training.c \
	tests/real/going_on.c tests/real/device/reference.c)
GPU_CASES      := cuda_net test_cuda_layers test_cuda_low_rank test_cuda_net test_cuda_packing test_cuda_parameters \
	test_cuda_wire
GPU_TESTS      := $(call objects,tests/runner.c tests/without_criterion.c tests/real/net.c \
	tests/real/device/reference.c $(GPU_CASES:%=tests/cuda/%.c))
CUDA_SUITES    := $(if $(CUDA_LACKING),,psd-cuda-tests)
STAND_IN_PARTS := $(filter $(STAND_IN)/real/% $(STAND_IN)/tests/cuda/stand_in_%,$(CUDA_TESTS))
# The device's plans by cuDNN itself, which needs no GPU for them, in place of what stands in for it.
CUDNN          := $(firstword $(wildcard $(addsuffix /libcudnn.so,$(CUDA_PLACES:/include=/lib64) \
	$(CUDA_PLACES:/include=/lib) /usr/lib/*-linux-gnu)))
PLAN_TESTS     := $(STAND_IN)/tests/plans/test_plans.o $(call objects,tests/runner.c) $(filter-out \
	$(addprefix $(STAND_IN)/tests/cuda/stand_in_,backend.o conv.o dnn.o norm.o),$(STAND_IN_PARTS))
PLAN_SUITES    := $(if $(CUDA_LACKING)$(SANITIZE),,$(CUDNN:%=psd-plan-tests))
REAL_BENCHES   := $(patsubst tests/bench/real/bench_%.c,%,$(wildcard tests/bench/real/bench_*.c))
REAL_BENCH_OBJECTS := $(REAL_BENCHES:%=$(BUILD)/tests/bench/real/bench_%.o)
# Benchmarks that are scripts, and the programs that they run: those of others only where their libraries are.
SCRIPT_BENCHES := $(patsubst tests/bench/real/bench_%.sh,%,$(wildcard tests/bench/real/bench_*.sh))
BENCH_TOOLS    := in-cluster exchange
BENCH_TOOL_OBJECTS := $(foreach tool,$(BENCH_TOOLS),$(BUILD)/tests/bench/real/$(subst -,_,$(tool)).o)
PEER_TOOLS     := $(if $(wildcard /usr/include/gloo/config.h),allreduce-gloo) \
	$(if $(shell command -v mpicc),allreduce-mpi)
PROGRAMS       := $(BUILD)/psd-sim $(BUILD)/psd-run $(BUILD)/psd-plot
# Functions of which tests/test_short_of_memory.c makes calls fail.
SHORT_OF       := malloc calloc realloc strdup psd_arena_take psd_arena_copy psd_inputs_note
SUITES         := psd-tests psd-real-tests psd-run-tests $(CUDA_SUITES) $(PLAN_SUITES)
FUZZERS        := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REAL_FUZZERS   := $(patsubst tests/fuzz/real/fuzz_%.c,%,$(wildcard tests/fuzz/real/fuzz_*.c))
CORPUS_OBJECTS := $(call objects,$(wildcard tests/fuzz/*.c tests/fuzz/real/*.c))
HEADERS        := $(filter-out engine/base/banned.h,$(call sources,engine sim real plots,h hpp))
SCRIPTS        := .ci/run $(wildcard tests/*.sh tests/bench/real/*.sh)
ENGINE         := $(BUILD)/libpsd-engine.a

.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all
.PHONY: help psd-run deps deps-fuzz deps-style deps-bench all demo test check check-deep suite san tsan tsan-suite \
	fuzz classes racks bench bench-tools compare accuracy published validate stacks break-even golden docs \
	gpu-check gpu-check-programs check-static check-static-of check-layers check-headers check-scripts check-words \
	check-budget check-references check-docs check-corpora selfcheck extremes format-check share install \
	uninstall deb check-package clean FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile
	@echo "  variables: SLICE=3 (of check-deep)  FUZZ_SECONDS=60"
	@echo "             DEV=1 (warnings are errors)  V=1 (show commands)  SANITIZE=address,undefined"
	@echo "             PREFIX=/usr/local  DESTDIR=  SIMGRID=/opt/simgrid  CC CXX CFLAGS CXXFLAGS LDFLAGS"
	@echo "             CUDA=1 (with NVIDIA GPUs, in build/cuda)  NVCC  CUDA_ARCHS='75 90'"
	@echo "             STATIC=1 (starts with the C library alone, in build/static or build/cuda/static)"

all: $(PROGRAMS) ## build the programs (the default)

psd-run: $(BUILD)/psd-run ## build psd-run alone, as with CUDA=1 STATIC=1 for a machine that has little else

# ---- packages ----
# need(PACKAGES): nothing to do in 20 ms when all are there; otherwise root installs them and anybody else is told how.
define need
	@command -v dpkg-query >/dev/null || { echo "  DEPS     no dpkg here, not checking for: $(1)"; exit 0; }; \
	have=" $$(dpkg-query -W -f '$${db:Status-Status}:$${Package} ' $(1) 2>/dev/null) "; missing=; \
	for package in $(1); do \
		case $$have in *" installed:$$package "*) ;; *) missing="$$missing $$package" ;; esac; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" -ne 0 ]; then \
		echo "missing packages, run: sudo apt-get update &&" \
			"sudo apt-get install -y --no-install-recommends$$missing" >&2; \
		exit 1; \
	fi; \
	log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	echo "  DEPS     apt-get update"; \
	apt-get update -qq >"$$log" 2>&1 || { cat "$$log" >&2; exit 1; }; \
	echo "  DEPS     apt-get install$$missing"; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >"$$log" 2>&1 || \
		{ cat "$$log" >&2; exit 1; }
endef

deps: ## install the packages that building, testing and plotting need
	$(call need,$(DEPS))

deps-fuzz: ## install the packages that only fuzzing needs
	$(call need,$(DEPS_FUZZ))

deps-style: ## install what the checks of style need
	$(call need,$(DEPS_STYLE))

deps-bench: ## install what the benchmarks compare with (PyTorch, Open MPI, Gloo; 400 MB)
	$(call need,$(DEPS_BENCH))

# These targets see to the packages themselves, before anything is compiled; plain `make` leaves the machine as it is.
WITH_DEPS := $(if $(filter demo suite tsan-suite bench compare golden docs check-references check-docs check-corpora \
	selfcheck extremes check-static check-layers check-headers,$(MAKECMDGOALS)),deps)

# ---- building ----
$(ENGINE_OBJECTS) $(SIM_OBJECTS) $(PLOT_OBJECTS) $(TEST_OBJECTS) $(BENCH_OBJECTS): | $(WITH_DEPS)
$(REAL_OBJECTS) $(REAL_TESTS) $(REAL_BENCH_OBJECTS) $(BENCH_TOOL_OBJECTS) $(CUDA_TESTS) $(PLAN_TESTS) $(GPU_TESTS): \
	| $(WITH_DEPS)

# Tests are compiled without optimisation, unless a user sets CFLAGS. The code under test is optimised, and so are the
# parts of tests that compute much.
CODE_CFLAGS := $(CFLAGS)
TEST_CFLAGS := $(if $(filter file,$(origin CFLAGS)),-O0 -g1,$(CFLAGS))
$(BUILD)/tests/%.o $(STAND_IN)/tests/%.o: CFLAGS := $(TEST_CFLAGS)
$(STAND_IN)/tests/cuda/stand_in_%.o $(BUILD)/tests/real/device/%.o $(BUILD)/tests/bench/%.o: CFLAGS := $(CODE_CFLAGS)
# Where tests find the header of Criterion.
$(BUILD)/tests/%.o $(STAND_IN)/tests/%.o: ALL_CPPFLAGS += -Itests

# Rewritten only when they change: objects of other flags, such as DEV=1, are compiled again.
FLAGS := $(subst ',,$(CC) $(CXX) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_CXXFLAGS) $(TEST_CFLAGS) $(STAND_IN_FLAGS))
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@

$(BUILD)/%.o: %.c Makefile $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC       $<"
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.cpp Makefile $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX      $<"
	$(Q)$(CXX) $(ALL_CPPFLAGS) $(ALL_CXXFLAGS) -c -o $@ $<

$(STAND_IN)/%.o: %.c Makefile $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC       $< (stand-in)"
	$(Q)$(CC) $(ALL_CPPFLAGS) $(STAND_IN_FLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(STAND_IN)/%.o: %.cu Makefile $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX      $< (stand-in)"
	$(Q)$(CXX) $(ALL_CPPFLAGS) $(STAND_IN_FLAGS) $(ALL_CXXFLAGS) -c -o $@ -x c++ $<

# ONNX's messages, by the compiler of protocol buffers; its code is not ours to mend.
ONNX_MESSAGES := $(BUILD)/generated/engine/model/onnx/onnx.pb-c

$(ONNX_MESSAGES).c: engine/model/onnx/onnx.proto Makefile | $(WITH_DEPS)
	@mkdir -p $(@D)
	@echo "  PROTOC   $<"
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(@D) $<

$(ONNX_MESSAGES).h: $(ONNX_MESSAGES).c ;

$(ONNX_MESSAGES).o: $(ONNX_MESSAGES).c
	@echo "  CC       $<"
	$(Q)$(CC) $(ALL_CPPFLAGS) -std=c11 $(CFLAGS) $(SANITIZERS) -MMD -MP -c -o $@ $<

$(ENGINE_OBJECTS) $(TEST_OBJECTS) $(REAL_TESTS) $(CORPUS_OBJECTS): | $(ONNX_MESSAGES).h

# Rewritten only when they change: programs of other architectures would not start.
$(BUILD)/cuda-archs: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_FOR)' | cmp -s - $@ || echo '$(CUDA_FOR)' >$@

$(BUILD)/%.o: %.cu Makefile $(BUILD)/cuda-archs
	@mkdir -p $(@D)
	@echo "  NVCC     $<"
	$(Q)$(NVCC) $(ALL_CPPFLAGS) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# Rewritten only when it changes, so that a new commit recompiles one file.
$(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' >$@

ifneq ($(MPI_HEADERS),)
$(BUILD)/real/library/mpi.o: ALL_CPPFLAGS += -DPSD_HAS_MPI -isystem $(MPI_HEADERS)
endif

$(SIM_MAIN) $(REAL_MAIN) $(PLOT_MAIN): $(BUILD)/version
$(SIM_MAIN) $(REAL_MAIN) $(PLOT_MAIN): ALL_CPPFLAGS += -DPSD_VERSION='"$(VERSION)"'

$(ENGINE): $(ENGINE_OBJECTS)
	@rm -f $@
	@echo "  AR       $@"
	$(Q)$(AR) rcs $@ $^

$(BUILD)/psd-sim: $(SIM_OBJECTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(SIM_LIBS)

$(BUILD)/psd-plot: $(PLOT_OBJECTS) $(IMPORT_PARTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(IMPORT_LIBS) $(ENGINE_LIBS)

# Suites run psd-sim's main() without loading its libraries anew.
$(BUILD)/tests/sim-main.o: $(SIM_MAIN)
	@mkdir -p $(@D)
	$(Q)objcopy --redefine-sym main=psd_sim_main $< $@

$(BUILD)/psd-tests: $(TEST_OBJECTS) $(BUILD)/tests/sim-main.o $(SIM_PARTS) $(PLOT_PARTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) $(SHORT_OF:%=-Wl,--wrap=%) -o $@ $^ -lcriterion $(SIM_LIBS)

$(BUILD)/psd-run: $(REAL_OBJECTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(REAL_LIBS)

$(BUILD)/psd-real-tests: $(call objects,$(REAL_SUITES))
$(BUILD)/psd-run-tests: $(call objects,$(RUN_SUITES))
$(BUILD)/psd-real-tests $(BUILD)/psd-run-tests: $(REAL_HELPERS) $(REAL_PARTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ENGINE) -lcriterion $(REAL_LIBS)

$(BUILD)/psd-cuda-tests: $(CUDA_TESTS) $(CPU_PARTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -rdynamic -o $@ $^ -lcriterion $(REAL_LIBS)

$(BUILD)/psd-plan-tests: $(PLAN_TESTS) $(CPU_PARTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ -lcriterion $(REAL_LIBS) $(CUDNN) -Wl,-rpath,$(dir $(CUDNN))

# Cases of tests/cuda/ that a GPU can run; without Criterion, which the GPU's machine need not have.
$(BUILD)/psd-gpu-tests: $(GPU_TESTS) $(REAL_PARTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(REAL_LIBS)

# psd-run and these cases on the stand-in: to try tests/gpu-check.sh.
$(STAND_IN)/real/device/device.o: ALL_CPPFLAGS += -DPSD_HAS_CUDA
$(STAND_IN)/psd-run: $(STAND_IN_PARTS) $(STAND_IN)/real/device/device.o \
		$(REAL_MAIN) $(filter-out $(BUILD)/real/device/device.o,$(CPU_PARTS)) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -rdynamic -o $@ $^ $(REAL_LIBS)

$(STAND_IN)/psd-gpu-tests: $(STAND_IN_PARTS) \
		$(GPU_CASES:%=$(STAND_IN)/tests/cuda/%.o) \
		$(filter-out $(BUILD)/tests/cuda/%,$(GPU_TESTS)) \
		$(CPU_PARTS) $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(REAL_LIBS)

$(REAL_BENCHES:%=$(BUILD)/bench/%): $(BUILD)/bench/%: $(BUILD)/tests/bench/real/bench_%.o $(REAL_PARTS) $(ENGINE)
	@mkdir -p $(@D)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(REAL_LIBS)

$(BENCH_TOOLS:%=$(BUILD)/bench/%): $(BUILD)/bench/%: $(REAL_PARTS) $(ENGINE)
	@mkdir -p $(@D)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(BUILD)/tests/bench/real/$(subst -,_,$*).o $(REAL_PARTS) $(ENGINE) $(REAL_LIBS)

$(foreach tool,$(BENCH_TOOLS),$(eval $(BUILD)/bench/$(tool): $(BUILD)/tests/bench/real/$(subst -,_,$(tool)).o))

$(BUILD)/bench/allreduce-gloo: tests/bench/real/allreduce_gloo.cpp Makefile
	@mkdir -p $(@D)
	@echo "  CXX      $<"
	$(Q)$(CXX) $(ALL_CPPFLAGS) -std=c++17 $(CXXFLAGS) -o $@ $< -lgloo -lpthread

$(BUILD)/bench/allreduce-mpi: tests/bench/real/allreduce_mpi.c Makefile
	@mkdir -p $(@D)
	@echo "  CC       $<"
	$(Q)mpicc $(ALL_CPPFLAGS) -std=c11 $(CFLAGS) -o $@ $<

$(BUILD)/check/libraries: $(BUILD)/tests/libraries.o $(BUILD)/real/base/libraries.o $(ENGINE)
	@mkdir -p $(@D)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(REAL_LIBS)

$(BUILD)/psd-selfcheck: $(BUILD)/tests/selfcheck.o $(BUILD)/tests/runner.o
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcriterion

$(BENCHES:%=$(BUILD)/bench/%): $(BUILD)/bench/%: $(BUILD)/tests/bench/bench_%.o $(SIM_PARTS) $(ENGINE)
	@mkdir -p $(@D)
	@echo "  LINK     $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $^ $(SIM_LIBS)

$(BUILD)/tests/selfcheck.o $(BUILD)/tests/extremes.o $(CORPUS_OBJECTS): | $(WITH_DEPS)

# ---- showing and testing ----
# Of two CSVs of results, rows of the same system and nodes side by side. The title's commas stand between quotes.
BESIDE := { gsub(/"[^"]*"/, ""); split($$0, field, ","); at = field[2] SUBSEP field[4] } \
	FNR == 1 { file++; next } file == 1 { predicted[at] = field[7]; next } \
	!has_head++ { printf "%-16s %5s %12s %11s\n", "system", "nodes", "predicted s", "executed s" } \
	{ printf "%-16s %5d %12.3f %11.3f\n", field[2], field[4], predicted[at], field[7] } \
	END { print "(predicted for the table'\''s cpu; make compare measures this machine first)" }

demo: $(PROGRAMS) deps ## predict VGG19-22K beside the published values, train a small network for real, plot both
	@mkdir -p build/demo
	@echo
	@$(BUILD)/psd-sim $(DEMO_SCENARIO)
	@$(BUILD)/psd-sim --csv $(DEMO_SCENARIO) >build/demo/speedup.csv
	@$(BUILD)/psd-plot speedup build/demo/speedup.csv -o build/demo/speedup.svg
	@$(BUILD)/psd-plot speedup build/demo/speedup.csv -o build/demo/speedup.png
	@$(BUILD)/psd-sim --csv scenarios/quickstart.yaml >build/demo/predicted.csv
	@$(BUILD)/psd-sim --quiet --csv --trace build/demo/predicted.json --set sweep.nodes=2 \
		scenarios/quickstart.yaml >/dev/null
	@$(BUILD)/psd-plot timeline build/demo/predicted.json -o build/demo/predicted.svg
	@echo
	@echo "Now for real, less than a minute: scenarios/quickstart.yaml on two emulated nodes"
	@$(BUILD)/psd-run --csv --log build/demo/log.csv --trace build/demo/executed.json \
		scenarios/quickstart.yaml >build/demo/executed.csv
	@$(BUILD)/psd-plot timeline build/demo/executed.json --iteration 2 -o build/demo/executed.svg
	@$(BUILD)/psd-plot speedup build/demo/predicted.csv build/demo/executed.csv -o build/demo/quickstart.svg
	@echo
	@awk '$(BESIDE)' build/demo/predicted.csv build/demo/executed.csv
	@echo
	@echo "Written to build/demo/:"
	@printf '  %-39s  %s\n' \
		"speedup.csv, speedup.svg, speedup.png" "the table above, and its plot" \
		"predicted.csv, executed.csv" "scenarios/quickstart.yaml, which is smaller, simulated and executed" \
		"quickstart.svg" "both in one plot" \
		"predicted.json, executed.json" "timeline of each worker (opens in ui.perfetto.dev)" \
		"predicted.svg, executed.svg" "the same, plotted" \
		"log.csv" "loss and accuracy of each iteration"

# A target that compiles much uses all cores, unless a user says how many with -j.
ON_ALL_CORES = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

test: deps ## run the tests, without the cases that tests/cases.txt leaves for slices, and compare the golden files
	@CASES=gate $(ON_ALL_CORES) suite

check: ## check what must hold for every change: the steps of the gate in tests/checks.txt, which include test
	@tests/checks.sh gate

check-deep: ## run the deep checks in tests/checks.txt, hours, or one slice of them with SLICE=3
	@tests/checks.sh $(or $(SLICE),deep)

# Says what is left out.
cuda_skipped = $(if $(CUDA_LACKING),@echo "cuda tests skipped: no $(CUDA_LACKING) in $(CUDA_PLACES)")

suite: $(SUITES:%=$(BUILD)/%) $(PROGRAMS) deps
	$(cuda_skipped)
	@$(if $(SUITES),,:) tests/run.sh $(BUILD) $(SUITES) -- $(GOLDEN)

san: ## run all tests under the address and undefined-behaviour sanitisers, or with FILTER='SUITE/*' some
	@$(ON_ALL_CORES) SANITIZE=address,undefined suite

tsan: ## run the suites with threads under the thread sanitiser
	@$(ON_ALL_CORES) SANITIZE=thread tsan-suite

tsan-suite: $(TSAN_BINARIES:%=$(BUILD)/%) $(BUILD)/psd-run deps
	$(cuda_skipped)
	@TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp halt_on_error=1 $$TSAN_OPTIONS" FILTER='$(TSAN_CASES)' \
		tests/run.sh $(BUILD) $(TSAN_BINARIES) --

golden: $(BUILD)/psd-sim deps ## rewrite tests/golden/ (say why in the commit)
	@tests/golden.sh write $(BUILD) $(GOLDEN)

bench-tools: $(PROGRAMS) $(BENCH_TOOLS:%=$(BUILD)/bench/%) $(PEER_TOOLS:%=$(BUILD)/bench/%)

bench: $(BENCHES:%=$(BUILD)/bench/%) $(REAL_BENCHES:%=$(BUILD)/bench/%) bench-tools
bench: deps ## run the benchmarks, or BENCH="train ddp" only, into build/bench/*.csv
	@tests/bench.sh $(BUILD) '$(or $(COMMIT),unknown)' $(or $(BENCH),$(BENCHES) $(REAL_BENCHES) $(SCRIPT_BENCHES))

compare: $(PROGRAMS) $(BUILD)/bench/cpu
compare: deps ## predict and execute the same scenarios on this machine, or SCENARIOS="mlp" only, into build/compare/
	@tests/compare.sh $(BUILD) $(SCENARIOS)

# GPU_CHECK: the folder of a psd-run and psd-gpu-tests that were built elsewhere, or build/stand-in to try the script.
gpu-check: $(if $(GPU_CHECK),,gpu-check-programs)
gpu-check: ## check and measure psd on this machine's GPU in eight minutes, with GPU_CHECK=FOLDER built elsewhere
	@tests/gpu-check.sh $(or $(GPU_CHECK),build/cuda/static) build/gpu-check.csv

gpu-check-programs: ## build what gpu-check runs on a machine with a GPU: build/cuda/static/psd-run and psd-gpu-tests
	@$(MAKE) --no-print-directory CUDA=1 STATIC=1 build/cuda/static/psd-run build/cuda/static/psd-gpu-tests

published: $(BUILD)/psd-sim ## predict published throughputs of single GPUs by the table of devices, with the errors
	@tests/published.sh $(BUILD)

accuracy: $(BUILD)/psd-sim
accuracy: ## predict the runs on record in traces/measured/ again, with SET="KEY=VALUE ..." to see a constant's worth
	@tests/accuracy.sh $(BUILD) $(SET)

validate: $(BUILD)/psd-sim
validate: deps ## predict every published value, by source, stack and method, SOURCE=horovod-2017 to see each one of it
	@tests/validate.sh check $(BUILD) $(SOURCE)

stacks: $(BUILD)/psd-sim
stacks: deps ## predict published values again; write the record of stacks, and the plot in README.md
	@tests/validate.sh write $(BUILD)

break-even: $(BUILD)/psd-sim ## the bandwidths from which compression of gradients pays no more
	@tests/break-even.sh $(BUILD)

docs: $(PROGRAMS) deps ## write the generated parts of the documentation: keys, columns, options, outputs, pictures
	@tests/docs.sh write $(BUILD)
	@tests/pages.sh write $(BUILD)
	@tests/gallery.sh write $(BUILD)

# With CUDA=1 too where there is a compiler for it.
check-static: deps ## psd-run of STATIC=1 starts with the C library alone
	@$(MAKE) --no-print-directory STATIC=1 check-static-of
	@if command -v $(NVCC) >/dev/null; then \
		$(MAKE) --no-print-directory CUDA=1 STATIC=1 CUDA_ARCHS=90 check-static-of; \
	fi

check-static-of: $(BUILD)/psd-run $(BUILD)/check/libraries $(if $(CUDA),$(BUILD)/psd-gpu-tests)
	@tests/static.sh $(BUILD)

check-layers: deps ## the engine stands alone; sim and real do not know each other
	@$(ON_ALL_CORES) $(ENGINE)
	@tests/check-layers.sh . $(ENGINE)
	@mkdir -p $(BUILD)/check
	@echo 'int main(void) { return 0; }' >$(BUILD)/check/alone.c
	$(Q)$(CC) $(ALL_LDFLAGS) -o $(BUILD)/check/alone $(BUILD)/check/alone.c \
		-Wl,--whole-archive $(ENGINE) -Wl,--no-whole-archive $(ENGINE_LIBS)
	@echo "check-layers: the engine links alone"

check-headers: deps ## every header compiles by itself
	@$(ON_ALL_CORES) $(HEADERS:%=$(BUILD)/check/%)
	@echo "check-headers: $(words $(HEADERS)) headers compile alone"

$(BUILD)/check/%.h: %.h FORCE
	$(Q)$(CC) $(ALL_CPPFLAGS) -std=c11 $(C_WARNINGS) -Werror -fsyntax-only -x c -include $< /dev/null

$(BUILD)/check/%.hpp: %.hpp FORCE
	$(Q)$(CXX) $(ALL_CPPFLAGS) -std=c++17 $(WARNINGS) -Werror -fsyntax-only -x c++ -include $< /dev/null

check-scripts: deps-style ## shellcheck every script
	@shellcheck $(SCRIPTS)
	@echo "check-scripts: $(words $(SCRIPTS)) scripts"

check-words: ## no text begins with what, who or of; the last commit's subject has its form
	@tests/check-words.sh

check-budget: ## no part of the tree has more lines than tests/budget.txt gives it
	@tests/check-budget.sh .

check-references: $(PROGRAMS) deps ## paths and options in READMEs exist, generated parts are current
	@tests/check-docs.sh .
	@tests/docs.sh check $(BUILD)
	@tests/pages.sh check $(BUILD)
	@tests/gallery.sh check $(BUILD)

check-docs: check-references ## the same, and every command in a README runs
	@tests/readme-commands.sh $(BUILD)

selfcheck: $(BUILD)/psd-selfcheck $(BUILD)/psd-sim $(ENGINE) deps ## the checks themselves can fail
	@tests/selfcheck.sh $(BUILD) '$(CC)' $(firstword $(GOLDEN))

$(BUILD)/extremes-of: $(BUILD)/tests/extremes.o $(ENGINE)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ENGINE_LIBS)

classes: $(BUILD)/psd-sim
classes: deps ## compare simulations of all scenarios with and without --every-node
	@tests/classes.sh $(BUILD)

racks: $(BUILD)/psd-sim
racks: deps ## both fidelities and the estimate where racks share uplinks, SIZE=all for 8 to 64 nodes
	@tests/racks.sh $(BUILD) $(SIZE)

extremes: $(BUILD)/extremes-of $(BUILD)/psd-sim
extremes: deps ## EXTREMES scenarios with extreme values, from SEED on: each ends or is refused in seconds
	@tests/extremes.sh $(BUILD) $(EXTREMES) $(SEED)

FORMATTED := $(call sources,engine sim real plots tests,c h cpp hpp cu)
format-check: deps-style ## clang-format agrees with every C file, and no line of any file is longer than 120 columns
	@printf '%s\n' $(FORMATTED) | xargs -P $(shell nproc) -n 50 clang-format --dry-run -Werror
	@echo "format-check: $(words $(FORMATTED)) files are as clang-format has them"
	@tests/check-columns.sh .

# ---- fuzzing: its own objects (clang, libFuzzer); engine sources, and for what real/ reads its sources too ----
FUZZ_BUILD   := build/fuzz
# With sanitisers the constants that a file of 1 kB may compute would take ten seconds.
FUZZ_FLAGS   := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -MMD -MP \
	'-DPSD_ONNX_NUMBERS_MAX=(UINT64_C(1) << 18)'
FUZZ_OBJECTS := $(patsubst %.c,$(FUZZ_BUILD)/obj/%.o,$(ENGINE_SOURCES)) $(FUZZ_BUILD)/onnx.pb-c.o
FUZZ_MAINS   := $(patsubst %.c,$(FUZZ_BUILD)/obj/%.o,$(wildcard tests/fuzz/fuzz_*.c tests/fuzz/real/fuzz_*.c))
FUZZ_IMPORT  := $(patsubst %.c,$(FUZZ_BUILD)/obj/%.o,$(call sources,sim/import,c))
FUZZ_REAL    := $(patsubst %.c,$(FUZZ_BUILD)/obj/%.o,$(filter-out real/main.c,$(REAL_SOURCES)))

$(filter $(FUZZ_BUILD)/obj/%,$(FUZZ_OBJECTS)) $(FUZZ_REAL) $(FUZZ_IMPORT) $(FUZZ_MAINS): \
		$(FUZZ_BUILD)/obj/%.o: %.c Makefile \
		| deps deps-fuzz
	@mkdir -p $(@D)
	@echo "  FUZZ-CC  $<"
	$(Q)$(FUZZ_CC) $(ALL_CPPFLAGS) -std=c11 -include engine/base/banned.h $(FUZZ_FLAGS) \
		-fsanitize=fuzzer-no-link -c -o $@ $<

$(FUZZ_OBJECTS): | $(ONNX_MESSAGES).h

$(FUZZ_BUILD)/onnx.pb-c.o: $(ONNX_MESSAGES).c
	@mkdir -p $(@D)
	@echo "  FUZZ-CC  $<"
	$(Q)$(FUZZ_CC) $(ALL_CPPFLAGS) -std=c11 $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -c -o $@ $<

$(FUZZERS:%=$(FUZZ_BUILD)/%): $(FUZZ_BUILD)/%: $(FUZZ_BUILD)/obj/tests/fuzz/fuzz_%.o $(FUZZ_OBJECTS)
	@echo "  LINK     $@"
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(FUZZ_LIBS) $(ENGINE_LIBS)

# The reader of traces is psd-sim's.
$(FUZZ_BUILD)/trace: $(FUZZ_IMPORT)
$(FUZZ_BUILD)/trace: FUZZ_LIBS := $(IMPORT_LIBS)

$(REAL_FUZZERS:%=$(FUZZ_BUILD)/%): $(FUZZ_BUILD)/%: $(FUZZ_BUILD)/obj/tests/fuzz/real/fuzz_%.o \
		$(FUZZ_REAL) $(FUZZ_OBJECTS)
	@echo "  LINK     $@"
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(REAL_LIBS)

ALL_FUZZERS := $(FUZZERS) $(REAL_FUZZERS)
.PHONY: $(ALL_FUZZERS:%=fuzz-%)
$(ALL_FUZZERS:%=fuzz-%): fuzz-%: $(FUZZ_BUILD)/%
	@tests/fuzz.sh $(FUZZ_BUILD) $* $(FUZZ_SECONDS)

fuzz: $(ALL_FUZZERS:%=fuzz-%) ## fuzz every parser for FUZZ_SECONDS each (with -j2: two at a time)

# Inputs on which a parser once failed, and those that fuzzing starts from, in the plain build.
CORPORA := $(ALL_FUZZERS:%=$(BUILD)/corpora/%)
$(CORPORA): $(BUILD)/corpora/%: $(BUILD)/tests/fuzz/corpus_main.o $(REAL_PARTS) $(ENGINE)
	@mkdir -p $(@D)
	@echo "  LINK     $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(CORPORA_LIBS) $(REAL_LIBS)
$(BUILD)/corpora/trace: $(filter $(BUILD)/sim/import/%,$(SIM_PARTS))
$(BUILD)/corpora/trace: CORPORA_LIBS := $(IMPORT_LIBS)
$(FUZZERS:%=$(BUILD)/corpora/%): $(BUILD)/corpora/%: $(BUILD)/tests/fuzz/fuzz_%.o
$(REAL_FUZZERS:%=$(BUILD)/corpora/%): $(BUILD)/corpora/%: $(BUILD)/tests/fuzz/real/fuzz_%.o

check-corpora: deps ## each fuzz target runs once on the files of its corpus, without clang
	@$(ON_ALL_CORES) $(CORPORA)
	@tests/corpora.sh $(BUILD) $(ALL_FUZZERS)

# ---- installing ----
# Manual pages, completion and the schema of scenarios, made from the tables by which programs read options and keys.
# TABLED: the programs that have such a table.
TABLED := psd-sim psd-run psd-plot
SHARED := man/man5/psd-scenario.5 psd/scenario.schema.json $(TABLED:%=man/man1/%.1) \
	$(TABLED:%=bash-completion/completions/%) $(TABLED:%=zsh/site-functions/_%) \
	$(TABLED:%=fish/vendor_completions.d/%.fish)

# made_by(PROGRAM,KIND): writes the file of a kind that a program has.
define made_by
	@mkdir -p $(@D)
	@echo "  SHARE    $@"
	$(Q)$(BUILD)/$(1) --share $(2) >$@
endef

$(BUILD)/share/man/man5/psd-scenario.5: $(BUILD)/psd-sim
	$(call made_by,psd-sim,scenario)
$(BUILD)/share/psd/scenario.schema.json: $(BUILD)/psd-sim
	$(call made_by,psd-sim,schema)
$(TABLED:%=$(BUILD)/share/man/man1/%.1): $(BUILD)/share/man/man1/%.1: $(BUILD)/%
	$(call made_by,$*,man)
$(TABLED:%=$(BUILD)/share/bash-completion/completions/%): $(BUILD)/share/bash-completion/completions/%: $(BUILD)/%
	$(call made_by,$*,bash)
$(TABLED:%=$(BUILD)/share/zsh/site-functions/_%): $(BUILD)/share/zsh/site-functions/_%: $(BUILD)/%
	$(call made_by,$*,zsh)
$(TABLED:%=$(BUILD)/share/fish/vendor_completions.d/%.fish): $(BUILD)/share/fish/vendor_completions.d/%.fish: $(BUILD)/%
	$(call made_by,$*,fish)

share: $(SHARED:%=$(BUILD)/share/%) ## build manual pages, completion and the schema of scenarios, in build/share/

INSTALLED := $(DESTDIR)$(PREFIX)
SHARE     := $(INSTALLED)/share/psd
INSTALLED_PROGRAMS := $(notdir $(PROGRAMS))

install: all share ## install the programs, manual pages, completion, scenarios, traces and licence below PREFIX
	install -d $(INSTALLED)/bin $(SHARE)
	install -m 755 $(PROGRAMS) $(INSTALLED)/bin
	install -m 644 LICENSE $(BUILD)/version $(SHARE)
	@for file in $(SHARED); do install -D -m 644 $(BUILD)/share/$$file $(INSTALLED)/share/$$file || exit 1; done
	@for file in $$(find scenarios traces -type f); do \
		install -D -m 644 "$$file" "$(SHARE)/$$file" || exit 1; \
	done
	@echo "installed scenarios and traces to $(SHARE)"

uninstall: ## remove what install has put below PREFIX
	rm -f $(INSTALLED_PROGRAMS:%=$(INSTALLED)/bin/%) $(SHARED:%=$(INSTALLED)/share/%)
	rm -rf $(SHARE)

DEB = $(BUILD)/deb/psd_$(shell cat VERSION)_$(shell dpkg --print-architecture).deb

deb: all share ## build a Debian package, in build/deb/
	$(call need,$(DEPS_DEB))
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb
	@$(MAKE) --no-print-directory -s install DESTDIR=$(CURDIR)/$(BUILD)/deb/stage PREFIX=/usr >/dev/null
	@tests/package.sh make $(BUILD) $(BUILD)/deb/stage $(DEB)

check-package: deb ## the files of make share are well-formed; the package installs, runs and leaves nothing behind
	@tests/share.sh $(BUILD)
	@tests/package.sh check $(DEB)

clean: ## remove build/
	rm -rf build

FORCE:

-include $(wildcard $(patsubst %.o,%.d,$(ENGINE_OBJECTS) $(SIM_OBJECTS) $(PLOT_OBJECTS) $(TEST_OBJECTS) \
	$(BENCH_OBJECTS) $(CORPUS_OBJECTS) $(BUILD)/tests/selfcheck.o $(BUILD)/tests/extremes.o \
	$(BUILD)/tests/libraries.o \
	$(REAL_OBJECTS) $(REAL_TESTS) $(CUDA_TESTS) $(PLAN_TESTS) $(GPU_TESTS) $(STAND_IN)/real/device/device.o \
	$(REAL_BENCH_OBJECTS) $(BENCH_TOOL_OBJECTS) $(FUZZ_OBJECTS) $(FUZZ_REAL) $(FUZZ_IMPORT) $(FUZZ_MAINS)))
