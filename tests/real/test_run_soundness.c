/* Nothing goes wrong in silence: runs that diverge, files with values that are no numbers, changed bits in files, and
 * workers whose parameters differ. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/real/folder_run.h"
#include "tests/scratch_folder.h"

TestSuite(run_soundness, .timeout = 120);

/* A value behind the ReLU that is no number does not reach the loss. */
static const char model[] = "name: n\ninput: {channels: 16}\nlayers:\n"
			    "  - {name: fc1, kind: inner-product, outputs: 32}\n"
			    "  - {name: r, kind: relu}\n"
			    "  - {name: ip, kind: inner-product, outputs: 10}\n"
			    "  - {name: loss, kind: softmax-loss}\n";
static const char scenario[] =
	"title: sound\nmodel: {graph: n.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
	"cluster: {nodes: 2, network: {bandwidth: 10Gbps, latency: 20us}}\n"
	"systems:\n  - {name: Ring, sync: ring}\n  - {name: PS, sync: ps}\n  - {name: Hybrid, sync: hybrid}\n"
	"  - {name: Sfb, sync: sfb}\n  - {name: Servers, sync: ps, servers: 1}\n"
	"  - {name: Local, sync: ring, local_sgd: {steps: 2}}\n"
	"  - {name: Sparse, sync: ring, sparse: {sparsity: 0.6, chunk: 256}}\n"
	"  - {name: Late, sync: ring, staleness: 1}\n  - {name: Half, sync: ring, wire: fp16}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 16}\n  iterations: 6\n"
	"  learning_rate: {policy: fixed, base: 0.05}\n  optimiser: {momentum: 0.9}\n";

static const char first_file[] = "c/iteration-6/host-0-of-2.safetensors";
static const char second_file[] = "c/iteration-6/host-1-of-2.safetensors";

static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "n.yaml", model, strlen(model));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	return folder;
}

/* psd-run there; all that it writes to standard error. */
static char *run(const struct scratch_folder *folder, int exit_status, const char *options)
{
	char line[4 * PATH_MAX];
	struct run done;

	snprintf(line, sizeof(line), "cd %s && %s --no-emulation --quiet s.yaml %s 2>&1 >/dev/null", folder->path,
		 path_of("psd-run").text, options);
	done = run_command(line);
	cr_expect_eq(done.exit_status, exit_status, "%s: status %d: %s", options, done.exit_status, done.text);
	return done.text;
}

static void run_quietly(const struct scratch_folder *folder, const char *options)
{
	char *text = run(folder, 0, options);

	cr_expect_str_eq(text, "", "%s", options);
	free(text);
}

/* One line, with these words. */
static void run_fails(const struct scratch_folder *folder, int exit_status, const char *options, const char *words)
{
	char *text = run(folder, exit_status, options);

	cr_expect_not_null(strstr(text, words), "%s: '%s' without '%s'", options, text, words);
	cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "%s: %s", options, text);
	free(text);
}

/* ---- bytes of a file of tensors ---- */

struct bytes {
	uint8_t *at;
	size_t n, n_front; /* header with its length */
};

static struct bytes read_bytes(const struct scratch_folder *folder, const char *name)
{
	FILE *in = fopen(scratch_folder_path(folder, name).text, "rb");
	struct bytes bytes;

	cr_assert(in && !fseek(in, 0, SEEK_END), "%s", name);
	bytes.n = (size_t)ftell(in);
	bytes.at = malloc(bytes.n);
	rewind(in);
	cr_assert(bytes.at && fread(bytes.at, 1, bytes.n, in) == bytes.n);
	fclose(in);
	bytes.n_front = 8 + (size_t)bytes.at[0] + ((size_t)bytes.at[1] << 8) + ((size_t)bytes.at[2] << 16);
	return bytes;
}

static void write_bytes(const struct scratch_folder *folder, const char *name, struct bytes bytes)
{
	scratch_folder_write(folder, name, bytes.at, bytes.n);
	free(bytes.at);
}

/* Renames key and kind of the checksums: the file becomes one of a program that has none. */
static void drop_checksums(struct bytes *bytes)
{
	static const char *const words[] = {"psd_checksums", "psd_xxh64"};

	for (unsigned i = 0; i < 2; i++) {
		uint8_t *found = memmem(bytes->at, bytes->n_front, words[i], strlen(words[i]));

		cr_assert(found);
		memcpy(found, "old", 3);
	}
}

/* First byte of the element of a tensor of floats. */
static uint8_t *find_element(const struct bytes *bytes, const char *tensor, unsigned element)
{
	char key[64];
	const char *found;
	size_t offset;

	snprintf(key, sizeof(key), "\"%s\":{", tensor);
	found = memmem(bytes->at, bytes->n_front, key, strlen(key));
	cr_assert(found, "%s", tensor);
	found = strstr(found, "\"data_offsets\":[");
	cr_assert(found && sscanf(found, "\"data_offsets\":[%zu", &offset) == 1);
	return bytes->at + bytes->n_front + offset + sizeof(float) * element;
}

static void set_element(const struct scratch_folder *folder, const char *from, const char *to, const char *tensor,
			unsigned element, uint32_t bits)
{
	struct bytes bytes = read_bytes(folder, from);

	drop_checksums(&bytes);
	memcpy(find_element(&bytes, tensor, element), &bits, sizeof(bits));
	write_bytes(folder, to, bytes);
}

#define BITS_OF_NAN	 UINT32_C(0x7fc00000)
#define BITS_OF_INFINITY UINT32_C(0xff800000)

/* ---- a run that diverges ---- */

static const char ways_out[] = "; lower train.learning_rate.base, or set train.diverged=continue to go on\n";

/* The rate is good for 12 iterations; then it multiplies the loss by a billion each iteration. With a loss scale
 * updates are skipped instead. */
static void expect_divergence(const char *system)
{
	const struct scratch_folder folder = make_folder();
	char options[256], *text;
	unsigned kept;

	snprintf(options, sizeof(options), "--system %s --save c --save-every 2 --iterations 12", system);
	run_quietly(&folder, options);
	snprintf(options, sizeof(options),
		 "--system %s --save c --save-every 2 --resume --iterations 60 --set train.learning_rate.base=100000",
		 system);
	text = run(&folder, 1, options);
	cr_expect(strstr(text, "loss is nan at iteration ") || strstr(text, "loss is inf at iteration ") ||
			  strstr(text, " has a value that is not a finite number (element "),
		  "%s: %s", system, text);
	cr_expect_not_null(strstr(text, ways_out), "%s: %s", system, text);
	cr_assert_not_null(strstr(text, "; the last checkpoint with finite parameters is c/iteration-"), "%s: %s",
			   system, text);
	cr_expect_eq(sscanf(strstr(text, "c/iteration-"), "c/iteration-%u", &kept), 1);
	snprintf(options, sizeof(options), "c/iteration-%u/host-0-of-2.safetensors", kept);
	if (strcmp(system, "Servers") != 0)
		cr_expect(scratch_folder_has(&folder, options), "%s: %s", system, options);
	free(text);
	/* from there it goes on if told so */
	snprintf(options, sizeof(options),
		 "--system %s --save c --resume --iterations 60 --set train.diverged=continue", system);
	free(run(&folder, 0, options));
	scratch_folder_remove(&folder);
}

Test(run_soundness, a_run_that_diverges_ends_and_keeps_a_checkpoint)
{
	expect_divergence("Ring");
	expect_divergence("PS");
}

Test(run_soundness, a_run_of_any_method_that_diverges_ends)
{
	static const char *const systems[] = {"Hybrid", "Sfb", "Servers", "Local", "Sparse", "Late"};

	for (unsigned i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		expect_divergence(systems[i]);
}

/* Without checkpoints and comparisons nothing else looks at numbers before the end. */
Test(run_soundness, a_loss_that_is_no_number_ends_a_run_at_its_iteration)
{
	const struct scratch_folder folder = make_folder();

	run_fails(&folder, 1,
		  "--system Ring --iterations 60 --set train.learning_rate.base=100000 --set train.compare_every=0",
		  ": loss is nan at iteration ");
	scratch_folder_remove(&folder);
}

/* Each host with a folder of its own; only host 0 knows the loss. */
Test(run_soundness, all_hosts_of_a_run_that_diverges_end)
{
	const struct scratch_folder folder = make_folder();
	const char *program = path_of("psd-run").text;
	char line[4 * PATH_MAX], hosts[64], *said;
	struct run done;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(line, sizeof(line),
		 "cd %s; run() { %s --hosts hosts --quiet --system Ring s.yaml --iterations 40 --save-every 2 --set "
		 "train.learning_rate.base=100000 --rank $1 --save c$1 >rank$1 2>&1; echo $? >status$1; }; run 1 & "
		 "run 0; wait; cat status0 status1",
		 folder.path, program);
	done = run_command(line);
	cr_expect_str_eq(done.text, "1\n1\n");
	free(done.text);
	said = scratch_folder_read(&folder, "rank1");
	cr_expect_not_null(strstr(said, ways_out), "%s", said);
	free(said);
	folder_shell(&folder, "test -e c0/iteration-2/host-0-of-2.safetensors");
	folder_shell(&folder, "test -e c1/iteration-2/host-1-of-2.safetensors");
	scratch_folder_remove(&folder);
}

/* The loss of the last iteration is a number; the update that follows it makes parameters that are none. */
Test(run_soundness, the_last_update_counts)
{
	const struct scratch_folder folder = make_folder();

	run_quietly(&folder, "--system Ring --save a --iterations 1");
	set_element(&folder, "a/parameters.safetensors", "huge", "ip.bias", 1, UINT32_C(0x7f7fffff));
	run_fails(&folder, 1,
		  "--system Ring --iterations 1 --set train.start=huge --set train.optimiser.weight_decay=1 "
		  "--set train.learning_rate.base=1000",
		  "ip.bias has a value that is not a finite number (element 1) after 1 iterations; lower "
		  "train.learning_rate.base, or set train.diverged=continue to go on\n");
	scratch_folder_remove(&folder);
}

Test(run_soundness, a_run_may_go_on_all_the_same)
{
	const struct scratch_folder folder = make_folder();
	char *text = run(&folder, 0,
			 "--system Ring --save c --iterations 30 --set train.learning_rate.base=100000 "
			 "--set train.diverged=continue");

	cr_expect_str_eq(text, "psd-run: Ring diverged, its loss is not a number\n");
	free(text);
	cr_expect(scratch_folder_has(&folder, "c/iteration-30/host-1-of-2.safetensors"));
	scratch_folder_remove(&folder);
}

/* ---- values that are no numbers in files ---- */

Test(run_soundness, a_start_with_a_value_that_is_no_number_is_named)
{
	const struct scratch_folder folder = make_folder();

	run_quietly(&folder, "--system Ring --save a");
	set_element(&folder, "a/parameters.safetensors", "n", "ip.bias", 3, BITS_OF_NAN);
	run_fails(&folder, 2, "--system Ring --set train.start=n",
		  "n: ip.bias has a value that is not a finite number (element 3)\n");
	set_element(&folder, "a/parameters.safetensors", "n", "fc1.weight", 17, BITS_OF_NAN); /* behind the ReLU */
	run_fails(&folder, 2, "--system PS --set train.start=n",
		  "n: fc1.weight has a value that is not a finite number (element 17)\n");
	set_element(&folder, "a/parameters.safetensors", "n", "fc1.bias", 0, BITS_OF_INFINITY);
	run_fails(&folder, 2, "--system PS --set train.start=n --set train.diverged=continue",
		  "n: fc1.bias has a value that is not a finite number (element 0)\n");
	scratch_folder_remove(&folder);
}

Test(run_soundness, a_checkpoint_with_a_value_that_is_no_number_is_named)
{
	const struct scratch_folder folder = make_folder();

	run_quietly(&folder, "--system Ring --save c");
	set_element(&folder, second_file, second_file, "fc1.weight.history", 40, BITS_OF_INFINITY);
	run_fails(&folder, 2, "--system Ring --save c --resume --iterations 8",
		  "c/iteration-6/host-1-of-2.safetensors: fc1.weight.history has a value that is not a finite number "
		  "(element 40)\n");
	set_element(&folder, first_file, first_file, "fc1.weight.history", 41, BITS_OF_NAN); /* PS takes it */
	run_fails(&folder, 2, "--system PS --save c --resume --iterations 8",
		  " has a value that is not a finite number (element ");
	scratch_folder_remove(&folder);
}

/* ---- changed bits ---- */

/* Leaves no older checkpoint to go back to. */
static void make_newest(const struct scratch_folder *folder)
{
	run_quietly(folder, "--system Ring --save c");
	folder_shell(folder, "rm -rf $(ls -d c/iteration-* | grep -v iteration-6)");
}

/* Changes a bit of a file, and expects that the run names the file and ends with status 2. */
static void expect_noticed(const struct scratch_folder *folder, const char *name, size_t bit, const char *options)
{
	struct bytes bytes = read_bytes(folder, name);
	char *text;

	bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
	scratch_folder_write(folder, name, bytes.at, bytes.n);
	text = run(folder, 2, options);
	cr_expect_not_null(strstr(text, name), "bit %zu: '%s' without '%s'", bit, text, name);
	free(text);
	bytes.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
	write_bytes(folder, name, bytes);
}

/* Repeats exactly. Half of the bits are of the header. */
static size_t draw_bit(uint32_t *seed, const struct bytes *bytes)
{
	const uint32_t draw = (*seed = *seed * UINT32_C(1664525) + UINT32_C(1013904223)) >> 8;
	const bool is_of_front = draw & 1;

	return is_of_front ? draw / 2 % (8 * bytes->n_front)
			   : 8 * bytes->n_front + draw / 2 % (8 * (bytes->n - bytes->n_front));
}

/* n bits of each host's file of a checkpoint. */
static void check_changed_bits(unsigned n)
{
	static const char *const names[] = {first_file, second_file};
	static const char resume[] = "--system Ring --save c --resume --iterations 8";
	const struct scratch_folder folder = make_folder();
	uint32_t seed = 1;

	make_newest(&folder);
	for (unsigned i = 0; i < 2 * n; i++) {
		const struct bytes bytes = read_bytes(&folder, names[i % 2]);
		const size_t bit = draw_bit(&seed, &bytes);

		free(bytes.at);
		expect_noticed(&folder, names[i % 2], bit, resume);
	}
	run_quietly(&folder, resume);
	scratch_folder_remove(&folder);
}

static void check_changed_starts(unsigned n)
{
	static const char name[] = "a/parameters.safetensors";
	const struct scratch_folder folder = make_folder();
	uint32_t seed = 2;

	run_quietly(&folder, "--system Ring --save a");
	for (unsigned i = 0; i < n; i++) {
		const struct bytes bytes = read_bytes(&folder, name);
		const size_t bit = draw_bit(&seed, &bytes);

		free(bytes.at);
		expect_noticed(&folder, name, bit, "--system PS --set train.start=a/parameters.safetensors");
	}
	run_quietly(&folder, "--system PS --set train.start=a/parameters.safetensors");
	scratch_folder_remove(&folder);
}

Test(run_soundness, a_changed_bit_is_noticed)
{
	check_changed_bits(2);
	check_changed_starts(2);
}

Test(run_soundness, each_of_many_changed_bits_is_noticed)
{
	check_changed_bits(30);
	check_changed_starts(40);
}

/* To another number of hosts, and another system. */
Test(run_soundness, a_changed_bit_is_noticed_by_other_hosts)
{
	const struct scratch_folder folder = make_folder();
	struct bytes bytes;

	make_newest(&folder);
	bytes = read_bytes(&folder, second_file);
	free(bytes.at);
	expect_noticed(&folder, second_file, 8 * bytes.n - 1, "--system PS --nodes 3 --save c --resume --iterations 8");
	expect_noticed(&folder, second_file, 8 * bytes.n - 1,
		       "--system Ring --nodes 1 --save c --resume --iterations 8");
	scratch_folder_remove(&folder);
}

/* It is like one of an older version: the run goes on, and says so. */
Test(run_soundness, a_checkpoint_without_checksums_goes_on)
{
	const struct scratch_folder folder = make_folder();
	char line[4 * PATH_MAX];
	struct run done;

	run_quietly(&folder, "--system Ring --save c");
	for (unsigned h = 0; h < 2; h++) {
		const char *name = h ? second_file : first_file;
		struct bytes bytes = read_bytes(&folder, name);

		drop_checksums(&bytes);
		write_bytes(&folder, name, bytes);
	}
	snprintf(line, sizeof(line),
		 "cd %s && %s --no-emulation s.yaml --system Ring --save c --resume --iterations 8 2>&1 >/dev/null",
		 folder.path, path_of("psd-run").text);
	done = run_command(line);
	cr_expect_eq(done.exit_status, 0);
	cr_expect_not_null(strstr(done.text, "c/iteration-6/host-0-of-2.safetensors: has no checksums, as an older "
					     "psd-run wrote it: damage to its values is not noticed\n"),
			   "%s", done.text);
	free(done.text);
	scratch_folder_remove(&folder);
}

/* ---- workers that differ ---- */

/* Without checksums a changed value of one worker is only found by comparison. */
static void expect_difference(const char *system)
{
	const struct scratch_folder folder = make_folder();
	char options[256], words[256];

	snprintf(options, sizeof(options), "--system %s --save c --save-every 4 --iterations 8", system);
	run_quietly(&folder, options);
	set_element(&folder, "c/iteration-8/host-1-of-2.safetensors", "c/iteration-8/host-1-of-2.safetensors",
		    "fc1.weight", 5, UINT32_C(0x3f000000));
	snprintf(options, sizeof(options), "--system %s --save c --save-every 4 --iterations 16 --resume", system);
	snprintf(words, sizeof(words),
		 "worker 0 has other parameters than worker 1 after 8 iterations: fc1.weight differs; the last "
		 "checkpoint before is c/iteration-4\n");
	run_fails(&folder, 1, options, words);
	cr_expect(scratch_folder_has(&folder, "c/iteration-4/host-1-of-2.safetensors"), "%s", system);
	scratch_folder_remove(&folder);
}

Test(run_soundness, workers_that_differ_are_named)
{
	expect_difference("Ring");
	expect_difference("Sfb");
}

Test(run_soundness, workers_that_differ_are_named_with_any_method)
{
	static const char *const systems[] = {"PS", "Hybrid", "Local", "Sparse", "Late", "Half"};

	for (unsigned i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		expect_difference(systems[i]);
}

Test(run_soundness, comparison_may_be_left_out)
{
	const struct scratch_folder folder = make_folder();

	run_quietly(&folder, "--system Ring --save c");
	set_element(&folder, second_file, second_file, "fc1.weight", 5, UINT32_C(0x3f000000));
	free(run(&folder, 0, "--system Ring --save c --iterations 8 --resume --set train.compare_every=0"));
	run_fails(&folder, 1, "--system Ring --save c --iterations 10 --resume",
		  "worker 0 has other parameters than worker 1 after 8 iterations: ");
	scratch_folder_remove(&folder);
}
