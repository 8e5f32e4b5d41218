/* One of four workers stops somewhere in its training: its process, the thread that computes, or its link. The others
 * name it. PSD_FULL_TESTS=1 tries 40 points instead of 8. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real/keep/checkpoint.h"
#include "real/net/socket.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

enum { WORKERS = 4, BATCH = 2, N_ITERATIONS = 100000, FIRST_ITERATION = 2, N_PLACES = 8, N_PLACES_FULL = 40 };

#define STALL_SEC	2.0
#define SHORT_STALL_SEC 0.3  /* where ten times that is the limit */
#define LATER_SEC	60.0 /* time that the end may take beyond that on a machine which is suspended now and then */

enum halt { STOPPED, STUCK, CUT, N_HALTS };

/* Where it happens; in every process of the run. */
struct place {
	enum halt halt;
	unsigned victim;
	uint64_t iteration;
	unsigned layer;
	bool is_backward;
};

static struct place place;
static double *halted_sec; /* shared with the processes */
static uint64_t at_iteration;
static unsigned self;

static void cut_links(void)
{
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct if_nameindex *interfaces = if_nameindex();

	for (unsigned i = 0; interfaces && interfaces[i].if_index; i++) {
		struct ifreq request = {.ifr_flags = 0};

		snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interfaces[i].if_name);
		(void)ioctl(fd, SIOCSIFFLAGS, &request);
	}
	if_freenameindex(interfaces);
	close(fd);
}

static void halt_here(unsigned layer, bool is_backward)
{
	if (self != place.victim || at_iteration != place.iteration || layer != place.layer ||
	    is_backward != place.is_backward)
		return;
	if (halted_sec)
		*halted_sec = psd_socket_now_sec();
	switch (place.halt) {
	case STOPPED: raise(SIGSTOP); break;
	case CUT: cut_links(); break;
	case STUCK:
	case N_HALTS: break;
	}
	while (place.halt == STUCK)
		pause();
}

static enum psd_status begin(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	self = (unsigned)(batch->first_sample / BATCH);
	at_iteration = batch->iteration;
	return psd_device_cpu.begin(device, batch, err);
}

static enum psd_status forward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	halt_here(layer, false);
	return psd_device_cpu.forward(device, layer, err);
}

static enum psd_status backward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	halt_here(layer, true);
	return psd_device_cpu.backward(device, layer, err);
}

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)*state * below >> 32);
}

static struct training *make(const char *sync, const struct psd_device_kind *kind)
{
	char system[64];
	struct training *training;

	snprintf(system, sizeof(system), "schedule: wait-free, sync: %s", sync);
	training = training_make("cifar10-quick.yaml", system, WORKERS, 1, BATCH, 1,
				 "iterations: 4, learning_rate: {policy: fixed, base: 0.001}");
	training->options.worker.n_iterations = N_ITERATIONS;
	training->options.worker.stall_sec = STALL_SEC;
	training->options.worker.device = kind;
	return training;
}

static void check_named(const char *sync, unsigned seed, enum psd_cluster_kind cluster_kind)
{
	struct psd_device_kind kind = psd_device_cpu;
	struct training *training = make(sync, &kind);
	uint32_t state = seed;
	char name[32];
	double took_sec;

	kind.begin = begin;
	kind.forward = forward;
	kind.backward = backward;
	place.victim = seed % WORKERS;
	place.iteration = FIRST_ITERATION + draw(&state, 5);
	place.layer = 1 + draw(&state, training->loaded.costed.graph.n_layers - 1); /* the first is the input */
	place.is_backward = draw(&state, 2);
	training->options.cluster_kind = cluster_kind;
	training_run(training);
	took_sec = psd_socket_now_sec() - *halted_sec;
	snprintf(name, sizeof(name), "worker %u at ", place.victim);
	cr_expect_eq(training->status, PSD_ELOST);
	cr_expect(!strncmp(training->err.text, name, strlen(name)), "%s, seed %u, halt %d, iteration %llu: %s", sync,
		  seed, (int)place.halt, (unsigned long long)place.iteration, training->err.text);
	cr_expect_lt(took_sec, STALL_SEC + LATER_SEC, "%s, seed %u, halt %d: %s", sync, seed, (int)place.halt,
		     training->err.text);
	training_free(training);
}

static void check_places(const char *sync)
{
	const unsigned n_all = getenv("PSD_FULL_TESTS") ? N_PLACES_FULL : N_PLACES,
		       n_places = n_all / 2; /* operations of two methods */

	halted_sec = mmap(NULL, sizeof(*halted_sec), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)halted_sec, MAP_FAILED);
	for (unsigned seed = 0; seed < n_places; seed++) {
		place.halt = STOPPED;
		if ((seed / WORKERS + seed) % 2) /* each worker's in turn */
			place.halt = STUCK;
		check_named(sync, seed, PSD_CLUSTER_LOOPBACK);
	}
}

Test(stall, the_worker_that_stands_still_is_named_with_servers, .timeout = 280)
{
	check_places("ps");
}

Test(stall, the_worker_that_stands_still_is_named_in_a_ring, .timeout = 280)
{
	check_places("ring");
}

Test(stall, the_worker_whose_link_is_cut_is_named)
{
	struct training *training = make("ps", NULL);
	struct psd_error reason;
	const bool has_emulation = !psd_launch_try_emulation(&training->made, NULL, &reason);

	training_free(training);
	if (!has_emulation)
		cr_skip_test("no emulation here: %s", reason.text);
	halted_sec = mmap(NULL, sizeof(*halted_sec), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)halted_sec, MAP_FAILED);
	place.halt = CUT;
	check_named("ps", 2, PSD_CLUSTER_EMULATED);
	check_named("ring", 1, PSD_CLUSTER_EMULATED);
}

/* ---- elsewhere than in a layer of several workers ---- */

static enum { NOWHERE, AT_START, IN_TEST, IN_SAVE } halt_at;

/* Counts as the place, once the worker is that far. */
static void halt_if(bool is_there)
{
	if (!is_there)
		return;
	if (place.halt == STOPPED)
		raise(SIGSTOP);
	while (place.halt == STUCK)
		pause();
}

static enum psd_status open_device(struct psd_device **device, const struct psd_device_options *options,
				   struct psd_error *err)
{
	self = options->number;
	halt_if(halt_at == AT_START && self == place.victim);
	return psd_device_cpu.open(device, options, err);
}

static enum psd_status begin_any(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	halt_if(halt_at == IN_TEST && !batch->is_training);
	return batch->is_training ? begin(device, batch, err) : psd_device_cpu.begin(device, batch, err);
}

/* Takes the place of the C library's, for all tests of this program. */
int fsync(int descriptor)
{
	halt_if(halt_at == IN_SAVE && self == place.victim);
	return (int)syscall(SYS_fsync, descriptor);
}

static struct training *make_short(unsigned workers, struct psd_device_kind *kind)
{
	struct training *training =
		training_make("cifar10-quick.yaml", "sync: ring", workers, 1, BATCH, 1,
			      "iterations: 4, data: {kind: synthetic, training_samples: 8, test_samples: 4}, "
			      "learning_rate: {policy: fixed, base: 0.001}");

	*kind = psd_device_cpu;
	kind->open = open_device;
	kind->begin = begin_any;
	kind->forward = forward;
	kind->backward = backward;
	training->options.worker.n_iterations = N_ITERATIONS;
	training->options.worker.stall_sec = SHORT_STALL_SEC;
	training->options.worker.device = kind;
	training->options.worker.is_tested = true;
	return training;
}

/* The text names the worker and where it stands still. */
static void check_text(struct training *training, const char *where)
{
	char name[32];

	training_run(training);
	snprintf(name, sizeof(name), "worker %u at ", place.victim);
	cr_expect_eq(training->status, PSD_ELOST, "%s", training->err.text);
	cr_expect(strstr(training->err.text, name) == training->err.text && strstr(training->err.text, where),
		  "'%s' of '%s' is not in: %s", where, name, training->err.text);
	training_free(training);
}

Test(stall, a_worker_alone_is_named_in_a_layer, .timeout = 60)
{
	struct psd_device_kind kind;

	for (unsigned layer = 1; layer < 4; layer++) {
		place = (struct place){.halt = STUCK, .iteration = 3, .layer = layer, .is_backward = true};
		check_text(make_short(1, &kind), " has been at 'backward ");
	}
}

Test(stall, a_worker_alone_that_is_stopped_is_named, .timeout = 60)
{
	struct psd_device_kind kind;

	place = (struct place){.halt = STOPPED, .iteration = 3, .layer = 1};
	check_text(make_short(1, &kind), " was stopped by signal 19 ");
}

Test(stall, a_worker_is_named_in_a_test, .timeout = 60)
{
	struct psd_device_kind kind;

	halt_at = IN_TEST;
	place = (struct place){.halt = STUCK, .iteration = UINT64_MAX};
	check_text(make_short(1, &kind), " has been at a batch of the test for ");
	check_text(make_short(2, &kind), " has been at a batch of the test for ");
}

Test(stall, a_worker_is_named_in_a_checkpoint, .timeout = 60)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 2};
	struct psd_device_kind kind;

	halt_at = IN_SAVE;
	for (unsigned workers = 1; workers <= 2; workers++) {
		struct training *training = make_short(workers, &kind);

		place = (struct place){.halt = STUCK, .iteration = UINT64_MAX, .victim = workers - 1};
		training->options.worker.checkpoints = &checkpoints;
		check_text(training, " has been at a checkpoint for ");
	}
	scratch_folder_remove(&folder);
}

/* Stopped: after the limit. Stuck: after ten times that, since data and devices may be slow. */
Test(stall, a_worker_is_named_before_it_has_joined, .timeout = 60)
{
	struct psd_device_kind kind;

	halt_at = AT_START;
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		place = (struct place){.halt = STOPPED, .iteration = UINT64_MAX, .victim = workers / 2};
		check_text(make_short(workers, &kind), " ago, at its start, before it had joined");
		place.halt = STUCK;
		check_text(make_short(workers, &kind), " at its start, at the device, the data or a checkpoint");
	}
}

Test(stall, workers_are_waited_for_so_long, .timeout = 60)
{
	struct psd_device_kind kind;
	struct training *training = make_short(2, &kind);

	halt_at = AT_START;
	place = (struct place){.halt = STUCK, .iteration = UINT64_MAX, .victim = 1};
	training->options.worker.stall_sec = LATER_SEC;
	training->options.worker.connect_sec = SHORT_STALL_SEC;
	training_run(training);
	cr_expect_eq(training->status, PSD_EABSENT);
	cr_expect(strstr(training->err.text, " did not join within 0.3 s"), "%s", training->err.text);
	training_free(training);
}

/* ---- slow operations ---- */

/* Longer than the limit of a test's first batch, if it were alone. */
static enum psd_status slow_pass(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	const double until_sec = psd_socket_now_sec() + 4 * SHORT_STALL_SEC;

	while (layer == 1 && psd_socket_now_sec() < until_sec)
		(void)poll(NULL, 0, 1);
	return psd_device_cpu.forward(device, layer, err);
}

Test(stall, a_slow_test_is_none, .timeout = 240)
{
	struct psd_device_kind kind;
	struct training *training = make_short(2, &kind);

	kind.forward = slow_pass;
	training->options.worker.n_iterations = 2;
	training_run(training);
	cr_expect_eq(training->status, PSD_OK, "%s", training->err.text);
	training_free(training);
}

static enum psd_status slow_forward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	const double until_sec = psd_socket_now_sec() + 1.5 * STALL_SEC;

	while (layer == 1 && self == 1 && psd_socket_now_sec() < until_sec)
		(void)poll(NULL, 0, 1);
	return psd_device_cpu.forward(device, layer, err);
}

Test(stall, an_operation_that_always_takes_longer_than_the_limit_is_none)
{
	struct psd_device_kind kind = psd_device_cpu;
	struct training *training = make("ring", &kind);

	kind.begin = begin;
	kind.forward = slow_forward;
	training->options.worker.n_iterations = 2;
	training_run(training);
	cr_expect_eq(training->status, PSD_OK, "%s", training->err.text);
	training_free(training);
}
