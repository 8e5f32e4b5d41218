/* Open MPI as a library: mpirun starts this program again, once for each worker, and each of them trains as the case
 * `mpi_rank/trains` with what the environment says. Skipped where there is no mpirun, or psd-run is without MPI. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/cluster/hosts.h"
#include "real/cluster/join.h"
#include "real/work/sums.h"
#include "tests/cli_helper.h"
#include "tests/real/kept_port.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

#define TOLERANCE 1e-5 /* sums are taken in another order */
#define WORKERS	  "PSD_TEST_MPI_WORKERS"
#define SYSTEM	  "PSD_TEST_MPI_SYSTEM"
#define FOLDER	  "PSD_TEST_MPI_FOLDER" /* with the hosts; and where parameters go */
#define VICTIM	  "PSD_TEST_MPI_VICTIM"
#define MPIRUN                                                                                                         \
	"OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 "                       \
	"mpirun --oversubscribe --bind-to none"
#define TRAIN                                                                                                          \
	"data: {kind: synthetic, training_samples: 64}, iterations: 5, optimiser: {kind: sgd, momentum: 0.9}, "        \
	"learning_rate: {policy: fixed, base: 0.005}"

static void need_mpi(void)
{
	struct psd_error err;

	if (system("mpirun --version >/dev/null 2>&1"))
		cr_skip_test("there is no mpirun here");
	setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
	if (psd_library_mpi.check(2, &err))
		cr_skip_test("%s", err.text);
	unsetenv("OMPI_COMM_WORLD_SIZE");
}

static struct training *make_training(const char *system, unsigned workers)
{
	return training_make("cifar10-quick.yaml", system, workers, 1, 4, 1, TRAIN);
}

static uint64_t count_parameters(const struct training *training)
{
	return training->loaded.costed.graph.parameters;
}

static struct scratch_path parameters_path(const struct scratch_folder *folder, unsigned rank)
{
	char name[32];

	snprintf(name, sizeof(name), "parameters.%u", rank);
	return scratch_folder_path(folder, name);
}

/* ---- a rank ---- */

static void write_parameters(const struct training *training, const struct scratch_folder *folder, unsigned rank)
{
	FILE *out = fopen(parameters_path(folder, rank).text, "wb");

	cr_assert_not_null(out);
	cr_assert_eq(fwrite(training_parameters(training, rank), sizeof(float), count_parameters(training), out),
		     count_parameters(training));
	cr_assert_eq(fclose(out), 0);
}

Test(mpi_rank, trains, .timeout = 120)
{
	struct scratch_folder folder;
	struct psd_hosts hosts;
	struct training *training;
	struct psd_error err;
	unsigned self;

	if (!getenv(WORKERS))
		cr_skip_test("is a part of the suite mpi");
	snprintf(folder.path, sizeof(folder.path), "%s", getenv(FOLDER));
	training = make_training(getenv(SYSTEM), (unsigned)strtoul(getenv(WORKERS), NULL, 10));
	cr_assert_eq(psd_hosts_load(&hosts, scratch_folder_path(&folder, "hosts").text, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_hosts_find_rank(hosts.n_hosts, &self, &err), PSD_OK, "%s", err.text);
	if (getenv(VICTIM))
		training->victim = (unsigned)strtoul(getenv(VICTIM), NULL, 10);
	training->options.worker.listener = -1;
	training->status = psd_join(&training->options.worker, &hosts, self, &training->result, &training->err);
	cr_assert_eq(training->status, PSD_OK, "%s", training->err.text);
	write_parameters(training, &folder, self);
	psd_hosts_release(&hosts);
	training_free(training);
	exit(0); /* which finalises MPI */
}

/* ---- all of them ---- */

static void write_hosts(const struct scratch_folder *folder, unsigned workers)
{
	char text[TRAINING_MOST_HOSTS * 32] = "";

	for (unsigned w = 0; w < workers; w++) {
		const size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, "127.0.0.1:%u\n", (unsigned)keep_port());
	}
	scratch_folder_write(folder, "hosts", text, strlen(text));
}

/* more: variables for the environment */
static struct run run_ranks(const struct scratch_folder *folder, const char *system, unsigned workers, const char *more)
{
	char command[4 * PATH_MAX];

	write_hosts(folder, workers);
	snprintf(command, sizeof(command),
		 WORKERS "=%u " SYSTEM "='%s' " FOLDER "=%s %s " MPIRUN " -n %u %s --filter mpi_rank/trains 2>&1",
		 workers, system, folder->path, more, workers, path_of("psd-real-tests").text);
	return run_command(command);
}

static void expect_parameters(const struct scratch_folder *folder, unsigned rank, const struct training *expected)
{
	const uint64_t n = count_parameters(expected);
	float *values = calloc(n, sizeof(*values));
	FILE *in = fopen(parameters_path(folder, rank).text, "rb");

	cr_assert(values && in, "rank %u", rank);
	cr_assert_eq(fread(values, sizeof(*values), n, in), n);
	fclose(in);
	for (uint64_t i = 0; i < n; i++)
		cr_assert_float_eq(values[i], training_parameters(expected, 0)[i], TOLERANCE, "rank %u: parameter %u",
				   rank, (unsigned)i);
	free(values);
}

static void check(unsigned workers, const char *system)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct training *expected = make_training("schedule: sequential, sync: ps", workers);
	struct run ranks;

	training_run(expected);
	cr_assert_eq(expected->status, PSD_OK, "%s", expected->err.text);
	ranks = run_ranks(&folder, system, workers, "");
	cr_assert_eq(ranks.exit_status, 0, "%s: %s", system, ranks.text);
	for (unsigned rank = 0; rank < workers; rank++)
		expect_parameters(&folder, rank, expected);
	free(ranks.text);
	training_free(expected);
	scratch_folder_remove(&folder);
}

Test(mpi, trains_as_plain_synchronous_workers_do, .timeout = 240)
{
	need_mpi();
	check(2, "sync: mpi");
	check(4, "sync: mpi, schedule: sequential, fuse: 100kB");
	check(2, "sync: mpi, fuse: 100kB, pipeline: 150kB, barrier: layer, priority: forward");
}

/* Whatever the others wait in. */
Test(mpi, a_rank_that_is_killed_ends_all, .timeout = 120)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct run ranks;

	need_mpi();
	ranks = run_ranks(&folder, "sync: mpi", 3, VICTIM "=0");
	cr_expect_neq(ranks.exit_status, 0);
	for (unsigned rank = 0; rank < 3; rank++)
		cr_expect_neq(access(parameters_path(&folder, rank).text, F_OK), 0);
	free(ranks.text);
	scratch_folder_remove(&folder);
}

/* psd-run itself, beside a system that it executes without mpirun. The ports are everybody's: only one test at a time
 * may have them. */
Test(mpi, is_a_row_beside_others_where_mpirun_starts_psd_run, .timeout = 120)
{
	static const char command[] = MPIRUN " -n 2 %s --csv --quiet --iterations 3 --set systems.0.sync=mpi "
					     "--set systems.0.schedule=wait-free%s scenarios/quickstart.yaml 2>&1";
	char text[4 * PATH_MAX];
	struct run ranks;

	need_mpi();
	snprintf(text, sizeof(text), command, path_of("psd-run").text, "");
	ranks = run_command(text);
	cr_assert_eq(ranks.exit_status, 0, "%s", ranks.text);
	cr_expect_not_null(strstr(ranks.text, ",PS in sequence,real-cpu,2,2,"), "%s", ranks.text);
	cr_expect_not_null(strstr(ranks.text, ",Ring,real-cpu,2,2,"), "%s", ranks.text);
	free(ranks.text);
	snprintf(text, sizeof(text), command, path_of("psd-run").text, " --nodes 2");
	ranks = run_command(text);
	cr_expect_eq(ranks.exit_status, 2);
	cr_expect_not_null(strstr(ranks.text, "scenarios/quickstart.yaml: '--nodes' is for a cluster on this machine, "
					      "must be left out with mpirun\n"),
			   "%s", ranks.text);
	free(ranks.text);
}

Test(mpi, a_process_without_mpirun_is_refused)
{
	static const struct psd_system system = {.name = "s", .sync = PSD_SYNC_LIBRARY, .at = {"a.yaml", 4, 5}};
	struct psd_error err;

	need_mpi();
	cr_expect_eq(psd_worker_check_library(&system, 4, &psd_device_cpu, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a.yaml:4:5: 'sync' of system 's' is 'mpi', which needs its 4 processes started by "
				   "mpirun: mpirun -n 4 psd-run ...");
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	cr_expect_eq(psd_worker_check_library(&system, 4, &psd_device_cpu, &err), PSD_EINVAL);
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	cr_expect_eq(psd_worker_check_library(&system, 4, &psd_device_cpu, &err), PSD_OK);
}
