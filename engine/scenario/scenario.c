/* A scenario file from end to end: the top level and its small sections here, the others in scenario_*.c. Refuses to
 * open any file but the scenario itself. */
#include "engine/scenario/scenario.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/document/overlay.h"
#include "engine/scenario/device.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/scenario_variant.h"

enum { TITLE_MAX_BYTES = 200 };

const char *const psd_fidelity_names[] = {"flow", "message", NULL};

#define KEY(text, kind, member) .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_scenario, member)
#define SECTION(text, table)	.name = (text), .type = PSD_KEY_SECTION, .section = &(table)

#define LIST(text, member, most)                                                                                       \
	KEY(text, TEXT, choices.member), .most_entries = (most),                                                       \
					 .n_entries_offset = offsetof(struct psd_scenario, choices.n_##member),        \
					 .uses = PSD_BY_ALL | PSD_AGREED

#define SEQUENCE                                                                                                       \
	KEY("sequence", UNSIGNED, choices.sequence), .lowest = 1, .highest = 65536, .uses = PSD_BY_ALL | PSD_AGREED,   \
						     .help = "number of tokens in a sample, for a YAML model whose "   \
							     "input is a sequence of tokens. Default: "                \
							     "the number in the model's file"

/* Keys that psd-sim describe takes as well, beside the sequence. Hosts and checkpoints rely on the order of keys. */
static const struct psd_key choice_keys[] = {
	{LIST("input", inputs, PSD_MODEL_INPUTS_MAX), .are_named = true,
	 .help = "sizes that an ONNX or Caffe file leaves open. NAME is an input, with its sizes without the batch: "
		 "{data: 3x224x224}; or an open axis in the file, with its size: {height: 224}. Default: the sizes of "
		 "the training data, where they are known"},
	{LIST("tied", tied, PSD_MODEL_TIED_MAX),
	 .help = "layers of an ONNX file that share the weight matrix of an earlier layer (tied weights). An entry is "
		 "LAYER or LAYER=EARLIER; layers that are not listed have their own matrices. none: no layer shares. "
		 "Default: a layer shares if its matrix equals an embedding table or is stored only once in the file; "
		 "layers of a repeated block (layers.0.fc, layers.1.fc) do not share"},
	{LIST("outputs", outputs, PSD_MODEL_OUTPUTS_MAX),
	 .help = "names of outputs of the ONNX file for which the network is trained. The loss is computed from the "
		 "first. Layers that no listed output depends on are left out. Default: the first output in the file"},
	{.name = NULL},
};

static const struct psd_key model_keys[] = {
	{KEY("graph", PATH, graph_path), .is_required = true, .uses = PSD_BY_ALL | PSD_AGREED,
	 .help = "file of the neural network: YAML, ONNX (.onnx) or Caffe (.prototxt)"},
	{SEQUENCE},
	{KEY("batch_per_worker", UNSIGNED, batch_per_worker), .is_required = true, .lowest = 1, .highest = 1e6,
	 .uses = PSD_BY_ALL | PSD_AGREED, .help = "number of samples that each worker processes in an iteration"},
	{KEY("precision", CHOICE, precision), .names = psd_precision_names, .fallback = "fp32", .uses = PSD_BY_SIM,
	 .is_refused = true,
	 .help = "arithmetic of layers and width of gradients, in predictions. fp32: 32 bits, but convolutions in TF32 "
		 "if the device has it; tf32: as fp32, but linear layers in TF32 as well; mixed: gradients are sent as "
		 "fp16; bf16: gradients are sent as bf16. With mixed and bf16, layers use the device's matrix units if "
		 "it has any; where 16 bits are no faster, products are in fp32"},
	{KEY("recompute", FLAG, recomputes), .names = psd_recompute_names, .fallback = "none", .uses = PSD_BY_SIM,
	 .is_refused = true,
	 .help = "activations that backward computes again instead of keeping them (activation checkpointing), in "
		 "predictions. blocks: memory keeps the output of each repeated block (`repeat` in the model's YAML) "
		 "and all activations of one block. Backward repeats a block's forward, except layers whose output "
		 "no gradient reads. With `samples_per_sec` the time is the measured one, whether it recomputes or "
		 "not"},
	{.name = NULL},
};
static const struct psd_section model = {.tables = {model_keys, choice_keys}};

static const struct psd_key tail_keys[] = {
	{KEY("chance", RATIO, spread.tail_chance_ratio), .lowest = 1e-6, .highest = 1, .is_required = true,
	 .help = "share of a worker's iterations that are slow"},
	{KEY("factor", NUMBER, spread.tail_factor), .lowest = 1, .highest = 1e6, .is_required = true,
	 .help = "duration of a device's work in a slow iteration, divided by the duration in other iterations"},
	{.name = NULL},
};
static const struct psd_section tail = {.tables = {tail_keys}};

static const struct psd_key compute_keys[] = {
	{KEY("profile", PATH, profile_path), .is_required = true, .rival = "device",
	 .help = "CSV file with the measured seconds of each layer on one worker, see traces/profiles/README.md. It "
		 "replaces a modelled device"},
	{KEY("device", NAME, device_name), .is_required = true, .rival = "profile", .plain = "cpu",
	 .names = psd_device_names,
	 .help = "device for which layer times are modelled, from its maker's figures and assumed efficiencies. It "
		 "replaces measured times (`compute.profile`)"},
	{KEY("samples_per_sec", NUMBER, samples_per_sec), .former = "images_per_sec", .lowest = 0.001, .highest = 1e9,
	 .help = "measured throughput of one worker, in samples per second; a sequence is one sample. All layer times "
		 "are multiplied by one factor, so that the worker has this throughput. With `compute.device` it also "
		 "scales matrix products of factors and low-rank gradients. Default: layer times are not scaled"},
	{KEY("mfu", RATIO, mfu_ratio), .lowest = 0.0001, .highest = 1, .rival = "samples_per_sec",
	 .help = "model FLOPs utilisation of one worker: its FLOP per second, divided by the peak of `compute.device` "
		 "in this precision. All layer times are multiplied by one factor, so that the worker has this "
		 "utilisation. It also scales matrix products of factors and low-rank gradients. Default: layer times "
		 "are not scaled"},
	{KEY("jitter", RATIO, jitter_ratio), .highest = 1, .fallback = "0", .uses = PSD_BY_SIMULATION | PSD_BY_REPLAY,
	 .help = "random spread of each layer's time: standard deviation divided by mean. The time is drawn anew for "
		 "each layer, forward and backward, on each worker in each iteration"},
	{KEY("spread", RATIO, spread.ratio), .highest = 1, .fallback = "0", .uses = PSD_BY_SIMULATION | PSD_BY_REPLAY,
	 .help = "random spread of a device's whole work in an iteration: standard deviation divided by mean, "
		 "log-normal. It is drawn for each worker and iteration, in addition to `compute.jitter`"},
	{SECTION("tail", tail), .uses = PSD_BY_SIMULATION | PSD_BY_REPLAY,
	 .help = "slow iterations: in some iterations, drawn for each worker, all work of its device takes longer. "
		 "Default: no slow iterations"},
	{KEY("replay", FLAG, has_replay), .fallback = "false", .uses = PSD_BY_PSD_RUN | PSD_AGREED,
	 .help = "replay the predicted run in psd-run instead of training. Operations become waits of their predicted "
		 "duration; messages are really sent"},
	{KEY("real_workers", UNSIGNED, replay.real_workers), .lowest = 1, .highest = PSD_MAX_HOSTS,
	 .when = {"replay", 1u << true, 0}, .uses = PSD_BY_REPLAY | PSD_AGREED,
	 .help = "number of workers, counted from worker 0, that compute on `train.device` while the others replay. "
		 "Needs `emulation.dilation` 1 and `emulation.payload_scale` 1. Default: all workers replay"},
	{.name = NULL},
};
static const struct psd_section compute = {.tables = {compute_keys}};

/* Smaller shares are useless, and would make a payload of 2^53 bytes one byte. */
#define LEAST_PAYLOAD_RATIO 1e-9

static const struct psd_key emulation_keys[] = {
	{KEY("dilation", NUMBER, replay.dilation_ratio), .lowest = 1, .highest = PSD_MOST_DILATION, .fallback = "1",
	 .word = "auto", .word_offset = offsetof(struct psd_scenario, replay.finds_dilation),
	 .help = "factor by which a replay is slower than the predicted cluster. auto: the smallest factor at which "
		 "this machine executes all operations in time"},
	{KEY("payload_scale", RATIO, replay.payload_ratio), .lowest = LEAST_PAYLOAD_RATIO, .highest = 1,
	 .fallback = "1",
	 .help = "share of each message's bytes that is really sent. Emulated links are slower by the same ratio, so "
		 "that each message takes the same time"},
	{.name = NULL},
};

/* Real workers compute at their own speed, and send whole messages. */
static enum psd_status check_emulation(const struct psd_schema_reader *reader, void *base,
				       const struct psd_node *mapping)
{
	const struct psd_scenario *scenario = base;
	const struct psd_replay *replay = &scenario->replay;
	const char *const name = replay->finds_dilation || replay->dilation_ratio != 1.0 ? "dilation"
				 : replay->payload_ratio != 1.0				 ? "payload_scale"
											 : NULL;
	const struct psd_node *said = name ? psd_node_child(mapping, name) : NULL;

	if (replay->real_workers == 0 || !said)
		return PSD_OK;
	return psd_error_set(
		reader->err, PSD_EINVAL, said->at,
		"'%s' is '%.40s', must be 1 with 'real_workers', which compute in real time and send whole messages",
		name, said->text);
}

static const struct psd_section emulation = {.tables = {emulation_keys}, .check = check_emulation};

static const struct psd_key calibration_keys[] = {
	{KEY("workers", UNSIGNED, calibration.workers), .lowest = 1, .highest = PSD_MAX_HOSTS,
	 .help = "largest number of workers that was measured. Tables mark rows with more workers. Needs "
		 "`calibration.bandwidth`. Default: no row is marked"},
	{KEY("bandwidth", RATE, calibration.bandwidth_bps),
	 .help = "bandwidth of each node's link during the measurements, each direction. Tables mark rows with another "
		 "bandwidth. Needs `calibration.workers`. Default: no row is marked"},
	{KEY("spread", RATIO, calibration.spread_ratio), .highest = PSD_MOST_SPREAD_RATIO,
	 .help = "largest relative difference between repetitions of a measurement. Above 15% psd-sim warns. Default: "
		 "no warning"},
	{.name = NULL},
};

/* A calibration without links has neither key. */
static enum psd_status check_calibration(const struct psd_schema_reader *reader, void *base,
					 const struct psd_node *mapping)
{
	const struct psd_node *workers = psd_node_child(mapping, "workers");
	const struct psd_node *bandwidth = psd_node_child(mapping, "bandwidth");

	(void)base;
	if (!workers == !bandwidth)
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, workers ? workers->key_at : bandwidth->key_at,
			     "'%s' needs '%s' beside it", workers ? "workers" : "bandwidth",
			     workers ? "bandwidth" : "workers");
}

static const struct psd_section calibration = {.tables = {calibration_keys}, .check = check_calibration};

static const struct psd_key root_keys[] = {
	{KEY("title", TEXT, title), .uses = PSD_BY_ALL,
	 .help = "title of the scenario, printed above tables and in a column of the CSV. Default: the path of the "
		 "scenario file"},
	{SECTION("model", model), .is_required = true,
	 .help = "neural network that is trained, with its batch, precision and recomputation"},
	{SECTION("compute", compute), .is_required = true, .uses = PSD_BY_SIM | PSD_BY_REPLAY | PSD_BY_CHOICE,
	 .help = "time that layers take on a worker's device"},
	{SECTION("emulation", emulation), .when = {"compute.replay", 1u << true, 0}, .uses = PSD_BY_REPLAY | PSD_AGREED,
	 .help = "scaling of a replay that this machine could not execute in its real size or speed. Default: no "
		 "scaling"},
	{SECTION("cluster", psd_scenario_cluster), .is_required = true, .uses = PSD_BY_ALL,
	 .help = "nodes, the network between them, and costs of the communication software"},
	{KEY("systems", SECTION, systems), .section = &psd_scenario_system, .is_required = true,
	 .most_entries = PSD_MAX_SYSTEMS, .n_entries_offset = offsetof(struct psd_scenario, n_systems),
	 .entry_bytes = sizeof(struct psd_system), .uses = PSD_BY_ALL | PSD_AGREED,
	 .help = "systems to compare. A system is one way to synchronise gradients between workers"},
	{SECTION("sweep", psd_scenario_sweep), .uses = PSD_BY_ALL,
	 .help = "clusters to compare: the table has a row for each system on each combination of values from these "
		 "lists. Default: one cluster, as `cluster` describes it"},
	{KEY("fidelity", CHOICE, fidelity), .names = psd_fidelity_names, .fallback = "flow", .uses = PSD_BY_SIMULATION,
	 .help = "detail of the simulation. flow: messages of one operation between the same two workers are simulated "
		 "as one; message: each message is simulated alone, which is slower"},
	{KEY("iterations", UNSIGNED, iterations), .lowest = 1, .highest = PSD_MAX_MEASURED_ITERATIONS,
	 .uses = PSD_BY_SIMULATION | PSD_BY_REPLAY,
	 .help = "number of measured iterations, after the iterations of warm-up. Default: 1; 2 with `barrier: layer`; "
		 "20 with `systems.asynchronous` or `compute.jitter`; 100 with `compute.spread` or `compute.tail`; 4 "
		 "in a replay"},
	{KEY("most_events", COUNT, most_events), .lowest = 1, .highest = 1e15, .fallback = "20000000",
	 .uses = PSD_BY_SIM,
	 .help = "largest number of events (operations, messages) in the simulation of one row of the table. A million "
		 "events take half a second. A row that needs more gets an estimate, or is refused if `--estimate` "
		 "cannot model some key of the scenario. Estimates with `systems.asynchronous` also have events of "
		 "each worker, and are refused if these are more"},
	{KEY("seed", COUNT, seed), .highest = 4294967295.0, .fallback = "1", .uses = PSD_BY_ALL | PSD_AGREED,
	 .help = "seed of all random numbers, such as initial parameters, order of samples and jitter. Equal seeds "
		 "give equal results"},
	{KEY("baseline", TEXT, baseline), .fallback = "compute", .uses = PSD_BY_SIM,
	 .help = "name of the system whose throughput on a single worker counts as speedup 1. compute: throughput of a "
		 "single worker that computes layers and nothing else"},
	{KEY("published", PATH, published_path), .uses = PSD_BY_SIM,
	 .help = "CSV file of published results, which tables show beside predictions. It is ignored if --set changes "
		 "`cluster.network.bandwidth`. Default: no published results"},
	{SECTION("calibration", calibration), .uses = PSD_BY_SIM,
	 .help = "range of the measurements from which the scenario's constants come. psd-run calibrate writes it"},
	{KEY("job", SECTION, job), .section = &psd_scenario_job, .has_offset = offsetof(struct psd_scenario, has_job),
	 .uses = PSD_BY_SIM,
	 .help = "the whole training, with its prices and bounds, for `psd-sim ask`. Default: questions about it are "
		 "not answered"},
	{KEY("train", SECTION, train), .section = &psd_scenario_train,
	 .has_offset = offsetof(struct psd_scenario, has_train), .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "training job. psd-run needs it, except in a replay"},
	{.name = NULL},
};

/* Title of a scenario without one: its path, or the file's name where the path is too long for a title. It passes
 * check_title(): "./" stands before a sign, '?' for a control character. NULL when memory runs out. */
static const char *title_of_path(const char *path, struct psd_arena *arena)
{
	const char *slash = strrchr(path, '/');
	const char *name = strlen(path) > TITLE_MAX_BYTES && slash ? slash + 1 : path;
	const size_t length = strlen(name) < TITLE_MAX_BYTES ? strlen(name) : TITLE_MAX_BYTES;
	char *title = psd_arena_copy(arena, name, length);

	if (!title)
		return NULL;
	psd_text_make_plain(title);
	if (!strchr("=+-@", *title))
		return title;
	char *in_folder = psd_arena_take(arena, length + sizeof("./"));
	if (in_folder)
		snprintf(in_folder, TITLE_MAX_BYTES + 1, "./%s", title);
	return in_folder;
}

/* It is a cell of the CSV: one line, and nothing that a spreadsheet takes for a formula. */
static enum psd_status check_title(const struct psd_schema_reader *reader, const struct psd_node *root)
{
	const struct psd_node *title = psd_node_child(root, "title");

	if (!title)
		return PSD_OK;
	if (strchr("=+-@", *title->text) || strlen(title->text) > TITLE_MAX_BYTES)
		return psd_error_set(
			reader->err, PSD_EINVAL, title->at,
			"'title' is '%.80s', must not begin with one of = + - @ nor be longer than %d bytes",
			title->text, TITLE_MAX_BYTES);
	for (const char *c = title->text; *c; c += psd_text_plain_bytes(c))
		if (!psd_text_plain_bytes(c))
			return psd_error_set(reader->err, PSD_EINVAL, title->at,
					     "'title' is '%.80s', must not contain control characters", title->text);
	return PSD_OK;
}

/* Published values are for the bandwidth of their file: beside another, from the command line, they would be errors. */
static void leave_out_published(struct psd_scenario *scenario, const struct psd_node *root)
{
	const struct psd_node *network = psd_node_child(psd_node_child(root, "cluster"), "network");
	const struct psd_node *bandwidth = psd_node_child(network, "bandwidth");

	if ((bandwidth && psd_node_is_set(bandwidth)) || psd_scenario_sweeps(scenario, "cluster.network.bandwidth"))
		scenario->published_path = NULL;
}

/* True if the sweep has sizes of this system alone. */
static bool sweeps_fuse_of(const struct psd_scenario *scenario, unsigned system)
{
	for (unsigned i = 0; i < scenario->n_swept; i++)
		if (!strcmp(scenario->swept[i].name, "fuse") && psd_scenario_swept_system(scenario, i) == system)
			return true;
	return false;
}

/* A sweep of all systems would hide the size that an option or the sweep gives to one of them. */
static enum psd_status refuse_fuse_of_system(const struct psd_schema_reader *reader, const struct psd_node *root)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *systems = psd_node_child(root, "systems"), *entry = systems ? systems->first : NULL;

	for (unsigned s = 0; entry; s++, entry = entry->next) {
		const struct psd_node *fuse = psd_node_child(entry, "fuse");
		const bool is_set = fuse && psd_node_is_set(fuse) && scenario->systems[s].fuse_bytes;

		if (is_set || sweeps_fuse_of(scenario, s))
			return psd_error_set(reader->err, PSD_EINVAL, fuse ? fuse->at : entry->at,
					     "'fuse' of system '%s' has no effect beside 'sweep.fuse', which is for "
					     "all systems",
					     scenario->systems[s].name);
	}
	return PSD_OK;
}

static enum psd_status check_sweep_of_fuse(const struct psd_schema_reader *reader, const struct psd_node *root)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_node *fuse = psd_node_child(psd_node_child(root, "sweep"), "fuse");

	if (scenario->n_sweep_fuses)
		PSD_TRY(refuse_fuse_of_system(reader, root));
	for (unsigned s = 0; s < scenario->n_systems; s++)
		if (scenario->systems[s].fuse_bytes)
			return PSD_OK;
	if (!scenario->n_sweep_fuses)
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, fuse->key_at,
			     "'fuse' in 'sweep' has no effect: no system names a size in 'fuse'");
}

static enum psd_status check_root(const struct psd_schema_reader *reader, void *base, const struct psd_node *root)
{
	struct psd_scenario *scenario = base;
	enum psd_status status = check_title(reader, root);

	if (!scenario->title)
		scenario->title = title_of_path(scenario->path, reader->arena);
	if (!scenario->title)
		return psd_error_set(reader->err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a scenario");
	if (!status)
		status = psd_scenario_check_cluster(reader, root);
	if (!status)
		status = psd_scenario_find_baseline(reader, root);
	scenario->machine.threads = scenario->train.threads;
	scenario->train.seed = scenario->seed;
	scenario->train.has_seed = psd_node_child(root, "seed");
	if (!status && scenario->published_path && (scenario->n_sweep_bandwidths || scenario->n_sweep_fuses))
		return psd_error_set(
			reader->err, PSD_EINVAL, psd_node_child(root, "published")->key_at,
			"'published' cannot be used together with '%s' in 'sweep': its values are for one %s",
			scenario->n_sweep_bandwidths ? "bandwidth" : "fuse",
			scenario->n_sweep_bandwidths ? "bandwidth" : "size");
	if (!status)
		status = check_sweep_of_fuse(reader, root);
	leave_out_published(scenario, root);
	return status;
}

static const struct psd_section root_section = {.tables = {root_keys}, .check = check_root};
const struct psd_key psd_scenario_root = {SECTION("scenario", root_section), .uses = PSD_BY_ALL};

/* ---- files ---- */

/* Names the kind of a file that was taken for a scenario. */
static enum psd_status check_kind(const struct psd_node *root, struct psd_error *err)
{
	if (root->kind != PSD_NODE_MAPPING)
		return psd_error_set(err, PSD_EINVAL, root->at,
				     "the file is not a scenario, must have keys such as 'model:' and 'systems:'");
	if (psd_node_child(root, "layers") && !psd_node_child(root, "model"))
		return psd_error_set(
			err, PSD_EINVAL, root->at,
			"this is a model, not a scenario; a scenario names it, as in 'model: {graph: FILE, "
			"batch_per_worker: 32}'");
	return PSD_OK;
}

static enum psd_status apply_settings(const struct psd_node **root, const char *const settings[],
				      struct psd_arena *arena, struct psd_error *err)
{
	for (; settings && *settings; settings++) {
		PSD_TRY(psd_scenario_check_setting(*settings, err));
		PSD_TRY(psd_overlay_set(root, *settings, NULL, arena, err));
	}
	return PSD_OK;
}

/* Reads a variant from the tree scenario->whole. */
static enum psd_status read_variant(struct psd_scenario *scenario, struct psd_arena *arena, unsigned variant,
				    struct psd_error *err)
{
	const struct psd_node *root = scenario->whole;
	enum psd_status status = psd_scenario_take_variant(scenario, &root, variant, arena, err);

	scenario->root = root;
	if (!status)
		status = psd_schema_read(&(struct psd_schema_reader){scenario, scenario->path, arena, err},
					 &psd_scenario_root, root);
	scenario->owned = arena->blocks;
	return status;
}

/* True of a wrong value in a file, which may be wrong only because of an option. */
static bool is_of_file(enum psd_status status, const struct psd_error *err)
{
	return status == PSD_EINVAL && err && strncmp(err->text, "--", 2) != 0;
}

/* Names the option or the value of a sweep without which the file would be right, before the file's place. */
static void blame(struct psd_place culprit, struct psd_error *err)
{
	const struct psd_error found = *err;
	struct psd_error place;

	psd_error_set(&place, found.status, culprit, "%s", "");
	if (strncmp(found.text, place.text, strlen(place.text)) != 0)
		psd_error_set(err, found.status, culprit, "%s", found.text);
}

/* A variant that cannot be read, or that a later check refuses. */
struct suspect {
	const struct psd_scenario *failed;
	unsigned variant;
	psd_scenario_check_fn check; /* NULL: it cannot be read */
};

/* Reads a variant of the tree, and checks it. */
static enum psd_status try_tree(const struct suspect *suspect, const struct psd_node *whole, unsigned variant,
				struct psd_error *err)
{
	struct psd_scenario trial = {.path = suspect->failed->path, .whole = whole};
	struct psd_arena arena = {NULL};
	enum psd_status status = read_variant(&trial, &arena, variant, err);

	if (!status && suspect->check)
		status = suspect->check(&trial, err);
	psd_arena_release(&arena);
	return status;
}

static bool is_right(const struct suspect *suspect, const struct psd_node *whole, unsigned variant)
{
	struct psd_error err;

	return !try_tree(suspect, whole, variant, &err);
}

/* True if the variant of the file is right without the settings from number `first` to number `last`. */
static bool is_right_without(const struct suspect *suspect, const char *const settings[], unsigned first, unsigned last)
{
	const struct psd_node *whole = psd_document_root(suspect->failed->document);
	struct psd_arena arena = {NULL};
	bool is_set = true;

	for (unsigned i = 0; settings[i] && is_set; i++)
		if (i < first || i > last)
			is_set = !psd_overlay_set(&whole, settings[i], NULL, &arena, NULL);
	is_set = is_set && is_right(suspect, whole, suspect->variant);
	psd_arena_release(&arena);
	return is_set;
}

static void blame_one(const char *setting, struct psd_error *err)
{
	struct psd_text name = {.bytes = NULL};

	psd_overlay_add_name(&name, setting);
	if (!name.is_out_of_memory)
		blame((struct psd_place){.path = name.bytes}, err);
	psd_text_release(&name);
}

/* True of a setting without which variants would have other numbers. */
static bool makes_variants(const char *setting)
{
	return !strncmp(setting, "--sweep ", strlen("--sweep ")) || !strncmp(setting, "sweep.", strlen("sweep."));
}

/* True of "KEY=", which has no value that can be wrong. */
static bool removes_key(const char *setting)
{
	return setting[strlen(setting) - 1] == '=';
}

/* Blames the first setting without which the variant of the file is right. Otherwise it blames the last setting from
 * which on all variants are wrong, or the next one behind it that has a value. */
static void blame_setting(const struct suspect *suspect, const char *const settings[], struct psd_error *err)
{
	const bool is_first = suspect->variant == 0;
	unsigned n = 0;

	for (; settings && settings[n]; n++)
		if ((is_first || !makes_variants(settings[n])) && is_right_without(suspect, settings, n, n)) {
			blame_one(settings[n], err);
			return;
		}
	for (unsigned i = n; i-- > 0 && (is_first || !makes_variants(settings[i]));)
		if (is_right_without(suspect, settings, i, n - 1)) {
			for (; i + 1 < n && removes_key(settings[i]); i++)
				;
			blame_one(settings[i], err);
			return;
		}
}

/* Variant 0, which has the first value of each swept key, is right. */
static void blame_swept(const struct suspect *suspect, struct psd_error *err)
{
	const struct psd_scenario *failed = suspect->failed;
	unsigned stride = 1;

	for (unsigned k = failed->n_swept; k-- > 0; stride *= failed->swept[k].values->n_children) {
		const struct psd_node *value = failed->swept[k].values->first;
		const unsigned index = suspect->variant / stride % failed->swept[k].values->n_children;

		if (index == 0 || !is_right(suspect, failed->whole, suspect->variant - index * stride))
			continue;
		for (unsigned i = 0; i < index; i++)
			value = value->next;
		blame(value->at, err);
		return;
	}
}

void psd_scenario_blame(const struct psd_scenario *scenario, unsigned variant, psd_scenario_check_fn check,
			enum psd_status status, struct psd_error *err)
{
	const struct suspect suspect = {scenario, variant, check};
	struct psd_error again;

	if (!is_of_file(status, err) || try_tree(&suspect, scenario->whole, variant, &again) != status ||
	    strcmp(again.text, err->text) != 0)
		return;
	blame_setting(&suspect, scenario->settings, err);
	if (is_of_file(status, err))
		blame_swept(&suspect, err);
}

static enum psd_status copy_settings(const char *const **copies, const char *const settings[], struct psd_arena *arena,
				     struct psd_error *err)
{
	const char **made;
	size_t n = 0;

	while (settings && settings[n])
		n++;
	made = psd_arena_take(arena, (n + 1) * sizeof(*made));
	for (size_t i = 0; made && i < n; i++) {
		made[i] = psd_arena_copy(arena, settings[i], strlen(settings[i]));
		made = made[i] ? made : NULL;
	}
	*copies = made;
	return made ? PSD_OK : psd_out_of_memory(err);
}

/* Takes the document over, also when it fails. */
static enum psd_status read_document(struct psd_scenario *scenario, struct psd_document *document, const char *path,
				     const char *const settings[], struct psd_error *err)
{
	struct psd_scenario fresh = {.document = document, .whole = psd_document_root(document)};
	struct psd_arena arena = {NULL};
	enum psd_status status = PSD_OK;

	fresh.path = psd_arena_copy(&arena, path, strlen(path));
	if (!fresh.path)
		status = psd_out_of_memory(err);
	if (!status)
		status = check_kind(fresh.whole, err);
	if (!status)
		status = psd_scenario_check_top(fresh.whole, err);
	if (!status)
		status = copy_settings(&fresh.settings, settings, &arena, err);
	if (!status)
		status = apply_settings(&fresh.whole, settings, &arena, err);
	if (status) {
		fresh.owned = arena.blocks;
		psd_scenario_release(&fresh);
		return status;
	}
	status = read_variant(&fresh, &arena, 0, err);
	if (is_of_file(status, err))
		blame_setting(&(struct suspect){.failed = &fresh}, settings, err);
	if (status)
		psd_scenario_release(&fresh);
	else
		*scenario = fresh;
	return status;
}

enum psd_status psd_scenario_vary(struct psd_scenario *variant, const struct psd_scenario *scenario, unsigned i,
				  struct psd_error *err)
{
	const struct suspect suspect = {.failed = variant, .variant = i};
	struct psd_arena arena = {NULL};

	*variant = (struct psd_scenario){.path = scenario->path, .whole = scenario->whole};
	const enum psd_status status = read_variant(variant, &arena, i, err);

	if (is_of_file(status, err)) {
		variant->document = scenario->document; /* borrowed: reads of trials begin there */
		blame_setting(&suspect, scenario->settings, err);
		variant->document = NULL;
	}
	if (is_of_file(status, err))
		blame_swept(&suspect, err);
	if (status)
		psd_scenario_release(variant);
	return status;
}

/* Kind of network by the file's suffix; NULL: none. */
static const char *network_of(const char *path)
{
	const char *ending = strrchr(path, '.');

	if (ending && !strcmp(ending, ".prototxt"))
		return "a Caffe network";
	return ending && !strcmp(ending, ".onnx") ? "a network in ONNX's form" : NULL;
}

enum psd_status psd_scenario_load(struct psd_scenario *scenario, const char *path, const char *const settings[],
				  struct psd_error *err)
{
	const char *network = network_of(path);
	struct psd_document *document;
	enum psd_status status;

	if (network) {
		char none;

		status = psd_file_read_part(&none, 0, 0, path, err);
		return status ? status
			      : psd_error_set(err, PSD_EINVAL, (struct psd_place){path, 0, 0},
					      "is %s, name it in model.graph of a scenario", network);
	}
	PSD_TRY(psd_document_load(&document, path, err));
	return read_document(scenario, document, path, settings, err);
}

enum psd_status psd_scenario_parse(struct psd_scenario *scenario, const char *path, const char *text, size_t length,
				   const char *const settings[], struct psd_error *err)
{
	struct psd_document *document;

	PSD_TRY(psd_document_parse(&document, path, text, length, err));
	return read_document(scenario, document, path, settings, err);
}

enum psd_status psd_scenario_parse_choices(struct psd_scenario *scenario, const char *const settings[],
					   struct psd_error *err)
{
	static const struct psd_key sequence_keys[] = {{SEQUENCE}, {.name = NULL}};
	static const struct psd_section section = {.tables = {sequence_keys, choice_keys}};
	static const struct psd_key keys[] = {{SECTION("model", section)}, {.name = NULL}};
	static const struct psd_section root_of_choices = {.tables = {keys}};
	static const struct psd_key row = {SECTION("--set", root_of_choices)};
	const struct psd_node none = {.kind = PSD_NODE_MAPPING, .key = "", .text = "", .at = {.path = "--set"}};
	const struct psd_node *root = &none;
	struct psd_arena arena = {NULL};
	enum psd_status status;

	*scenario = (struct psd_scenario){.path = ""};
	status = apply_settings(&root, settings, &arena, err);
	if (!status)
		status = psd_schema_read(&(struct psd_schema_reader){scenario, "", &arena, err}, &row, root);
	scenario->owned = arena.blocks;
	if (status)
		psd_scenario_release(scenario);
	return status;
}

/* The solver's `iter_size` holds for each system that has no number of its own. */
static enum psd_status settle_micro_batches(struct psd_scenario *scenario, struct psd_error *err)
{
	const unsigned n = scenario->train.solver_batches;

	for (struct psd_system *system = scenario->systems; system < scenario->systems + scenario->n_systems;
	     system++) {
		if (system->accumulate && system->accumulate != n)
			return psd_error_set(err, PSD_EINVAL, system->at,
					     "'accumulate' of system '%s' is %u, must be 'iter_size' of the solver, %u",
					     system->name, system->accumulate, n);
		system->accumulate = n;
	}
	return PSD_OK;
}

enum psd_status psd_scenario_load_solver(struct psd_scenario *scenario, struct psd_error *err)
{
	PSD_TRY(psd_scenario_place_file(scenario, psd_train_load_solver(&scenario->train, err), err));
	if (!scenario->train.solver_path)
		return PSD_OK;
	scenario->train.solver_path = NULL;
	scenario->seed = scenario->train.seed;
	return settle_micro_batches(scenario, err);
}

void psd_scenario_add_text(struct psd_text *text, const struct psd_scenario *scenario)
{
	psd_schema_add_text(text, scenario, &root_section, scenario->root);
}

void psd_scenario_release(struct psd_scenario *scenario)
{
	struct psd_arena arena = {scenario->owned};

	psd_document_free(scenario->document);
	psd_arena_release(&arena);
	*scenario = (struct psd_scenario){.document = NULL};
}
