/* Every option that writes against every file that a run reads or keeps. The options come from psd-run's table, the
 * files from folders that hold nothing else, and each key that names a file must be in one of the scenarios: a new
 * option is covered by itself, and a new key fails until it has a file. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/document/schema.h"
#include "engine/model/onnx/onnx.pb-c.h"
#include "engine/scenario/scenario_keys.h"
#include "real/run_options.h"
#include "tests/cli_helper.h"
#include "tests/real/data/jpeg_helper.h"
#include "tests/real/kept_port.h"
#include "tests/scratch_folder.h"

TestSuite(run_register, .timeout = 300);

enum { MOST_FILES = 64, N_SPELLINGS = 5 };

/* A call of psd-run, whose folder then has its inputs and kept files alone. Each @ becomes the folder. */
struct call {
	enum psd_run_command command;
	const char *arguments;
	const char *model, *rest; /* files m.yaml and the rest of s.yaml; NULL: none */
	void (*make)(const struct scratch_folder *folder);
	const char *before; /* arguments of a run before; NULL: none */
};

static void write_text(const struct scratch_folder *folder, const char *name, const char *text)
{
	scratch_folder_write(folder, name, text, strlen(text));
}

/* ---- inputs ---- */

#define NETWORK(input, classes)                                                                                        \
	"name: m\ninput: " input "\nlayers:\n  - {name: fc, kind: inner-product, outputs: " classes "}\n"              \
	"  - {name: loss, kind: softmax-loss}\n"
#define TOKENS                                                                                                         \
	"name: m\ninput: {channels: 1, height: 4}\nlayers:\n"                                                          \
	"  - {name: table, kind: embedding, vocabulary: 256, outputs: 4}\n"                                            \
	"  - {name: head, kind: conv, outputs: 256, kernel: 1}\n  - {name: loss, kind: softmax-loss}\n"
#define HEAD HEAD_OF("m.yaml")
#define HEAD_OF(graph)                                                                                                 \
	"title: t\nmodel: {graph: " graph ", batch_per_worker: 2}\n"                                                   \
	"cluster: {nodes: 1, network: {bandwidth: 1Gbps, latency: 50us}}\nsystems:\n"
#define ON_CPU "  - {name: S, sync: ring}\ncompute: {device: cpu}\n"
#define RATE   "  learning_rate: {base: 0.01}\n  iterations: 2\n"

#define PROFILE                                                                                                        \
	"# batch: 2\n# kind: measured\n# origin: here\n# device: none\n# gemm_flops_per_sec: 2TFLOPS\n"                \
	"layer,forward_sec,backward_sec\nfc,1e-5,1e-5\nloss,1e-6,1e-6\n"

#define IDX                                                                                                            \
	HEAD "  - {name: S, sync: ring}\ncompute: {profile: profile.csv}\npublished: published.csv\n"                  \
	     "train:\n  data: {kind: idx, path: .}\n  solver: solver.prototxt\n"

static void make_idx(const struct scratch_folder *folder)
{
	static const uint8_t images[16 + 16] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 2},
					 labels[8 + 4] = {0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 2, 0};

	scratch_folder_write(folder, "train-images-idx3-ubyte", images, sizeof(images));
	scratch_folder_write(folder, "train-labels-idx1-ubyte", labels, sizeof(labels));
	scratch_folder_write(folder, "t10k-images-idx3-ubyte", images, sizeof(images));
	scratch_folder_write(folder, "t10k-labels-idx1-ubyte", labels, sizeof(labels));
	write_text(folder, "published.csv",
		   "system,workers,images_per_sec,speedup,use,source\nS,1,,1.5,check,nobody\n");
	write_text(folder, "solver.prototxt", "base_lr: 0.01\nlr_policy: \"fixed\"\nmax_iter: 2\n");
	write_text(folder, "profile.csv", PROFILE);
}

static void make_cifar(const struct scratch_folder *folder)
{
	static const uint8_t records[4 * 3073];

	scratch_folder_write(folder, "data_batch_1.bin", records, sizeof(records));
	scratch_folder_write(folder, "data_batch_2.bin", records, sizeof(records));
	scratch_folder_write(folder, "test_batch.bin", records, sizeof(records));
}

static void make_tokens(const struct scratch_folder *folder)
{
	static const uint8_t numbers[2 * 64];

	scratch_folder_write(folder, "training", numbers, sizeof(numbers));
	scratch_folder_write(folder, "tested", numbers, sizeof(numbers));
}

static void run_well(const struct scratch_folder *folder, const char *arguments)
{
	const struct run done = run_program("psd-run", scratch_folder_spell(folder, arguments).text, "2>&1");

	cr_assert_eq(done.exit_status, 0, "%s: %s", arguments, done.text);
	free(done.text);
}

static void make_photos(const struct scratch_folder *folder)
{
	scratch_folder_add(folder, "photos");
	for (unsigned class = 0; class < 2; class ++) {
		const struct jpeg jpeg = make_jpeg(8, 8, class ? 255 : 0);

		scratch_folder_add(folder, class ? "photos/dark" : "photos/light");
		scratch_folder_write(folder, class ? "photos/dark/a.jpg" : "photos/light/a.jpg", jpeg.bytes,
				     jpeg.n_bytes);
		tjFree(jpeg.bytes);
	}
}

static void make_packed(const struct scratch_folder *folder)
{
	char command[256];

	make_photos(folder);
	run_well(folder, "pack --quiet --side 8 @/photos -o @/training");
	run_well(folder, "pack --quiet --side 8 @/photos -o @/tested");
	snprintf(command, sizeof(command), "rm -r %s/photos", folder->path);
	cr_assert_eq(system(command), 0);
}

static void make_hosts(const struct scratch_folder *folder)
{
	char hosts[32];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n", keep_port());
	write_text(folder, "hosts", hosts);
	write_text(folder, "secret", "0123456789abcdef");
}

/* Moves a tensor's raw values into a file of its own. */
static void move_out(const struct scratch_folder *folder, Onnx__Tensor *tensor, const char *name)
{
	Onnx__Entry **entries = malloc(sizeof(*entries)), *entry = malloc(sizeof(*entry));

	cr_assert(entries && entry);
	onnx__entry__init(entry);
	entry->key = strdup("location");
	entry->value = strdup(name);
	*entries = entry;
	scratch_folder_write(folder, name, tensor->raw_data.data, tensor->raw_data.len);
	tensor->has_raw_data = 0;
	tensor->has_data_location = 1;
	tensor->data_location = 1;
	tensor->n_external_data = 1;
	tensor->external_data = entries;
}

static void make_onnx(const struct scratch_folder *folder)
{
	FILE *in = fopen("tests/onnx/maps-torchscript.onnx", "rb");
	uint8_t *bytes = calloc(1, 1 << 22), *packed = malloc(1 << 22);
	Onnx__Model *model;

	cr_assert(in && bytes && packed);
	model = onnx__model__unpack(NULL, fread(bytes, 1, 1 << 22, in), bytes);
	cr_assert_not_null(model);
	fclose(in);
	for (size_t i = 0; i < model->graph->n_initializer; i++)
		if (model->graph->initializer[i]->raw_data.len > 64) {
			move_out(folder, model->graph->initializer[i], "weights.bin");
			break;
		}
	scratch_folder_write(folder, "m.onnx", packed, onnx__model__pack(model, packed));
	cr_assert(scratch_folder_has(folder, "weights.bin"));
	onnx__model__free_unpacked(model, NULL);
	free(packed);
	free(bytes);
}

#define TRAINS "--quiet --no-emulation "

static const struct call calls[] = {
	{PSD_RUN_TRAIN, TRAINS "--set train.start=@/start --save @/kept --resume @/s.yaml",
	 NETWORK("{channels: 1, height: 2, width: 2}", "3"), IDX, make_idx,
	 TRAINS "--save @/kept --save-every 1 @/s.yaml && cp @/kept/parameters.safetensors @/start && cp @/start "
		"@/kept/kept-3.safetensors"},
	{PSD_RUN_TRAIN, TRAINS "@/s.yaml", NETWORK("{channels: 3, height: 32, width: 32}", "10"),
	 HEAD ON_CPU "train:\n  data: {kind: cifar10, path: .}\n" RATE, make_cifar, NULL},
	{PSD_RUN_TRAIN, TRAINS "@/s.yaml", NETWORK("{channels: 3, height: 8, width: 8}", "2"),
	 HEAD ON_CPU "train:\n  data: {kind: packed, path: training, test: tested}\n" RATE, make_packed, NULL},
	{PSD_RUN_TRAIN, TRAINS "@/s.yaml", TOKENS,
	 HEAD ON_CPU "train:\n  data: {kind: text, path: training, test: tested}\n" RATE, make_tokens, NULL},
	{PSD_RUN_TRAIN, TRAINS "@/s.yaml", TOKENS,
	 HEAD ON_CPU "train:\n  data: {kind: tokens, path: training, test: tested}\n" RATE, make_tokens, NULL},
	{PSD_RUN_TRAIN, "--quiet --hosts @/hosts --secret @/secret --rank 0 @/s.yaml",
	 NETWORK("{channels: 3, height: 32, width: 32}", "10"), HEAD ON_CPU "train:\n  data: {kind: synthetic}\n" RATE,
	 make_hosts, NULL},
	{PSD_RUN_TRAIN, TRAINS "@/s.yaml", NULL, HEAD_OF("m.onnx") ON_CPU "train:\n  data: {kind: synthetic}\n" RATE,
	 make_onnx, NULL},
	{PSD_RUN_CALIBRATE, "calibrate --quiet @/s.yaml", NETWORK("{channels: 1, height: 2, width: 2}", "3"), IDX,
	 make_idx, NULL},
	{PSD_RUN_PACK, "pack --quiet --side 8 @/photos", NULL, NULL, make_photos, NULL},
	{PSD_RUN_WEIGHTS, "weights --quiet @/m.onnx", NULL, NULL, make_onnx, NULL},
};
enum { N_CALLS = sizeof(calls) / sizeof(calls[0]) };

static struct scratch_folder make_folder(const struct call *call)
{
	const struct scratch_folder folder = scratch_folder_make();

	if (call->model)
		write_text(&folder, "m.yaml", call->model);
	if (call->rest)
		write_text(&folder, "s.yaml", call->rest);
	call->make(&folder);
	if (call->before)
		run_well(&folder, call->before);
	return folder;
}

/* ---- the files ---- */

struct files {
	char names[MOST_FILES][128]; /* below the folder */
	unsigned n;
};

static struct files list_files(const struct scratch_folder *folder)
{
	struct files files = {.n = 0};
	char command[256];
	FILE *pipe;

	snprintf(command, sizeof(command), "cd %s && find . -type f -printf '%%P\\n' | sort", folder->path);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	while (files.n < MOST_FILES && fscanf(pipe, "%127s", files.names[files.n]) == 1)
		files.n++;
	pclose(pipe);
	cr_assert(files.n > 0 && files.n < MOST_FILES);
	return files;
}

/* Names, inodes, sizes, times and links of all files, hidden ones too; the caller frees it. */
static char *describe(const struct scratch_folder *folder)
{
	char command[256];

	snprintf(command, sizeof(command), "find %s ! -type d -printf '%%p %%i %%s %%T@ %%l\\n' | sort", folder->path);
	return run_command(command).text;
}

/* Spelling k of the file, which belongs to links outside of the folder where it is one. */
static void spell(char text[PATH_MAX], const struct scratch_folder *folder, const struct scratch_folder *links,
		  const char *name, unsigned k)
{
	char target[PATH_MAX];

	snprintf(target, sizeof(target), "%s/%s", folder->path, name);
	snprintf(text, PATH_MAX, "%s/link", links->path);
	(void)unlink(text);
	switch (k % N_SPELLINGS) {
	case 0: snprintf(text, PATH_MAX, "%s", target); break;
	case 1: snprintf(text, PATH_MAX, "%s/./%s", folder->path, name); break;
	case 2: snprintf(text, PATH_MAX, "%s/../%s/%s", links->path, strrchr(folder->path, '/') + 1, name); break;
	case 3: cr_assert_eq(symlink(target, text), 0); break;
	default: cr_assert_eq(link(target, text), 0);
	}
}

static void refuses(const char *arguments, const char *path, const char *words)
{
	const struct run done = run_program("psd-run", arguments, "2>&1");
	char expected[PATH_MAX + 128];

	snprintf(expected, sizeof(expected), "%s: %s\n", path, words);
	cr_expect_eq(done.exit_status, 2, "%s: %s", arguments, done.text);
	cr_expect_not_null(strstr(done.text, expected), "%s: %s", arguments, done.text);
	free(done.text);
}

static bool writes(const struct psd_option *option, const struct call *call)
{
	/* a run on hosts refuses --trace by itself */
	return option->file == PSD_OPTION_WRITES && (!option->commands || option->commands >> call->command & 1u) &&
	       !(strstr(call->arguments, "--hosts") && !strcmp(option->name, "--trace"));
}

#define READ	"the file is read by this run, an output must be another file"
#define WRITTEN "the file is written by this run already, an output must be a file of its own"

/* The option with each file: refused, and afterwards nothing has changed. */
static void expect_kept(const struct call *call, const struct scratch_folder *folder,
			const struct scratch_folder *links, const struct psd_option *option, unsigned seed)
{
	const struct files files = list_files(folder);
	char *before = describe(folder), *after;
	const unsigned n_spellings = getenv("PSD_FULL_TESTS") ? N_SPELLINGS : 1;

	for (unsigned f = 0; f < files.n; f++)
		for (unsigned s = 0; s < n_spellings; s++) {
			char path[PATH_MAX], arguments[3 * PATH_MAX];

			spell(path, folder, links, files.names[f], f + s + seed);
			snprintf(arguments, sizeof(arguments), "%s %s %s",
				 scratch_folder_spell(folder, call->arguments).text, option->name, path);
			refuses(arguments, path, READ);
		}
	(void)unlink(scratch_folder_path(links, "link").text);
	after = describe(folder);
	cr_expect_str_eq(before, after, "%s", option->name);
	free(before);
	free(after);
}

Test(run_register, no_option_that_writes_takes_what_is_read_or_kept)
{
	for (unsigned c = 0; c < N_CALLS; c++) {
		const struct scratch_folder folder = make_folder(&calls[c]), links = scratch_folder_make();
		unsigned n_options = 0;

		for (unsigned o = 0; o < psd_run_options_table.n_options; o++)
			if (writes(&psd_run_options_table.options[o], &calls[c]))
				expect_kept(&calls[c], &folder, &links, &psd_run_options_table.options[o], n_options++);
		cr_expect_gt(n_options, 0);
		scratch_folder_remove(&folder);
		scratch_folder_remove(&links);
	}
}

/* A file in the folder of --save that leads to one that is read; such a file may also be a start. */
Test(run_register, no_folder_of_checkpoints_takes_what_is_read)
{
	const struct call *call = &calls[0];
	const struct scratch_folder folder = make_folder(call), other = scratch_folder_make();
	const struct files files = list_files(&folder);
	static const char *const names[] = {"parameters.safetensors", "parameters.safetensors.part"};
	char *before, *after;

	before = describe(&folder);
	for (unsigned o = 0; o < psd_run_options_table.n_options; o++) {
		const struct psd_option *option = &psd_run_options_table.options[o];

		for (unsigned f = 0; option->file == PSD_OPTION_KEEPS && f < files.n; f++) {
			const struct scratch_path target = scratch_folder_path(&folder, files.names[f]),
						  path = scratch_folder_path(&other, names[f % 2]);
			char arguments[3 * PATH_MAX];

			if (strstr(files.names[f], "kept/"))
				continue;
			cr_assert_eq(f % 3 ? link(target.text, path.text) : symlink(target.text, path.text), 0);
			snprintf(arguments, sizeof(arguments), "%s %s %s",
				 scratch_folder_spell(&folder, TRAINS "--set train.start=@/start @/s.yaml").text,
				 option->name, other.path);
			refuses(arguments, path.text, READ);
			cr_assert_eq(unlink(path.text), 0);
		}
	}
	after = describe(&folder);
	cr_expect_str_eq(before, after);
	free(before);
	free(after);
	scratch_folder_remove(&folder);
	scratch_folder_remove(&other);
}

/* Files that are not there yet: every two outputs, and outputs and the files that a run will keep. */
Test(run_register, every_output_is_a_file_of_its_own)
{
	static const char *const kept[] = {"@/new", "@/new/", "@/./new/parameters.safetensors",
					   "@/gone/../new/parameters.safetensors.part",
					   "@/new/iteration-2/host-0-of-1.safetensors"};
	const struct scratch_folder folder = make_folder(&calls[1]);
	const struct psd_command_table *table = &psd_run_options_table;
	char *before = describe(&folder), *after, arguments[2 * PATH_MAX];

	for (unsigned o = 0; o < table->n_options; o++) {
		if (!writes(&table->options[o], &calls[1]))
			continue;
		for (unsigned other = 0; other < o; other++)
			if (writes(&table->options[other], &calls[1])) {
				snprintf(arguments, sizeof(arguments), TRAINS "@/s.yaml %s @/x/../fresh %s @/./fresh",
					 table->options[other].name, table->options[o].name);
				refuses(scratch_folder_spell(&folder, arguments).text, "fresh", WRITTEN);
			}
		for (unsigned k = 0; k < sizeof(kept) / sizeof(kept[0]); k++) {
			snprintf(arguments, sizeof(arguments), TRAINS "@/s.yaml --save @/new %s %s",
				 table->options[o].name, kept[k]);
			refuses(scratch_folder_spell(&folder, arguments).text, strrchr(kept[k], '/') + 1, WRITTEN);
			cr_expect_not(scratch_folder_has(&folder, "new"));
		}
	}
	after = describe(&folder);
	cr_expect_str_eq(before, after);
	free(before);
	free(after);
	scratch_folder_remove(&folder);
}

/* ---- completeness of the table above ---- */

static bool visit_key(const struct psd_schema_spot *spot)
{
	const char *name = strrchr(spot->path, '.');
	char text[96];
	bool *is_known = spot->context;

	/* psd-sim alone reads a platform, and a profile of one system */
	if (spot->key->type != PSD_KEY_PATH || !strcmp(spot->key->name, "platform") ||
	    !strncmp(spot->path, "systems.", strlen("systems.")))
		return true;
	snprintf(text, sizeof(text), "%s: ", name ? name + 1 : spot->path);
	for (unsigned c = 0; c < N_CALLS; c++)
		if ((calls[c].rest && strstr(calls[c].rest, text)) || strstr(calls[c].arguments, spot->path))
			return true;
	cr_expect_fail("'%s' names a file that no scenario above has", spot->path);
	*is_known = false;
	return true;
}

Test(run_register, every_key_and_option_that_names_a_file_is_in_a_call)
{
	bool is_known = true;

	psd_schema_walk(&psd_scenario_root, NULL, NULL, visit_key, &is_known);
	cr_expect(is_known);
	for (unsigned o = 0; o < psd_run_options_table.n_options; o++) {
		const struct psd_option *option = &psd_run_options_table.options[o];
		bool is_in_call = false;

		if (option->value_name &&
		    (!strcmp(option->value_name, "FILE") || !strcmp(option->value_name, "FOLDER")))
			cr_expect_neq(option->file, PSD_OPTION_NO_FILE, "%s", option->name);
		for (unsigned c = 0; c < N_CALLS; c++)
			is_in_call = is_in_call || strstr(calls[c].arguments, option->name);
		cr_expect(is_in_call || option->file == PSD_OPTION_NO_FILE || option->file == PSD_OPTION_WRITES, "%s",
			  option->name);
	}
}
