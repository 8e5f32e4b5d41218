/* psd-run's options and words about treatments of gradients: optimisers, compression and low rank. How these train is
 * in test_run_updates.c and test_run_gradients.c. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>

#include "tests/real/folder_run.h"
#include "tests/real/plain_softmax.h"
#include "tests/test_with.h"

TestSuite(run_adaptive, .timeout = 120);
TestSuite(run_packed, .timeout = 120);
TestSuite(run_chunks, .timeout = 120);
TestSuite(run_low_rank, .timeout = 120);
TestSuite(run_periods, .timeout = 120);

#define ADAPTIVE                                                                                                       \
	"  - {name: PS, sync: ps}\n  - {name: Ring, sync: ring}\n"                                                     \
	"  - {name: Sparse, sync: ring, sparse: {sparsity: 0.5}}\n"                                                    \
	"  - {name: Packed, sync: ps, compress: {by: one-bit, momentum: before}}\n"
#define PACKED(by) "  - {name: PS, sync: ps}\n  - {name: Packed, sync: ps, compress: {by: " by "}}\n"
#define NARROW	   "  - {name: Ring, sync: ring}\n  - {name: Narrow, sync: ring, low_rank: {rank: 2}}\n"

#define CHUNKS                                                                                                         \
	"  - {name: Managed, sync: ring, managed: {clock: 2, early: 50%, chunk: 16}}\n"                                \
	"  - {name: Sparse, sync: ring, sparse: {sparsity: 0.5, chunk: 16}}\n"
#define LATE	   "  - {name: Ring, sync: ring}\n  - {name: Late, sync: ring, staleness: 1}\n"
#define IN_PERIODS "  - {name: Ring, sync: ring}\n  - {name: Local, sync: ring, local_sgd: {steps: 9}}\n"

/* Keys of `train`. */
#define ADAMW "  learning_rate: {policy: fixed, base: 0.01}\n  optimiser: {kind: adamw}\n"
#define FAST  "  learning_rate: {policy: fixed, base: 0.1}\n"

static void add_scenario(const struct scratch_folder *folder, const char *name, const char *systems, const char *train)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "title: softmax\nmodel: {graph: softmax.yaml, batch_per_worker: 4}\ncompute: {device: cpu}\n"
		 "cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		 "systems:\n%strain:\n  data: {kind: synthetic, training_samples: 40, test_samples: 8}\n"
		 "  iterations: 8\n%s",
		 systems, train);
	scratch_folder_write(folder, name, text, strlen(text));
}

/* s.yaml, and top.yaml with top-k. */
static struct scratch_folder make_folder(const char *systems, const char *train)
{
	const struct scratch_folder folder = scratch_folder_make();

	add_scenario(&folder, "s.yaml", systems, train);
	add_scenario(&folder, "top.yaml", PACKED("top-k"), train);
	scratch_folder_write(&folder, "softmax.yaml", PLAIN_SOFTMAX, strlen(PLAIN_SOFTMAX));
	return folder;
}

/* ---- adaptive ---- */

FOLDER_TEST(run_adaptive, systems_without_whole_gradients_are_refused, make_folder(ADAPTIVE, ADAMW))
{
	static const char sparse[] = "s.yaml:8:5: system 'Sparse' is 'sparse', optimiser 'adamw' needs whole gradients",
			  packed[] = "s.yaml:9:5: system 'Packed' has 'momentum: before', optimiser 'adamw' needs "
				     "gradients without momentum";
	char hosts[64];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	folder_run_refuses(&folder, "--system Sparse @/s.yaml", sparse);
	folder_run_refuses(&folder, "--system Packed @/s.yaml", packed);
	expect_one_line("psd-run",
			scratch_folder_spell(&folder, "--hosts @/hosts --rank 1 --quiet --system Sparse @/s.yaml").text,
			2, sparse);
	expect_one_line("psd-run",
			scratch_folder_spell(&folder, "--hosts @/hosts --rank 0 --quiet --system Packed @/s.yaml").text,
			2, packed);
}

#define RUN "@/s.yaml "
#define SGD "--set train.optimiser.kind=sgd "

/* By servers, which keep parts, and by devices. */
FOLDER_TEST(run_adaptive, a_checkpoint_of_another_optimiser_is_refused, make_folder(ADAPTIVE, ADAMW))
{
#define ELSE " which keeps another state: to begin with its parameters alone, see train.start\n"
	static const char adamw[] = "is of optimiser 'adamw'," ELSE,
			  other[] = "is of another optimiser than 'adamw'," ELSE;

	folder_run_quietly(&folder, RUN "--system PS --iterations 4 --save @/ps");
	folder_run_quietly(&folder, RUN "--system Ring --iterations 4 --save @/ring");
	folder_run_quietly(&folder, RUN SGD "--system PS --iterations 4 --save @/sgd-ps");
	folder_run_quietly(&folder, RUN SGD "--system Ring --iterations 4 --save @/sgd-ring");
	folder_run_refuses(&folder, RUN SGD "--system PS --resume --save @/ps", adamw);
	folder_run_refuses(&folder, RUN SGD "--system Ring --resume --save @/ring", adamw);
	folder_run_refuses(&folder, RUN "--system PS --resume --save @/sgd-ps", other);
	folder_run_refuses(&folder, RUN "--system Ring --resume --save @/sgd-ring", other);
	folder_run_quietly(&folder, RUN "--system PS --resume --save @/ps");
	folder_run_quietly(&folder, RUN "--system Ring --resume --save @/ring");
}

/* ---- runs that resume ---- */

/* One after the other, each of which ends well. The last line is NULL. */
static void run_all(const char *systems, const char *const lines[])
{
	const struct scratch_folder folder = make_folder(systems, FAST);

	for (; *lines; lines++)
		free(folder_run(&folder, *lines));
	scratch_folder_remove(&folder);
}

/* The rest stays the same, whichever way. */
Test(run_packed, the_part_of_a_block_that_travels_may_change)
{
	run_all(PACKED("one-bit"),
		(const char *const[]){
			"--system Packed --save @/c --iterations 4 @/s.yaml",
			"--system Packed --save @/c --resume @/s.yaml",
			"--system Packed --save @/t --iterations 4 @/top.yaml",
			"--system Packed --save @/t --resume --set systems.1.compress.kept=10% @/top.yaml", NULL});
}

/* Residuals of such a run are in session/test_reshape_files.c. */
Test(run_packed, other_blocks_and_systems_resume)
{
	run_all(PACKED("one-bit"),
		(const char *const[]){"--system Packed --save @/c --iterations 2 @/s.yaml",
				      "--system PS --save @/c --iterations 3 --resume @/s.yaml",
				      "--system Packed --save @/c --iterations 4 --resume @/s.yaml",
				      "--system Packed --save @/c --iterations 5 --resume --set "
				      "systems.1.compress.block=2048 @/s.yaml",
				      "--system Packed --save @/c --iterations 6 --resume @/top.yaml",
				      "--system Packed --save @/c --iterations 7 --resume --set "
				      "systems.1.compress.momentum=before @/s.yaml",
				      "--system Packed --save @/c --resume @/s.yaml", NULL});
}

Test(run_low_rank, another_rank_resumes)
{
	run_all(NARROW, (const char *const[]){"--system Narrow --save @/n --iterations 4 @/s.yaml",
					      "--system Narrow --save @/n --iterations 5 --resume --set "
					      "systems.1.low_rank.rank=3 @/s.yaml",
					      "--system Ring --save @/n --iterations 6 --resume @/s.yaml",
					      "--system Narrow --save @/n --iterations 7 --resume @/s.yaml",
					      "--system Narrow --save @/n --resume @/s.yaml", NULL});
}

/* Choices are of chunks of one size. */
Test(run_chunks, other_chunks_resume)
{
	run_all(CHUNKS, (const char *const[]){
				"--system Managed --save @/m --iterations 4 @/s.yaml",
				"--system Managed --save @/m --resume --set systems.0.managed.chunk=8 @/s.yaml",
				"--system Sparse --save @/s --iterations 4 @/s.yaml",
				"--system Sparse --save @/s --resume --set systems.1.sparse.chunk=8 @/s.yaml", NULL});
}

/* At most 3 of 5 servers have one of 3 blocks. The others would be done before workers begin, and have no checkpoint
 * that all could resume from. */
FOLDER_TEST(run_packed, a_server_without_blocks_saves_nothing, make_folder(PACKED("one-bit"), FAST))
{
	folder_run_refuses(
		&folder, "--system Packed --save @/c --set systems.1.servers=5 @/s.yaml",
		" of system 'Packed' has no tensor, with '--save' each must have one: choose fewer 'servers'\n");
	free(folder_run(&folder, "--system Packed --set systems.1.servers=5 @/s.yaml"));
	free(folder_run(&folder, "--system Packed --save @/d --set systems.1.servers=3 @/s.yaml"));
}

/* ---- words ---- */

/* Both hosts have the system, the other one by other options. */
static void check_disagreement(const char *systems, const char *here, const char *there, const char *key,
			       const char *value, const char *other_value)
{
	const struct scratch_folder folder = make_folder(systems, FAST);
	char words[160], other_words[160];

	snprintf(words, sizeof(words), "'systems.%s' is %s here, %s there\n", key, value, other_value);
	snprintf(other_words, sizeof(other_words), "'systems.%s' is %s here, %s there\n", key, other_value, value);
	folder_run_disagrees(&folder, here, there, words, other_words);
	scratch_folder_remove(&folder);
}

Test(run_packed, hosts_that_compress_otherwise_are_refused)
{
	static const char here[] = "--system Packed s.yaml";

	check_disagreement(PACKED("one-bit"), here, "--system Packed top.yaml", "compress.by", "one-bit", "top-k");
	check_disagreement(PACKED("one-bit"), here, "--system Packed --set systems.1.compress.block=2048 s.yaml",
			   "compress.block", "1024", "2048");
	check_disagreement(PACKED("one-bit"), here, "--system Packed --set systems.1.compress.tensors=matrices s.yaml",
			   "compress.tensors", "all", "matrices");
}

TEST_ROW(run_low_rank, hosts_of_another_rank_are_refused,
	 check_disagreement(NARROW, "--system Narrow s.yaml", "--system Narrow --set systems.1.low_rank.rank=3 s.yaml",
			    "low_rank.rank", "2", "3"))

static void check_note(const char *systems, const char *options, const char *words, const char *other)
{
	const struct scratch_folder folder = make_folder(systems, FAST);

	folder_run_notes(&folder, options, words, other);
	scratch_folder_remove(&folder);
}

Test(run_packed, a_note_says_that_something_is_lost)
{
	check_note(PACKED("one-bit"), "@/s.yaml",
		   "note: 'Packed' sends gradients compressed (one-bit), adds the errors to later ones, so that its "
		   "training differs from training without this\n",
		   "'PS'");
	check_note(PACKED("one-bit"), "--set systems.1.compress.tensors=matrices @/top.yaml",
		   "note: 'Packed' sends gradients of matrices compressed (top-k), adds the errors to later ones, ",
		   "'PS'");
	check_note(PACKED("one-bit"), "--set systems.1.compress.kept=100% @/top.yaml", NULL, "'PS'");
}

TEST_ROW(run_low_rank, a_note_says_that_something_is_lost,
	 check_note(NARROW, "@/s.yaml",
		    "note: 'Narrow' sends gradients of matrices as products of rank 2 where these have fewer values, "
		    "adds the errors to later ones, so that its training differs from training without this\n",
		    "'Ring'"))

/* The run has 8 iterations. */
Test(run_periods, a_note_says_that_no_period_was_whole)
{
	check_note(IN_PERIODS, "@/s.yaml",
		   "note: 'Local' was measured over 8 iterations, of which the last exchanges all values; over whole "
		   "periods of 9 it sends less\n",
		   "'Ring'");
	check_note(IN_PERIODS, "--set systems.1.local_sgd.steps=8 @/s.yaml",
		   "averages their parameters every 8 iterations", "was measured over");
}

/* Twice two iterations are under way before a prediction measures two: the run has 8 iterations. */
Test(run_periods, a_note_says_that_updates_were_not_waited_for)
{
	check_note(LATE, "@/s.yaml", "note: 'Late' applies gradients 1 iteration late", "was measured over");
	check_note(LATE, "--iterations 6 @/s.yaml", "note: 'Late' applies gradients 1 iteration late",
		   "was measured over");
	check_note(LATE, "--iterations 5 @/s.yaml",
		   "note: 'Late' was measured over its first iterations, before updates are waited for: with "
		   "--iterations 6 or more they do not count\n",
		   "note: 'Ring'");
}
