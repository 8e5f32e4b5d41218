/* Checkpoints: names of files, and runs that go on from them. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/data/tensor_file.h"
#include "real/keep/checkpoint.h"
#include "real/keep/old_checkpoint.h"
#include "tests/real/going_on.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

TestSuite(checkpoint, .timeout = 240);
TestSuite(checkpoint_files, .timeout = 20);

/* ---- a run that goes on ---- */

Test(checkpoint, servers_go_on)
{
	going_on_check("schedule: sequential, sync: ps", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: ps, barrier: layer, priority: forward, pair: 4KiB, slice: 16KiB", GOING_ON_SGD, 3, 1,
		       NULL);
	going_on_check("sync: ps, servers: 2", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: ps", GOING_ON_SGD, 4, 2, NULL);
	going_on_check("sync: two-level-ps", GOING_ON_SGD, 4, 2, NULL);
}

/* A worker alone is not asynchronous: as without the key. */
Test(checkpoint, asynchronous_servers_go_on)
{
	going_on_check("sync: ps, asynchronous: {}", GOING_ON_SGD, 1, 1, NULL);
	going_on_check_asynchronous("plain", NULL);
	going_on_check_asynchronous("by-staleness", NULL);
}

Test(checkpoint, factors_go_on)
{
	going_on_check("sync: sfb", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: adam", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: adam, servers: 2", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: hybrid", GOING_ON_SGD, 2, 1, NULL);
}

Test(checkpoint, all_reduces_go_on)
{
	going_on_check("sync: ring", GOING_ON_SGD, 1, 1, NULL);
	going_on_check("sync: ring, barrier: layer", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: halving-doubling, fuse: 8KiB", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: two-level", GOING_ON_SGD, 4, 2, NULL);
}

Test(checkpoint, residuals_go_on)
{
	going_on_check("sync: ring, fuse: 4KiB, sparse: {sparsity: 0.6, chunk: 256, warmup: 5}", GOING_ON_SGD, 2, 1,
		       NULL);
	going_on_check("sync: ring, sparse: {sparsity: 0.6, chunk: 256, feedback: full}", GOING_ON_SGD, 3, 1, NULL);
}

/* Ratios change. */
Test(checkpoint, values_of_16_bits_go_on)
{
	going_on_check("sync: ps, wire: bf16", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: ps, servers: 1, wire: fp16", GOING_ON_LOUD, 2, 1, NULL);
	going_on_check("sync: adam, wire: fp16", GOING_ON_LOUD, 2, 1, NULL);
	going_on_check("sync: ring, wire: fp16", GOING_ON_LOUD, 2, 1, NULL);
	going_on_check("sync: ring, wire: fp16", GOING_ON_SGD ", loss_scale: 16", 2, 1, NULL);
}

TEST_ROW(checkpoint, an_update_by_norms_goes_on,
	 going_on_check("sync: ring",
			"data: {training_samples: 40, test_samples: 32}, optimiser: {kind: lars, trust: 0.01, "
			"weight_decay: 0.1}",
			2, 1, NULL))

static struct training *make(const struct psd_checkpoints *checkpoints, uint32_t first)
{
	struct training *training =
		training_make("cifar10-quick.yaml", "sync: hybrid", 2, 1, 4, 1,
			      "iterations: 4, learning_rate: {base: 0.01}, optimiser: {momentum: 0.9}");

	training->options.worker.checkpoints = checkpoints;
	training->options.worker.first_iteration = first;
	training->options.worker.first_sample = (uint64_t)first * 2 * 4;
	return training;
}

/* Worker 0 dies when all losses of its second iteration are known: all had completed the first. */
FOLDER_TEST(checkpoint, a_run_that_was_killed_goes_on, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 1};
	struct psd_checkpoints_found found = {0};
	struct psd_error err = {.text = ""};
	struct training *whole = make(NULL, 0), *killed = make(&checkpoints, 0), *after = make(&checkpoints, 1);

	training_run(whole);
	cr_assert_eq(whole->status, PSD_OK, "%s", whole->err.text);
	killed->victim = 0;
	training_run(killed);
	cr_expect_eq(killed->status, PSD_ELOST);
	cr_assert_eq(psd_checkpoints_find(&checkpoints, (struct psd_checkpoint_host){2, 2}, 0, &found, &err), PSD_OK);
	cr_assert_eq(found.newest.iterations, 1);
	training_run(after);
	cr_assert_eq(after->status, PSD_OK, "%s", after->err.text);
	cr_expect(training_is_same(after, 0, whole, 0));
	training_free(whole);
	training_free(killed);
	training_free(after);
}

Test(checkpoint, a_run_starts_from_a_file)
{
	going_on_check_start("sync: ring", NULL);
	going_on_check_start("sync: adam, wire: bf16", NULL);
	going_on_check_start("sync: ps, servers: 1, wire: bf16", NULL);
}

/* A failed write replaces nothing. */
FOLDER_TEST(checkpoint, a_run_that_cannot_write_one_ends, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 2};
	struct training *training = make(&checkpoints, 0);

	scratch_folder_write(&folder, "iteration-2", "", 0);
	training_run(training);
	cr_expect_eq(training->status, PSD_ERUN); /* it has begun */
	cr_expect_not_null(strstr(training->err.text, "/iteration-2: no checkpoint can be written there: Not a dir"),
			   "%s", training->err.text);
	training_free(training);
}

/* ---- files ---- */

static void put(const struct scratch_folder *folder, unsigned iterations, unsigned host, unsigned n_hosts)
{
	const struct psd_checkpoints checkpoints = {.folder = folder->path, .every_iterations = 1};
	struct psd_error err = {.text = ""};
	FILE *out;

	cr_assert_eq(psd_checkpoint_begin(&checkpoints, iterations, &err), PSD_OK, "%s", err.text);
	out = fopen(psd_checkpoint_path(&checkpoints, (struct psd_checkpoint_host){host, n_hosts}, iterations).text,
		    "w");
	cr_assert_not_null(out);
	fclose(out);
}

static struct psd_checkpoints_found find_below(const struct scratch_folder *folder, unsigned host, unsigned n_hosts,
					       uint32_t below)
{
	const struct psd_checkpoints checkpoints = {.folder = folder->path, .every_iterations = 1};
	struct psd_checkpoints_found found = {0};
	struct psd_error err = {.text = ""};

	cr_assert_eq(
		psd_checkpoints_find(&checkpoints, (struct psd_checkpoint_host){host, n_hosts}, below, &found, &err),
		PSD_OK, "%s", err.text);
	return found;
}

static struct psd_checkpoints_found find(const struct scratch_folder *folder, unsigned host, unsigned n_hosts)
{
	return find_below(folder, host, n_hosts, 0);
}

static void expect_set(struct psd_checkpoint_set set, uint32_t iterations, unsigned n_hosts, unsigned missing)
{
	cr_expect_eq(set.iterations, iterations, "%u iterations", set.iterations);
	cr_expect_eq(set.n_hosts, n_hosts, "%u hosts", set.n_hosts);
	cr_expect_eq(set.missing, missing, "host %u", set.missing);
}

FOLDER_TEST(checkpoint_files, all_hosts_go_on_from_the_newest_that_all_have, scratch_folder_make())
{
	cr_expect_eq(find(&folder, 2, 2).newest.iterations, 0);
	cr_expect_not(find(&folder, 2, 2).has_any);
	put(&folder, 9, 0, 2);
	put(&folder, 9, 1, 2);
	put(&folder, 10, 1, 2);
	put(&folder, 10, 0, 2);
	put(&folder, 11, 0, 2);
	/* each host alone, which sees the other's checkpoint; then the process that starts all */
	for (unsigned host = 0; host <= 2; host++)
		cr_expect_eq(find(&folder, host, 2).newest.iterations, 10, "host %u", host);
	for (unsigned host = 0; host <= 2; host++)
		expect_set(find(&folder, host, 2).torn, 11, 2, 1);
	cr_expect_eq(find_below(&folder, 2, 2, 11).torn.iterations, 0, "a later one alone");
}

FOLDER_TEST(checkpoint_files, a_host_that_sees_its_own_alone_goes_by_these, scratch_folder_make())
{
	put(&folder, 9, 1, 2);
	put(&folder, 20, 1, 2);
	cr_expect_eq(find(&folder, 1, 2).newest.iterations, 20);
	cr_expect_eq(find(&folder, 0, 2).newest.iterations, 0);
	cr_expect_eq(find(&folder, 1, 2).torn.iterations, 0, "the others have folders of their own");
	cr_expect_eq(find(&folder, 2, 2).newest.iterations, 0, "the process that starts all");
	expect_set(find(&folder, 2, 2).torn, 20, 2, 0);
}

/* A host with the first checkpoint alone may begin; one with two has lost a checkpoint that another has. */
FOLDER_TEST(checkpoint_files, a_host_goes_back_to_what_another_has, scratch_folder_make())
{
	put(&folder, 4, 1, 2);
	cr_expect_eq(find_below(&folder, 1, 2, 1).newest.iterations, 0);
	cr_expect_not(find_below(&folder, 1, 2, 1).has_lost);
	put(&folder, 8, 1, 2);
	cr_expect_eq(find_below(&folder, 1, 2, 9).newest.iterations, 8);
	cr_expect_eq(find_below(&folder, 1, 2, 8).newest.iterations, 4);
	cr_expect_eq(find_below(&folder, 1, 2, 5).newest.iterations, 4);
	cr_expect_eq(find_below(&folder, 1, 2, 4).newest.iterations, 0);
	cr_expect(find_below(&folder, 1, 2, 4).has_lost);
	put(&folder, 4, 0, 2);
	put(&folder, 8, 0, 2);
	cr_expect_eq(find_below(&folder, 1, 2, 8).newest.iterations, 4, "and where it sees the other's");
}

static void put_all(const struct scratch_folder *folder, unsigned iterations, unsigned n_hosts)
{
	for (unsigned h = 0; h < n_hosts; h++)
		put(folder, iterations, h, n_hosts);
}

FOLDER_TEST(checkpoint_files, the_newest_may_be_of_another_number_of_hosts, scratch_folder_make())
{
	put_all(&folder, 8, 4);
	put_all(&folder, 6, 2);
	put(&folder, 12, 0, 3);
	for (unsigned host = 0; host <= 2; host++)
		expect_set(find(&folder, host, 2).newest, 8, 4, 4);
	expect_set(find(&folder, 0, 2).other, 12, 3, 1);
	expect_set(find(&folder, 0, 2).torn, 12, 3, 1);
	put_all(&folder, 8, 2);
	expect_set(find(&folder, 2, 2).newest, 8, 2, 2);
	expect_set(find(&folder, 5, 5).newest, 8, 2, 2);
}

/* Two hosts went on from four, and were killed at their first checkpoint: host 0 sees its own file alone. */
FOLDER_TEST(checkpoint_files, where_all_of_others_are_hosts_share_the_folder, scratch_folder_make())
{
	put_all(&folder, 8, 4);
	put(&folder, 10, 0, 2);
	for (unsigned host = 0; host <= 2; host++)
		expect_set(find(&folder, host, 2).newest, 8, 4, 4);
	cr_expect_not(find(&folder, 0, 2).has_lost);
}

FOLDER_TEST(checkpoint_files, checkpoints_that_others_lack_are_named, scratch_folder_make())
{
	put(&folder, 9, 0, 4);
	put(&folder, 9, 1, 4);
	put(&folder, 9, 3, 4);
	put(&folder, 7, 3, 4);
	expect_set(find(&folder, 2, 2).newest, 0, 0, 0);
	expect_set(find(&folder, 2, 2).other, 9, 4, 2);
	cr_expect_eq(find(&folder, 2, 2).torn.iterations, 0, "nothing to go back to");
	cr_expect(find(&folder, 2, 2).has_any);
}

static unsigned count_files(const struct scratch_folder *folder, unsigned iterations, unsigned n_hosts)
{
	const struct psd_checkpoints checkpoints = {.folder = folder->path, .every_iterations = 1};
	unsigned n = 0;

	for (unsigned h = 0; h < n_hosts; h++)
		n += !access(
			psd_checkpoint_path(&checkpoints, (struct psd_checkpoint_host){h, n_hosts}, iterations).text,
			F_OK);
	return n;
}

static void save(const struct scratch_folder *folder, unsigned iterations, unsigned host, unsigned n_hosts)
{
	const struct psd_checkpoints checkpoints = {.folder = folder->path, .every_iterations = 1};

	put(folder, iterations, host, n_hosts);
	psd_checkpoint_prune(&checkpoints, (struct psd_checkpoint_host){host, n_hosts}, iterations, 2);
}

/* Until all hosts have a first checkpoint of their own. */
FOLDER_TEST(checkpoint_files, those_of_other_hosts_stay_as_long_as_they_are_needed, scratch_folder_make())
{
	put_all(&folder, 7, 5);
	put_all(&folder, 8, 5);
	scratch_folder_write(&folder, "iteration-7/host-3-of-5.safetensors.part", "", 0);
	save(&folder, 10, 0, 2);
	cr_expect_eq(count_files(&folder, 7, 5), 2, "hosts 1 and 3 are host 1's");
	expect_set(find(&folder, 2, 2).newest, 8, 5, 5);
	save(&folder, 10, 1, 2);
	cr_expect_not(scratch_folder_has(&folder, "iteration-7"));
	cr_expect_eq(count_files(&folder, 8, 5), 5);
	save(&folder, 12, 1, 2);
	cr_expect_eq(count_files(&folder, 8, 5), 3);
	expect_set(find(&folder, 2, 2).newest, 10, 2, 2);
	save(&folder, 12, 0, 2);
	cr_expect_not(scratch_folder_has(&folder, "iteration-8"));
}

/* One host takes away what was of four, four share what was of one. */
FOLDER_TEST(checkpoint_files, each_file_of_others_is_one_hosts_to_take_away, scratch_folder_make())
{
	put_all(&folder, 8, 4);
	save(&folder, 9, 0, 1);
	cr_expect_eq(count_files(&folder, 8, 4), 4);
	save(&folder, 10, 0, 1);
	cr_expect_not(scratch_folder_has(&folder, "iteration-8"));
	for (unsigned iterations = 11; iterations <= 12; iterations++)
		for (unsigned h = 0; h < 4; h++)
			save(&folder, iterations, h, 4);
	cr_expect_eq(count_files(&folder, 9, 1) + count_files(&folder, 10, 1), 0);
}

FOLDER_TEST(checkpoint_files, other_names_are_no_checkpoints, scratch_folder_make())
{
	static const char *const names[] = {"iteration-0",  "iteration-07", "iteration-7x", "iteration-4294967296",
					    "iteration--7", "iteration-",   "iteration- 7", "7"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char file[64];

		scratch_folder_add(&folder, names[i]);
		snprintf(file, sizeof(file), "%s/host-0-of-1.safetensors", names[i]);
		scratch_folder_write(&folder, file, "", 0);
	}
	put(&folder, 3, 0, 1);
	scratch_folder_write(&folder, "iteration-3/host-1-of-1.safetensors", "", 0);
	scratch_folder_write(&folder, "iteration-3/host-00-of-1.safetensors", "", 0);
	scratch_folder_write(&folder, "iteration-3/host-0-of-1.safetensors.part", "", 0);
	cr_expect_eq(find(&folder, 1, 1).newest.iterations, 3);
}

FOLDER_TEST(checkpoint_files, the_last_two_of_a_host_stay, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 1};

	for (unsigned i = 4; i <= 8; i++) { /* 8: belongs to a run that resumed from 6 */
		put(&folder, i, 0, 2);
		if (i != 5)
			put(&folder, i, 1, 2);
	}
	scratch_folder_write(&folder, "iteration-5/host-0-of-2.safetensors.part", "", 0);
	psd_checkpoint_prune(&checkpoints, (struct psd_checkpoint_host){0, 2}, 7, 2);
	cr_expect(scratch_folder_has(&folder, "iteration-7/host-0-of-2.safetensors"));
	cr_expect(scratch_folder_has(&folder, "iteration-6/host-0-of-2.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "iteration-8/host-0-of-2.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "iteration-5"), "nobody has anything there");
	cr_expect_not(scratch_folder_has(&folder, "iteration-4/host-0-of-2.safetensors"));
	cr_expect(scratch_folder_has(&folder, "iteration-4/host-1-of-2.safetensors"), "the other host's");
	cr_expect(scratch_folder_has(&folder, "iteration-8/host-1-of-2.safetensors"), "the other host's");
}

/* Server 1 completes iteration 3 with what workers send when they have completed 2, while server 2 still writes 2. */
FOLDER_TEST(checkpoint_files, the_last_three_of_separate_servers_stay, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 1};

	put(&folder, 1, 0, 3);
	put(&folder, 2, 0, 3);
	psd_checkpoint_prune(&checkpoints, (struct psd_checkpoint_host){0, 3}, 2, 3);
	for (unsigned i = 0; i <= 3; i++) {
		if (i > 0)
			put(&folder, i, 1, 3);
		psd_checkpoint_prune(&checkpoints, (struct psd_checkpoint_host){1, 3}, i, 3);
	}
	put(&folder, 1, 2, 3);
	cr_expect_eq(find(&folder, 3, 3).newest.iterations, 1);
	put(&folder, 4, 1, 3);
	psd_checkpoint_prune(&checkpoints, (struct psd_checkpoint_host){1, 3}, 4, 3);
	cr_expect_not(scratch_folder_has(&folder, "iteration-1/host-1-of-3.safetensors"));
	cr_expect(scratch_folder_has(&folder, "iteration-2/host-1-of-3.safetensors"));
}

FOLDER_TEST(checkpoint_files, later_ones_of_a_host_are_dropped, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 1};
	struct psd_error err = {.text = ""};

	put(&folder, 4, 0, 2);
	put(&folder, 6, 0, 2);
	put(&folder, 8, 0, 2);
	put(&folder, 8, 1, 2);
	scratch_folder_write(&folder, "iteration-6/host-0-of-2.safetensors.part", "", 0);
	cr_assert_eq(psd_checkpoint_drop_later(&checkpoints, (struct psd_checkpoint_host){0, 2}, 4, &err), PSD_OK, "%s",
		     err.text);
	cr_expect(scratch_folder_has(&folder, "iteration-4/host-0-of-2.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "iteration-6/host-0-of-2.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "iteration-6/host-0-of-2.safetensors.part"));
	cr_expect_not(scratch_folder_has(&folder, "iteration-8/host-0-of-2.safetensors"));
	cr_expect(scratch_folder_has(&folder, "iteration-8/host-1-of-2.safetensors"), "the other host's");
	put(&folder, 4, 2, 4);
	put(&folder, 6, 2, 4);
	put(&folder, 6, 3, 4);
	cr_assert_eq(psd_checkpoint_drop_later(&checkpoints, (struct psd_checkpoint_host){0, 2}, 4, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_eq(count_files(&folder, 6, 4), 1, "host 3 of 4 is host 1's");
	cr_expect_eq(count_files(&folder, 4, 4), 1);
	scratch_folder_add(&folder, "iteration-5");
	scratch_folder_add(&folder, "iteration-5/host-0-of-2.safetensors");
	cr_expect_eq(psd_checkpoint_drop_later(&checkpoints, (struct psd_checkpoint_host){0, 2}, 4, &err), PSD_EFILE);
	cr_expect_not_null(strstr(err.text, ": host 0's checkpoints of later iterations cannot be removed: "), "%s",
			   err.text);
}

/* A server may be ahead of this host: between its folder and its file no host removes the folder. */
FOLDER_TEST(checkpoint_files, a_checkpoint_that_another_host_begins_stays, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 1};
	struct psd_error err = {.text = ""};

	put(&folder, 4, 0, 3);
	cr_assert_eq(psd_checkpoint_begin(&checkpoints, 5, &err), PSD_OK);
	cr_assert_eq(psd_checkpoint_drop_later(&checkpoints, (struct psd_checkpoint_host){0, 3}, 4, &err), PSD_OK);
	cr_expect(scratch_folder_has(&folder, "iteration-5"));
	psd_checkpoint_prune(&checkpoints, (struct psd_checkpoint_host){0, 3}, 4, 3);
	cr_expect(scratch_folder_has(&folder, "iteration-5"));
	put(&folder, 6, 0, 3);
	psd_checkpoint_prune(&checkpoints, (struct psd_checkpoint_host){0, 3}, 6, 3);
	cr_expect_not(scratch_folder_has(&folder, "iteration-5"), "nobody is behind by so much");
}

FOLDER_TEST(checkpoint_files, a_folder_that_cannot_be_written_is_refused, scratch_folder_make())
{
	const struct scratch_path file = scratch_folder_path(&folder, "file"),
				  below = scratch_folder_path(&folder, "a/b");
	struct psd_checkpoints at_file = {.folder = file.text, .every_iterations = 1},
			       at_below = {.folder = below.text, .every_iterations = 1};
	struct psd_error err = {.text = ""};

	scratch_folder_write(&folder, "file", "", 0);
	cr_expect_eq(psd_checkpoints_open(&at_file, &err), PSD_EFILE);
	cr_expect_not_null(strstr(err.text, "no checkpoint can be written there: "), "%s", err.text);
	cr_expect_eq(psd_checkpoints_open(&at_below, &err), PSD_EFILE);
}

/* By a link to a folder of another run, whose files stay as they are. */
FOLDER_TEST(checkpoint_files, a_folder_that_was_replaced_is_left_alone, scratch_folder_make())
{
	const struct scratch_path own = scratch_folder_path(&folder, "c"),
				  moved = scratch_folder_path(&folder, "moved"),
				  other = scratch_folder_path(&folder, "other");
	const struct psd_checkpoint_host host = {0, 1};
	struct psd_checkpoints checkpoints = {.folder = own.text, .every_iterations = 1};
	struct psd_checkpoints_found found;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_checkpoints_open(&checkpoints, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_checkpoint_begin(&checkpoints, 4, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(rename(own.text, moved.text), 0);
	cr_expect_eq(psd_checkpoint_begin(&checkpoints, 8, &err), PSD_EFILE);
	cr_expect_not_null(strstr(err.text, "/c: no checkpoint can be written there: No such file or "), "%s",
			   err.text);
	scratch_folder_add(&folder, "other");
	scratch_folder_add(&folder, "other/iteration-9");
	scratch_folder_write(&folder, "other/iteration-9/host-0-of-1.safetensors", "", 0);
	cr_assert_eq(symlink(other.text, own.text), 0);
	cr_expect_eq(psd_checkpoint_begin(&checkpoints, 8, &err), PSD_EFILE);
	cr_expect_not_null(strstr(err.text, "/c: another folder has taken this place since the run began: "), "%s",
			   err.text);
	cr_expect_eq(psd_checkpoints_find(&checkpoints, host, 0, &found, &err), PSD_EFILE);
	cr_expect_eq(psd_checkpoint_drop_later(&checkpoints, host, 4, &err), PSD_EFILE);
	psd_checkpoint_prune(&checkpoints, host, 4, 2);
	cr_expect(scratch_folder_has(&folder, "other/iteration-9/host-0-of-1.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "other/iteration-8"));
}

FOLDER_TEST(checkpoint_files, a_checkpoint_is_not_written_through_a_link, scratch_folder_make())
{
	const struct scratch_path other = scratch_folder_path(&folder, "other"),
				  link = scratch_folder_path(&folder, "iteration-8");
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 1};
	struct psd_error err = {.text = ""};

	scratch_folder_add(&folder, "other");
	cr_assert_eq(symlink(other.text, link.text), 0);
	cr_expect_eq(psd_checkpoint_begin(&checkpoints, 8, &err), PSD_EFILE);
	cr_expect_not_null(strstr(err.text, "/iteration-8: is a symbolic link, must be a folder: "), "%s", err.text);
}

/* ---- a split that was measured ---- */

static void expect_split(const char *note, enum psd_status status, bool has_split)
{
	const struct scratch_folder folder = scratch_folder_make();
	const char *path = scratch_folder_path(&folder, "c").text;
	const struct psd_file_note notes[] = {{"split", note}};
	struct psd_tensor_writer *writer;
	struct psd_error err = {.text = ""};
	double sec[2] = {0.0, 0.0};
	bool is_there = !has_split;

	cr_assert_eq(psd_tensor_writer_open(&writer, path, NULL, 0, notes, 1, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_tensor_writer_finish(writer, &err), PSD_OK, "%s", err.text);
	psd_tensor_writer_close(writer);
	cr_expect_eq(psd_old_checkpoint_read_split(sec, 2, path, &is_there, &err), status, "'%s': %s", note, err.text);
	cr_expect_eq(is_there, has_split, "'%s'", note);
	if (status)
		cr_expect_not_null(strstr(err.text, "must be the seconds of a sample on each group, each from 1e-09"),
				   "%s", err.text);
	scratch_folder_remove(&folder);
}

Test(checkpoint_files, a_split_has_seconds_that_a_worker_can_need)
{
	static const char *const wrong[] = {"1e-300 1e-3", "1e-3 1e300", "inf 1e-3", "nan 1e-3",
					    "0 1e-3",	   "-1e-3 1e-3", "x"};

	expect_split("1e-3 2e-3", PSD_OK, true);
	expect_split("1e-3", PSD_OK, false);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_split(wrong[i], PSD_EINVAL, false);
}
