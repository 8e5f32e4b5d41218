/* Whole runs on groups of nodes whose workers have unequal batches. Gradients are weighted by samples, so that a run
 * trains as one worker with the batch of all. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>

#include "real/data/tensor_file.h"
#include "tests/real/folder_run.h"
#include "tests/real/plain_softmax.h"
#include "tests/real/training.h"

TestSuite(run_groups);

#define GRAPH "../../tests/data/maskless.yaml"
#define TRAIN                                                                                                          \
	"iterations: 7, data: {kind: synthetic, training_samples: 96}, optimiser: {kind: sgd, momentum: 0.9}, "        \
	"learning_rate: {policy: fixed, base: "

/* Sums over samples round differently where samples are divided differently: relative to the way from the start, and to
 * the norm of all parameters. */
#define SAME_WAY_RATIO	1e-5
#define SAME_NORM_RATIO 1e-6

enum { ALL_SAMPLES = 24, SEED = 5, N_OF_GATE = 2, N_UNEVEN_OF_GATE = 2 };

struct unequal {
	const char *system;
	unsigned workers, workers_per_node;
	unsigned micro_batches;
	const char *groups;
};

#define NINE_AND_THREE "[{nodes: 2, batch_per_worker: 9}, {nodes: 2, batch_per_worker: 3}]"
#define TWO_NODES      "[{nodes: 1, batch_per_worker: 9}, {nodes: 1, batch_per_worker: 3}]"
#define THREE_NODES                                                                                                    \
	"[{nodes: 1, batch_per_worker: 4}, {nodes: 1, batch_per_worker: 1}, {nodes: 1, batch_per_worker: 7}]"
/* 24 samples in proportion to 4, 1 and 1 */
#define BY_SPEED "[{nodes: 1}, {nodes: 2, speed: 0.25}]"

static const struct unequal all_unequal[] = {
	{"sync: ps", 4, 1, 1, NINE_AND_THREE},
	{"sync: ring", 4, 1, 1, NINE_AND_THREE},
	{"sync: ps, servers: 2", 4, 1, 1, NINE_AND_THREE},
	{"sync: ring, split: speed", 3, 1, 1, BY_SPEED},
	{"sync: two-level", 4, 2, 1, TWO_NODES},
	{"sync: two-level-ps, schedule: sequential", 4, 2, 1, TWO_NODES},
	{"sync: zero-1", 4, 1, 1, NINE_AND_THREE},
	{"sync: zero-2, fuse: 8KiB", 4, 1, 1, NINE_AND_THREE},
	{"sync: ring, accumulate: 2", 3, 1, 2, THREE_NODES},
};

static struct training *train(const struct unequal *of, const char *rate)
{
	char job[512];

	snprintf(job, sizeof(job), TRAIN "%s}", rate);
	return training_finish(training_make_groups(GRAPH, of->system, of->workers, of->workers_per_node,
						    ALL_SAMPLES / of->workers / of->micro_batches, SEED, job,
						    of->groups),
			       of->system);
}

/* Nodes with other numbers of workers. */
#define UNEQUAL_BATCHES                                                                                                \
	"[{nodes: 1, workers_per_node: 2, batch_per_worker: 9}, {nodes: 2, workers_per_node: 1, batch_per_worker: 3}]"
#define EQUAL_BATCHES "[{nodes: 1}, {nodes: 1, workers_per_node: 3}]"
#define ROW(keys, groups)                                                                                              \
	{                                                                                                              \
		keys, 4, 1, 1, groups                                                                                  \
	}

static const struct unequal all_uneven[] = {
	ROW("sync: ring", UNEQUAL_BATCHES),
	ROW("sync: two-level", UNEQUAL_BATCHES),
	ROW("sync: ps", UNEQUAL_BATCHES),
	ROW("sync: ps, servers: 2", UNEQUAL_BATCHES),
	ROW("sync: halving-doubling", UNEQUAL_BATCHES),
	ROW("sync: recursive-doubling", UNEQUAL_BATCHES),
	ROW("sync: double-tree", UNEQUAL_BATCHES),
	ROW("sync: torus", UNEQUAL_BATCHES),
	ROW("sync: two-level-ps, schedule: sequential", UNEQUAL_BATCHES),
	ROW("sync: two-level-ps", EQUAL_BATCHES),
	ROW("sync: zero-1", UNEQUAL_BATCHES),
	ROW("sync: zero-3, fuse: 8KiB", UNEQUAL_BATCHES),
	ROW("sync: sfb", EQUAL_BATCHES),
	ROW("sync: two-level-sfb", EQUAL_BATCHES),
	ROW("sync: two-level", EQUAL_BATCHES),
};

/* Trains by entries `first` to `end` - 1. */
static void expect_as_one(const struct unequal of[], size_t first, size_t end)
{
	const struct unequal alone = {"sync: ring", 1, 1, 1, NULL};
	struct training *one = train(&alone, "0.02"), *begun = train(&alone, "1e-9");

	for (size_t i = first; i < end; i++) {
		struct training *many = train(&of[i], "0.02");
		const bool is_even = !strcmp(of[i].groups, EQUAL_BATCHES);
		const double norm_ratio = training_distance(many, one) / training_distance(one, NULL);

		cr_assert_eq(psd_case_samples(&many->made), ALL_SAMPLES);
		cr_assert_eq(many->made.plan.layout.workers, of[i].workers);
		cr_expect_eq(is_even, psd_case_batch(&many->made, 0) == psd_case_batch(&many->made, of[i].workers - 1));
		training_expect_same_on_all(many, of[i].system);
		cr_expect_lt(norm_ratio, SAME_NORM_RATIO, "%s: %g of the norm", of[i].system, norm_ratio);
		cr_expect_lt(training_apart_ratio(begun, one, many), SAME_WAY_RATIO, "%s: %g of the way", of[i].system,
			     training_apart_ratio(begun, one, many));
		cr_expect_float_eq(many->result.last_loss, one->result.last_loss, 1e-6 * one->result.last_loss);
		training_free(many);
	}
	training_free(begun);
	training_free(one);
}

Test(run_groups, workers_train_as_one)
{
	expect_as_one(all_unequal, 0, N_OF_GATE);
}

Test(run_groups, workers_of_every_method_train_as_one)
{
	expect_as_one(all_unequal, N_OF_GATE, sizeof(all_unequal) / sizeof(all_unequal[0]));
}

Test(run_groups, workers_of_unequal_nodes_train_as_one)
{
	expect_as_one(all_uneven, 0, N_UNEVEN_OF_GATE);
}

Test(run_groups, workers_of_unequal_nodes_train_as_one_by_every_method, .timeout = 240)
{
	expect_as_one(all_uneven, N_UNEVEN_OF_GATE, sizeof(all_uneven) / sizeof(all_uneven[0]));
}

/* Work of a slow device is its processor time and the waits after it. Parts of an iteration are those of the slow
 * worker, and compute_sec is each worker's own. */
static void expect_longer_work(const char *system)
{
	double compute_sec[2] = {0.0, 0.0};
	char job[512];
	struct training *training;

	snprintf(job, sizeof(job), TRAIN "0.02}");
	training = training_make_groups("cifar10-quick.yaml", system, 2, 1, 16, SEED, job,
					"[{nodes: 1}, {nodes: 1, speed: 0.1}]");
	training->options.worker.compute_sec = compute_sec;
	training = training_finish(training, "a slow group");
	if (!training->made.plan.async) /* otherwise parts are scaled to a mean */
		cr_expect_gt(training->result.parts.compute_sec, 5.0 * compute_sec[0], "parts are of %g s",
			     training->result.parts.compute_sec);
	training_free(training);
	/* work is counted in processor time, which other programs change by half at most */
	cr_expect(compute_sec[1] > 5.0 * compute_sec[0] && compute_sec[1] < 20.0 * compute_sec[0], "%s: %g s and %g s",
		  system, compute_sec[0], compute_sec[1]);
}

Test(run_groups, a_slow_group_works_for_as_much_longer, .timeout = 120)
{
	expect_longer_work("sync: ring");
}

Test(run_groups, a_slow_group_works_for_as_much_longer_asynchronously, .timeout = 120)
{
	expect_longer_work("sync: ps, asynchronous: {}");
}

/* ---- the report ---- */

#define DIVIDED "  - {name: By speed, sync: ring, split: speed}\n  - {name: Measured, sync: ring, split: measured}\n"

/* cluster: keys that the cluster has beside its network; systems: systems beside two that divide evenly. */
static struct scratch_folder make_folder(const char *cluster, const char *systems)
{
	const struct scratch_folder folder = scratch_folder_make();
	char text[1024];

	snprintf(text, sizeof(text),
		 "title: softmax\nmodel: {graph: softmax.yaml, batch_per_worker: 12}\ncompute: {device: cpu}\n"
		 "cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}, %s}\n"
		 "systems:\n  - {name: Even, sync: ring}\n  - {name: Servers, sync: ps}\n%s"
		 "train:\n  data: {kind: synthetic, training_samples: 96, test_samples: 8}\n  iterations: 4\n"
		 "  learning_rate: {policy: fixed, base: 0.01}\n",
		 cluster, systems);
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	scratch_folder_write(&folder, "softmax.yaml", PLAIN_SOFTMAX, strlen(PLAIN_SOFTMAX));
	return folder;
}

/* Each system divides the 24 samples of an iteration. folder_run() is quiet. */
FOLDER_TEST(run_groups, the_table_tells_batches_and_speeds,
	    make_folder("groups: [{nodes: 1, batch_per_worker: 16}, {nodes: 1, batch_per_worker: 8, speed: 50%}]",
			DIVIDED))
{
	static const char *const heads[] = {
		" parameters in 2 tensors\n",
		"\ncluster   2 nodes; processes on loopback, links as fast as this machine\n"
		"groups    split even: 1 node: batch 16; 1 node of speed 50 %: batch 8\n",
		"\ngroups    split speed: 1 node: batch ",
		"\ngroups    split measured for Measured: ",
		" samples/s",
	};
	char *text = folder_run(&folder, "@/s.yaml");
	unsigned fast = 0, slow = 0;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		cr_expect_not_null(strstr(text, heads[i]), "'%s' in\n%s", heads[i], text);
	const char *by_speed = strstr(text, heads[2]);

	cr_assert_not_null(by_speed);
	cr_expect_eq(sscanf(by_speed + strlen(heads[2]), "%u; 1 node of speed 50 %%: batch %u", &fast, &slow), 2);
	cr_expect_eq(fast + slow, 24, "%u and %u", fast, slow);
	free(text);
	folder_run_refuses(&folder, "--nodes 1 @/s.yaml",
			   "'groups' have 2 nodes with 2 workers, the run has 1 node with 1 worker\n");
}

/* Links of this machine have no latency that can be told: those that psd-run keeps to have. */
FOLDER_TEST(run_groups, the_table_tells_latencies_of_emulated_links,
	    make_folder("groups: [{nodes: 1}, {nodes: 1, network: {latency: 2ms}}]", ""))
{
	struct run done =
		run_program("psd-run", scratch_folder_spell(&folder, "--quiet --system Even @/s.yaml").text, "2>&1");

	cr_expect_not_null(
		strstr(done.text, "\ngroups    split even: 1 node: batch 12; 1 node, 2 ms one way: batch 12\n"), "%s",
		done.text);
	free(done.text);
}

FOLDER_TEST(run_groups, a_file_of_hosts_has_a_line_for_each_worker, make_folder("groups: [{nodes: 2}]", ""))
{
	char arguments[2 * PATH_MAX];

	scratch_folder_write(&folder, "hosts", "127.0.0.1:7900\n", strlen("127.0.0.1:7900\n"));
	snprintf(arguments, sizeof(arguments), "--quiet --hosts %s/hosts --rank 0 %s/s.yaml", folder.path, folder.path);
	struct run told = run_program("psd-run", arguments, "2>&1");

	cr_expect_eq(told.exit_status, 2);
	cr_expect_not_null(strstr(told.text,
				  "'groups' have 2 nodes with 2 workers, the run has 1 node with 1 worker: '--hosts' "
				  "needs a line for each worker\n"),
			   "%s", told.text);
	free(told.text);
}

FOLDER_TEST(run_groups, hosts_are_told_that_they_have_their_own_speed,
	    make_folder("groups: [{nodes: 1, speed: 50%, network: {bandwidth: 1Gbps}}]", ""))
{
	char arguments[2 * PATH_MAX], hosts[32];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n", keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(arguments, sizeof(arguments), "--system Even --hosts %s/hosts --rank 0 %s/s.yaml", folder.path,
		 folder.path);
	struct run told = run_program("psd-run", arguments, "2>&1");

	cr_expect_eq(told.exit_status, 0);
	cr_expect_not_null(strstr(told.text, ": 'speed' and 'network' in 'cluster.groups' have no effect on hosts, "
					     "which are as fast as they are\n"),
			   "%s", told.text);
	free(told.text);
}

FOLDER_TEST(run_groups, a_batch_beyond_the_test_set_is_named, make_folder("nodes: 2", ""))
{
	folder_run_notes(
		&folder, "--system Servers @/s.yaml",
		"note: 'Servers' has no test accuracy: the test set has 8 samples, a test needs a batch of worker 0, "
		"12 samples\n",
		"Ring");
}

FOLDER_TEST(run_groups, only_asynchronous_systems_have_the_median_of_each_worker,
	    make_folder("nodes: 2", "  - {name: Free, sync: ps, asynchronous: {}}\n"))
{
	char *text = folder_run(&folder, "@/s.yaml");

	cr_expect_not_null(
		strstr(text, " iterations, the median counts, each worker's where training is asynchronous\n"), "%s",
		text);
	free(text);
}

FOLDER_TEST(run_groups, slow_nodes_are_counted_and_must_be_there,
	    make_folder("nodes: 2, slow: [{node: 1, compute: 50%}]", ""))
{
	char *text = folder_run(&folder, "--system Servers @/s.yaml");

	cr_expect_not_null(strstr(text, "\ncluster   2 nodes, 1 slowdown; "), "%s", text);
	free(text);
	folder_run_refuses(&folder, "--nodes 1 @/s.yaml",
			   "s.yaml:4:92: 'node' is 1, must be from 0 to 0: the run has 1 node\n");
}

/* ---- a split that is measured ---- */

/* Layers take milliseconds, so that waits of node 1 are exact enough. Alone: the same batch on one worker. */
static struct scratch_folder make_measured(void)
{
	static const char model[] = "name: wide\ninput: {channels: 16384}\nlayers:\n"
				    "  - {name: fc, kind: inner-product, outputs: 64}\n"
				    "  - {name: loss, kind: softmax-loss}\n";
	static const char *const clusters[] = {"groups: [{nodes: 1}, {nodes: 1}], slow: [{node: 1, compute: 10%}]",
					       "nodes: 1"};
	const struct scratch_folder folder = scratch_folder_make();
	char text[1024];

	for (unsigned alone = 0; alone < 2; alone++) {
		snprintf(text, sizeof(text),
			 "title: wide\nmodel: {graph: wide.yaml, batch_per_worker: %d}\ncompute: {device: cpu}\n"
			 "cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}, %s}\n"
			 "systems: [{name: Measured, sync: ring, split: %s}]\n"
			 "train:\n  data: {kind: synthetic, training_samples: 96}\n  iterations: 4\n"
			 "  learning_rate: {policy: fixed, base: 0.01}\n  optimiser: {momentum: 0.9}\n",
			 alone ? ALL_SAMPLES : ALL_SAMPLES / 2, clusters[alone], alone ? "even" : "measured");
		scratch_folder_write(&folder, alone ? "alone.yaml" : "s.yaml", text, strlen(text));
	}
	scratch_folder_write(&folder, "wide.yaml", model, strlen(model));
	return folder;
}

/* Trains to a checkpoint in kept0. Returns the line that tells the split. */
static char *train_measured(const struct scratch_folder *folder, bool has_hosts, const char *options)
{
	const char *program = path_of("psd-run").text;
	char hosts[64], command[2 * PATH_MAX], *said, *line;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(folder, "hosts", hosts, strlen(hosts));
	if (has_hosts)
		snprintf(command, sizeof(command),
			 "run() { %s --hosts hosts --rank $1 --save kept$1 %s s.yaml 2>said$1; }; run 1 & run 0 && "
			 "wait $!",
			 program, options);
	else
		snprintf(command, sizeof(command), "%s --no-emulation --save kept0 %s s.yaml 2>said0", program,
			 options);
	folder_shell(folder, command);
	said = scratch_folder_read(folder, "said0");
	line = strstr(said, "Measured: measured ");
	cr_assert_not_null(line, "%s", said);
	cr_expect_eq(!strstr(said, ": Measured: measures the speed of each group, for "), *options != '\0', "%s", said);
	*strchr(line, '\n') = '\0';
	line = strdup(line);
	free(said);
	return line;
}

static struct psd_tensor_file *open_tensors(const struct scratch_folder *folder, const char *name)
{
	struct psd_tensor_file *file;
	struct psd_error err;

	cr_assert_eq(psd_tensor_file_open(&file, scratch_folder_path(folder, name).text, &err), PSD_OK, "%s", err.text);
	return file;
}

/* Relative to the norm of all parameters. */
static double find_distance(const struct scratch_folder *folder, const char *one, const char *other)
{
	struct psd_tensor_file *files[] = {open_tensors(folder, one), open_tensors(folder, other)};
	const struct psd_file_tensor *tensor;
	double distance = 0.0, norm = 0.0;
	struct psd_error err;

	for (unsigned t = 0; (tensor = psd_tensor_file_at(files[0], t)) != NULL; t++) {
		uint64_t n_bytes;
		float *values[2];

		cr_assert(psd_file_tensor_bytes(tensor, &n_bytes));
		for (unsigned f = 0; f < 2; f++) {
			values[f] = malloc(n_bytes);
			cr_assert_eq(psd_tensor_file_read(files[f], psd_tensor_file_find(files[f], tensor->name), 0,
							  n_bytes, values[f], &err),
				     PSD_OK, "%s", err.text);
		}
		for (uint64_t i = 0; i < n_bytes / sizeof(float); i++) {
			distance += pow((double)values[0][i] - (double)values[1][i], 2);
			norm += pow((double)values[0][i], 2);
		}
		free(values[0]);
		free(values[1]);
	}
	psd_tensor_file_close(files[0]);
	psd_tensor_file_close(files[1]);
	return sqrt(distance / norm);
}

/* Node 1 has a tenth of the speed: 21.8 and 2.2 samples, and other programs may slow one of them to a third. A run that
 * resumes keeps the split, although both nodes are as fast now. */
static void expect_measured(bool has_hosts)
{
	const struct scratch_folder folder = make_measured();
	char *begun = train_measured(&folder, has_hosts, ""), *resumed;
	unsigned fast = 0, slow = 0;
	double distance;

	cr_assert_not_null(strstr(begun, "; batch "), "%s", begun);
	cr_expect_eq(sscanf(strstr(begun, "; batch "), "; batch %u on node 0, %u on node 1", &fast, &slow), 2, "%s",
		     begun);
	cr_expect(fast + slow == ALL_SAMPLES && fast >= 18 && fast < ALL_SAMPLES, "%s", begun);
	free(folder_run(&folder, "--save @/alone @/alone.yaml"));
	distance = find_distance(&folder, "alone/parameters.safetensors", "kept0/parameters.safetensors");
	cr_expect_lt(distance, SAME_NORM_RATIO, "%g", distance);
	cr_expect_gt(distance, 0.0, "sums over other parts round differently");
	resumed = train_measured(&folder, has_hosts, "--resume --iterations 8 --set cluster.slow.0.compute=100%");
	cr_expect_str_eq(resumed, begun);
	free(resumed);
	free(begun);
	scratch_folder_remove(&folder);
}

Test(run_groups, processes_keep_the_split_that_they_measured)
{
	expect_measured(false);
}

Test(run_groups, hosts_keep_the_split_that_they_measured)
{
	expect_measured(true);
}
