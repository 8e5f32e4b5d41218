/* Restart storms: each seed draws a method, a cluster, folders, and when which processes are killed or stopped. The run
 * goes on by itself or by its user, and ends with the bits of one that was never cut. PSD_STORM_SEEDS=N tries N seeds
 * of each method instead of 1, PSD_STORM_FIRST=N begins with another one. */
#define _GNU_SOURCE 1
#include "tests/real/kept_port.h"
#include "tests/real/started.h"

TestSuite(run_storm, .timeout = 480);

enum { ITERATIONS = 40, MOST_HOSTS = 5, MOST_CUTS = 4, MOST_STARTS = 40, MOST_MOMENTS = 600, LOOKS = 20 };

/* A run by a user who starts psd-run again whenever it fails. */
struct storm {
	const char *method;
	unsigned seed;
	uint64_t state; /* state of the random numbers */
	struct scratch_folder folder;
	unsigned n_workers, n_hosts, every;
	bool has_hosts;	      /* --hosts; otherwise one psd-run starts all processes */
	bool is_emulated;     /* otherwise on loopback */
	bool has_own_folders; /* with --hosts */
	struct started runs[MOST_HOSTS];
	unsigned n_runs;
	bool is_going[MOST_HOSTS], was_stopped[MOST_HOSTS];
	unsigned n_starts;
};

static const char storm_scenario[] =
	"title: storm\nmodel: {graph: tiny.yaml, batch_per_worker: 4}\ncompute: {device: cpu}\n"
	"cluster: {workers_per_node: 1, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"sweep: {nodes: [2]}\n"
	"systems:\n"
	"  - {name: ring, sync: ring}\n"
	"  - {name: ps, sync: ps}\n"
	"  - {name: servers, sync: ps, servers: 2}\n"
	"  - {name: hybrid, sync: hybrid}\n"
	"  - {name: levels, sync: two-level}\n"
	"  - {name: local, sync: ring, local_sgd: {steps: 3}}\n"
	"  - {name: sparse, sync: ring, sparse: {sparsity: 0.5, chunk: 16}}\n"
	"  - {name: late, sync: ps, staleness: 2}\n"
	"  - {name: bits, sync: ps, compress: {by: one-bit, momentum: before}}\n"
	"  - {name: parts, sync: zero-3}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 16}\n  iterations: 40\n"
	"  learning_rate: {policy: fixed, base: 0.1}\n  optimiser: {momentum: 0.9}\n";

static unsigned draw(struct storm *storm, unsigned below)
{
	storm->state = storm->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((storm->state >> 33) % below);
}

static bool is(const struct storm *storm, const char *method)
{
	return !strcmp(storm->method, method);
}

/* ---- starts ---- */

static void spell_shape(const struct storm *storm, char text[256])
{
	const unsigned a_node = is(storm, "levels") ? 2 : 1;

	snprintf(text, 256, "--system %s --set cluster.workers_per_node=%u --set sweep.nodes=%u", storm->method, a_node,
		 storm->n_workers / a_node);
}

/* Output of the run; valid until the next call. */
static const char *said_by(const struct storm *storm, unsigned r)
{
	static char *said;

	free(said);
	said = scratch_folder_read(&storm->folder, storm->runs[r].said);
	return said;
}

/* The same run without a cut, in a folder that all hosts share; once for each shape. */
static void run_whole(struct storm *storm, char name[64])
{
	char line[1024], shape[256];

	snprintf(name, 64, "whole-%u-%s", storm->n_workers, storm->has_hosts ? "hosts" : "alone");
	if (scratch_folder_has(&storm->folder, name))
		return;
	spell_shape(storm, shape);
	storm->n_runs = storm->has_hosts ? storm->n_hosts : 1;
	for (unsigned r = 0; r < storm->n_runs; r++) {
		char said[16], rank[64] = "--no-emulation";

		snprintf(said, sizeof(said), "whole%u", r);
		if (storm->has_hosts)
			snprintf(rank, sizeof(rank), "--hosts hosts --rank %u", r);
		snprintf(line, sizeof(line), "--quiet %s %s --save %s --save-every %d", rank, shape, name, ITERATIONS);
		storm->runs[r] = start(&storm->folder, line, said);
	}
	for (unsigned r = 0; r < storm->n_runs; r++)
		cr_assert_eq(finish(&storm->runs[r]), 0, "%s: %s", name, said_by(storm, r));
}

static void begin(struct storm *storm, unsigned r)
{
	char line[1024], shape[256], said[16], rank[64] = "", own[16] = "";

	spell_shape(storm, shape);
	snprintf(said, sizeof(said), "said%u", r);
	if (!storm->is_emulated)
		snprintf(rank, sizeof(rank), "--no-emulation");
	if (storm->has_hosts)
		snprintf(rank, sizeof(rank), "--hosts hosts --rank %u --join-timeout 8s", r);
	if (storm->has_own_folders)
		snprintf(own, sizeof(own), "%u", r);
	snprintf(line, sizeof(line), "--quiet %s %s --save cut%s --save-every %u --restarts 30 --stall 600ms", rank,
		 shape, own, storm->every);
	storm->runs[r] = start(&storm->folder, line, said);
	storm->is_going[r] = true;
	storm->was_stopped[r] = false;
	storm->n_starts++;
}

/* ---- cuts ---- */

static bool is_any_going(const struct storm *storm)
{
	for (unsigned r = 0; r < storm->n_runs; r++)
		if (storm->is_going[r])
			return true;
	return false;
}

/* A cut may hit a process of an emulated cluster before its workers start, killed or stopped. psd-run has no workers to
 * restart then: it says so and ends, and its user tries again. */
static bool has_lost_cluster(const struct storm *storm, unsigned r)
{
	return storm->is_emulated &&
	       (strstr(said_by(storm, r), "the process that makes its namespaces was killed") ||
		strstr(said_by(storm, r), "the process that makes its namespaces has stood still for "));
}

/* Takes the end of a run. One that failed is started again, as systemd does; only a cut may make it fail. */
static void take_end(struct storm *storm, unsigned r)
{
	int status;

	if (!storm->is_going[r] || waitpid(storm->runs[r].pid, &status, WNOHANG) == 0)
		return;
	storm->is_going[r] = false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	cr_assert((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || has_lost_cluster(storm, r),
		  "%s, seed %u: run %u ended with %d: %s", storm->method, storm->seed, r,
		  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), said_by(storm, r));
	cr_assert_lt(storm->n_starts, MOST_STARTS, "%s, seed %u", storm->method, storm->seed);
	begin(storm, r);
}

static void wait_a_moment(struct storm *storm)
{
	(void)poll(NULL, 0, 1);
	for (unsigned r = 0; r < storm->n_runs; r++)
		take_end(storm, r);
}

/* suffix: ".part" while the host writes the file */
static bool has_file(const struct storm *storm, unsigned host, unsigned iterations, const char *suffix)
{
	char path[128], own[16] = "";

	if (storm->has_own_folders)
		snprintf(own, sizeof(own), "%u", host);
	snprintf(path, sizeof(path), "cut%s/iteration-%u/host-%u-of-%u.safetensors%s", own, iterations, host,
		 storm->n_hosts, suffix);
	return scratch_folder_has(&storm->folder, path);
}

/* Waits until a host writes a checkpoint or has written it. Often it is the last one: then hosts end, or are about
 * to. */
static void await_file(struct storm *storm)
{
	const unsigned host = draw(storm, storm->n_hosts), n_checkpoints = (ITERATIONS - 1) / storm->every + 1;
	const unsigned number = draw(storm, 2) ? 1 + draw(storm, n_checkpoints) : n_checkpoints;
	const unsigned iterations = number * storm->every < ITERATIONS ? number * storm->every : ITERATIONS;
	const char *suffix = draw(storm, 3) ? ".part" : "";

	for (unsigned i = 0; i < MOST_MOMENTS && is_any_going(storm); i++) {
		for (unsigned look = 0; look < LOOKS; look++)
			if (has_file(storm, host, iterations, suffix))
				return;
		wait_a_moment(storm);
	}
}

/* Waits until the cut: for a file, or a while, which is over before all have joined now and then. */
static void await_cut(struct storm *storm)
{
	unsigned n_moments;

	if (draw(storm, 2)) {
		await_file(storm);
		return;
	}
	n_moments = draw(storm, 2) ? draw(storm, 30) : draw(storm, 250);
	for (unsigned i = 0; i < n_moments && is_any_going(storm); i++)
		wait_a_moment(storm);
}

static void signal_run(struct storm *storm, unsigned r, int number)
{
	if (storm->is_going[r] && !has_ended(&storm->runs[r]))
		(void)kill(storm->runs[r].pid, number);
}

/* One that is stopped keeps its port: its user kills it when the others have named it, or before. */
static void cut_hosts(struct storm *storm)
{
	const unsigned first = draw(storm, storm->n_hosts), n = draw(storm, 4) ? 1 : 1 + draw(storm, storm->n_hosts);
	const bool is_stop = draw(storm, 4) == 0;
	const unsigned n_moments = draw(storm, 2) ? draw(storm, 100) : 700;

	for (unsigned i = 0; i < n; i++)
		signal_run(storm, (first + i) % storm->n_hosts, is_stop ? SIGSTOP : SIGKILL);
	for (unsigned i = 0; i < n_moments && is_stop; i++)
		wait_a_moment(storm);
	for (unsigned i = 0; i < n && is_stop; i++)
		signal_run(storm, (first + i) % storm->n_hosts, SIGKILL);
}

/* Iterations of the newest checkpoint with the files of all processes; 0: none. */
static unsigned find_complete(const struct storm *storm)
{
	unsigned iterations = find_newest(&storm->folder, "cut"), h = 0;

	while (iterations > 0 && h < storm->n_hosts) {
		char path[256];

		snprintf(path, sizeof(path), "cut/iteration-%u/host-%u-of-%u.safetensors", iterations, h,
			 storm->n_hosts);
		h = scratch_folder_has(&storm->folder, path) ? h + 1 : 0;
		iterations -= h == 0;
	}
	return iterations;
}

static void change(const struct storm *storm, const char *format, const char *path)
{
	char line[1024];
	struct run changed;
	size_t length = (size_t)snprintf(line, sizeof(line), "cd %s && ", storm->folder.path);

	snprintf(line + length, sizeof(line) - length, format, path, path);
	changed = run_command(line);
	cr_assert_eq(changed.exit_status, 0, "%s", changed.text);
	free(changed.text);
}

/* Leaves half of a file of the newest checkpoint while no process runs, and begins again: the file is named, and
 * refused where there is no older checkpoint. Then it comes back. */
static void damage(struct storm *storm)
{
	const unsigned iterations = find_complete(storm);
	char path[256];
	int status;

	if (iterations == 0 || iterations == ITERATIONS)
		return;
	snprintf(path, sizeof(path), "cut/iteration-%u/host-%u-of-%u.safetensors", iterations,
		 draw(storm, storm->n_hosts), storm->n_hosts);
	change(storm, "cp %s kept && truncate -s $(($(wc -c <kept) / 2)) %s", path);
	begin(storm, 0);
	status = finish(&storm->runs[0]);
	cr_expect(status == 2 || (status == 0 && strstr(said_by(storm, 0), " iterations is skipped\n")),
		  "%s, seed %u: %s", storm->method, storm->seed, said_by(storm, 0));
	cr_expect_not_null(strstr(said_by(storm, 0), path), "%s, seed %u: %s is not in: %s", storm->method, storm->seed,
			   path, said_by(storm, 0));
	change(storm, status == 2 ? "mv kept %s" : "rm kept", path);
}

/* Kills psd-run and all its processes. */
static void cut_all(struct storm *storm)
{
	int status;

	signal_run(storm, 0, SIGKILL);
	cr_assert_eq(waitpid(storm->runs[0].pid, &status, 0), storm->runs[0].pid);
	storm->is_going[0] = !WIFEXITED(status);
	if (!storm->is_going[0])
		return;
	damage(storm);
	begin(storm, 0);
}

static void cut_processes(struct storm *storm)
{
	pid_t found[MOST_PROCESSES];
	const unsigned n = find_processes(&storm->runs[0], found), action = draw(storm, 5);

	if (!storm->is_going[0])
		return;
	if (action < 2 || n == 0) {
		cut_all(storm);
		return;
	}
	for (unsigned i = 0; i < (action == 3 ? 1 + draw(storm, n) : 1); i++)
		(void)kill(found[draw(storm, n)], action == 2 ? SIGSTOP : SIGKILL);
}

/* ---- a seed ---- */

static void expect_whole(struct storm *storm, const char *whole)
{
	char line[512], own[16] = "";

	for (unsigned h = 0; h < storm->n_hosts; h++) {
		struct run compared;

		if (storm->has_own_folders)
			snprintf(own, sizeof(own), "%u", h);
		snprintf(line, sizeof(line),
			 "cd %s && cmp %s/iteration-%d/host-%u-of-%u.safetensors "
			 "cut%s/iteration-%d/host-%u-of-%u.safetensors 2>&1 && %s%s %s/parameters.safetensors "
			 "cut%s/parameters.safetensors 2>&1",
			 storm->folder.path, whole, ITERATIONS, h, storm->n_hosts, own, ITERATIONS, h, storm->n_hosts,
			 h == 0 ? "" : "true ", "cmp", whole, own);
		compared = run_command(line);
		cr_expect_eq(compared.exit_status, 0, "%s, seed %u, host %u: %s%s", storm->method, storm->seed, h,
			     compared.text, said_by(storm, storm->has_hosts ? h : 0));
		free(compared.text);
	}
}

static void choose(struct storm *storm)
{
	storm->state = storm->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	(void)draw(storm, 2);
	storm->n_workers = is(storm, "levels") ? 4 : 1 + draw(storm, 3);
	if (!is(storm, "servers") && storm->n_workers == 1 && draw(storm, 2))
		storm->n_workers = 2;
	storm->n_hosts = storm->n_workers + (is(storm, "servers") ? 2 : 0);
	storm->has_hosts = storm->n_hosts > 1 && draw(storm, 2);
	storm->has_own_folders = storm->has_hosts && draw(storm, 3) > 0;
	storm->is_emulated = !storm->has_hosts && draw(storm, 4) == 0;
	storm->every = 1 + draw(storm, 20);
	if (is(storm, "local")) /* right after an exchange */
		storm->every = 3 * (1 + storm->every / 3);
}

static void check_seed(struct storm *storm)
{
	const unsigned n_cuts = 1 + draw(storm, MOST_CUTS);
	char whole[64];
	struct run removed;
	char line[512];

	run_whole(storm, whole);
	storm->n_runs = storm->has_hosts ? storm->n_hosts : 1;
	storm->n_starts = 0;
	for (unsigned r = 0; r < storm->n_runs; r++)
		begin(storm, r);
	for (unsigned c = 0; c < n_cuts && is_any_going(storm); c++) {
		await_cut(storm);
		if (is_any_going(storm))
			(storm->has_hosts ? cut_hosts : cut_processes)(storm);
	}
	while (is_any_going(storm))
		wait_a_moment(storm);
	expect_whole(storm, whole);
	snprintf(line, sizeof(line), "cd %s && rm -r cut*", storm->folder.path);
	removed = run_command(line);
	cr_assert_eq(removed.exit_status, 0, "%s", removed.text);
	free(removed.text);
}

static unsigned number_of(const char *variable, unsigned fallback)
{
	const char *value = getenv(variable);

	return value ? (unsigned)strtoul(value, NULL, 10) : fallback;
}

static void check_storm(const char *method)
{
	const unsigned n_seeds = number_of("PSD_STORM_SEEDS", 1), first = number_of("PSD_STORM_FIRST", 1);
	struct storm storm = {.method = method, .folder = make_folder()};
	char hosts[32 * MOST_HOSTS] = "";

	for (unsigned h = 0; h < MOST_HOSTS; h++)
		snprintf(hosts + strlen(hosts), sizeof(hosts) - strlen(hosts), "127.0.0.1:%u\n", keep_port());
	scratch_folder_write(&storm.folder, "s.yaml", storm_scenario, strlen(storm_scenario));
	for (storm.seed = first; storm.seed < first + n_seeds; storm.seed++) {
		size_t length = 0;

		choose(&storm);
		for (unsigned h = 0; h < storm.n_hosts; h++)
			length += strcspn(hosts + length, "\n") + 1;
		scratch_folder_write(&storm.folder, "hosts", hosts, length);
		check_seed(&storm);
	}
	scratch_folder_remove(&storm.folder);
}

#define STORM(name, method)                                                                                            \
	Test(run_storm, name)                                                                                          \
	{                                                                                                              \
		check_storm(method);                                                                                   \
	}
STORM(a_ring_ends_with_the_same_bits, "ring")
STORM(shards_end_with_the_same_bits, "ps")
STORM(servers_end_with_the_same_bits, "servers")
STORM(hybrids_end_with_the_same_bits, "hybrid")
STORM(two_levels_end_with_the_same_bits, "levels")
STORM(local_steps_end_with_the_same_bits, "local")
STORM(sparse_exchanges_end_with_the_same_bits, "sparse")
STORM(late_updates_end_with_the_same_bits, "late")
STORM(compressed_gradients_end_with_the_same_bits, "bits")
STORM(parts_of_parameters_end_with_the_same_bits, "parts")
