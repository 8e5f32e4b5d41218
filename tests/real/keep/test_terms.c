/* Terms of hosts: each key whose row says so, changed on one of two hosts, is refused and named by both when they join;
 * so are contents of files. */
#define _GNU_SOURCE
#include <stdio.h>

#include "engine/scenario/scenario_agree.h"
#include "engine/scenario/scenario_heed.h"
#include "real/keep/agreed_terms.h"
#include "tests/real/net/meeting.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

static const char base[] = "title: t\n"
			   "model: {graph: tiny.yaml, batch_per_worker: 8}\n"
			   "compute: {device: cpu}\n"
			   "cluster:\n  stack: none\n"
			   "  nodes: 2\n"
			   "  network: {bandwidth: 1Gbps, latency: 50us}\n"
			   "  host: {transport: 10Gbps, collective: [{up_to: 1KiB, step: 1us}, {step: 2us}]}\n"
			   "systems:\n"
			   "  - {name: A, sync: ps}\n"
			   "seed: 11\n"
			   "train:\n"
			   "  data: {kind: synthetic}\n"
			   "  iterations: 4\n"
			   "  optimiser: {momentum: 0.25}\n"
			   "  learning_rate: {base: 0.1}\n";

/* Text of the base that is replaced: by this for both hosts, or for one. */
struct change {
	const char *from, *to;
};

#define SPARSE                                                                                                         \
	{                                                                                                              \
		"sync: ps", "sync: ring, sparse: {sparsity: 0.25}"                                                     \
	}

#define MANAGED                                                                                                        \
	{                                                                                                              \
		"sync: ps", "sync: ring, managed: {clock: 4, early: 0.25}"                                             \
	}

#define LOCAL_SGD                                                                                                      \
	{                                                                                                              \
		"sync: ps", "sync: ps, local_sgd: {steps: 4, window: 32}"                                              \
	}

#define OUTER_STEPS                                                                                                    \
	{                                                                                                              \
		"sync: ps", "sync: ps, local_sgd: {steps: 4, outer: {}}"                                               \
	}

#define COMPRESS(by)                                                                                                   \
	{                                                                                                              \
		"sync: ps", "sync: ps, compress: {by: " by "}"                                                         \
	}

#define LOW_RANK                                                                                                       \
	{                                                                                                              \
		"sync: ps", "sync: ring, low_rank: {rank: 2}"                                                          \
	}

#define ADAMW                                                                                                          \
	{                                                                                                              \
		"{momentum: 0.25}", "{kind: adamw}"                                                                    \
	}

#define FOUR_WORKERS(local)                                                                                            \
	{                                                                                                              \
		"nodes: 2", "nodes: 2\n  workers_per_node: 4\n  local: " local                                         \
	}

/* Rows that need company, or a value that no rule finds. */
static const struct special {
	const char *path;
	struct change both, one; /* either may be nothing; without `one` the key is set to `value`, or to another */
	const char *value;
} specials[] = {
	{"model.input", {NULL, NULL}, {"model: {", "model: {input: {data: 3x4x4}, "}, NULL},
	{"cluster.local.latency", {"nodes: 2", "nodes: 2\n  local: {bandwidth: 10GBps}"}, {NULL, NULL}, NULL},
	{"cluster.local.switches", FOUR_WORKERS("{bandwidth: 10GBps}"), {NULL, NULL}, "2"},
	{"cluster.local.between", FOUR_WORKERS("{bandwidth: 10GBps, switches: 2}"), {NULL, NULL}, NULL},
	{"systems.split", {"nodes: 2", "groups: [{nodes: 2}]"}, {NULL, NULL}, NULL},
	{"systems.reads", {"sync: ps", "sync: ps, staleness: 1"}, {NULL, NULL}, NULL},
	{"systems.rule", {"sync: ps", "sync: hybrid"}, {NULL, NULL}, NULL},
	{"systems.reads", {"sync: ps", "sync: ps, staleness: 1"}, {NULL, NULL}, NULL},
	{"systems.fuse", {"sync: ps", "sync: ring"}, {NULL, NULL}, NULL},
	{"sweep.fuse", {"sync: ps", "sync: ring, fuse: 1MiB"}, {NULL, NULL}, NULL},
	{"systems.pipeline", {"sync: ps", "sync: ring, pipeline: 8KiB"}, {NULL, NULL}, NULL},
	{"systems.shard_over", {"sync: ps", "sync: zero-1"}, {NULL, NULL}, NULL},
	{"systems.prefetch", {"sync: ps", "sync: zero-3"}, {NULL, NULL}, NULL},
	{"systems.sparse.sparsity", SPARSE, {NULL, NULL}, NULL},
	{"systems.sparse.chunk", SPARSE, {NULL, NULL}, NULL},
	{"systems.sparse.warmup", SPARSE, {NULL, NULL}, NULL},
	{"systems.sparse.feedback", SPARSE, {NULL, NULL}, NULL},
	{"systems.peers", {"sync: ps", "sync: sfb, peers: 2, local_sgd: {steps: 4}"}, {NULL, NULL}, "3"},
	{"systems.managed.clock", MANAGED, {NULL, NULL}, "8"},
	{"systems.managed.early", MANAGED, {NULL, NULL}, NULL},
	{"systems.managed.priority", MANAGED, {NULL, NULL}, NULL},
	{"systems.managed.chunk", MANAGED, {NULL, NULL}, NULL},
	{"systems.local_sgd.steps", LOCAL_SGD, {NULL, NULL}, NULL},
	{"systems.local_sgd.window", LOCAL_SGD, {NULL, NULL}, NULL},
	{"systems.local_sgd.gap", LOCAL_SGD, {NULL, NULL}, NULL},
	{"systems.local_sgd.fragments", OUTER_STEPS, {NULL, NULL}, "2"},
	{"systems.local_sgd.delay", OUTER_STEPS, {NULL, NULL}, "2"},
	{"systems.local_sgd.outer.rate", OUTER_STEPS, {NULL, NULL}, "0.5"},
	{"systems.local_sgd.outer.momentum", OUTER_STEPS, {NULL, NULL}, "0.5"},
	{"systems.local_sgd.outer.nesterov", OUTER_STEPS, {NULL, NULL}, "false"},
	{"systems.compress.by", COMPRESS("one-bit"), {NULL, NULL}, "top-k"},
	{"systems.compress.block", COMPRESS("one-bit"), {NULL, NULL}, "2048"},
	{"systems.compress.kept", COMPRESS("top-k"), {NULL, NULL}, NULL},
	{"systems.compress.tensors", COMPRESS("one-bit"), {NULL, NULL}, NULL},
	{"systems.compress.momentum", COMPRESS("one-bit"), {NULL, NULL}, NULL},
	{"systems.low_rank.rank", LOW_RANK, {NULL, NULL}, NULL},
	{"systems.pair", {NULL, NULL}, {NULL, NULL}, "1MB"},
	{"systems.slice", {NULL, NULL}, {NULL, NULL}, "64MiB"},
	{"emulation.dilation", {"device: cpu", "device: cpu, replay: true"}, {NULL, NULL}, NULL},
	{"emulation.payload_scale", {"device: cpu", "device: cpu, replay: true"}, {NULL, NULL}, NULL},
	{"compute.real_workers", {"device: cpu", "device: cpu, replay: true"}, {NULL, NULL}, NULL},
	{"cluster.host.collective", {NULL, NULL}, {"step: 2us", "step: 3us"}, NULL},
	{"systems.host.collective",
	 {NULL, NULL},
	 {"{name: A, ", "{name: A, host: {collective: [{step: 3us}]}, "},
	 NULL},
	{"train.data.kind", {NULL, NULL}, {"kind: synthetic", "kind: idx, path: p"}, NULL},
	{"train.data.mirror", {"kind: synthetic", "kind: packed, path: p"}, {NULL, NULL}, NULL},
	{"train.optimiser.trust", {"{momentum", "{kind: lars, momentum"}, {NULL, NULL}, NULL},
	{"train.optimiser.beta1", ADAMW, {NULL, NULL}, NULL},
	{"train.optimiser.beta2", ADAMW, {NULL, NULL}, NULL},
	{"train.optimiser.epsilon", ADAMW, {NULL, NULL}, NULL},
	{"train.epochs", {"iterations: 4", "epochs: 4"}, {NULL, NULL}, NULL},
	{"train.learning_rate.policy", {NULL, NULL}, {"base:", "policy: exp, gamma: 0.5, base:"}, NULL},
	{"train.learning_rate.gamma", {"base:", "policy: exp, gamma: 0.25, base:"}, {NULL, NULL}, NULL},
	{"train.learning_rate.power", {"base:", "policy: inv, gamma: 0.5, power: 3, base:"}, {NULL, NULL}, NULL},
	{"train.learning_rate.step", {"base:", "policy: step, gamma: 0.5, step: 9, base:"}, {NULL, NULL}, NULL},
	{"train.learning_rate.steps",
	 {"base:", "policy: multistep, gamma: 0.5, steps: [9], base:"},
	 {NULL, NULL},
	 NULL},
	{"train.learning_rate.lowest", {"base:", "policy: cosine, lowest: 0.0001, base:"}, {NULL, NULL}, "0.01"},
	{"train.learning_rate.max_iterations", {"base:", "policy: poly, power: 1, base:"}, {NULL, NULL}, "9"},
};

/* Costs are agreed on where a system chooses by them. */
static const struct change by_seconds = {"sync: ps", "sync: hybrid, rule: seconds"};

static const struct special *find_special(const char *path)
{
	static const struct special none = {.path = NULL};

	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if (!strcmp(specials[i].path, path))
			return &specials[i];
	return &none;
}

static void apply(char text[2048], const struct change *change)
{
	char *at, rest[2048];

	if (!change->from)
		return;
	at = strstr(text, change->from);
	cr_assert(at, "'%s' is not in the scenario", change->from);
	snprintf(rest, sizeof(rest), "%s", at + strlen(change->from));
	snprintf(at, 2048 - (size_t)(at - text), "%s%s", change->to, rest);
}

/* A value that the row accepts, and that the base does not have. */
static void write_other(const struct psd_key *key, char text[64])
{
	const double middle = key->lowest + (key->highest > 1e3 ? 2.0 : (key->highest - key->lowest) / 2.0);

	switch (key->type) {
	case PSD_KEY_SECTION:
	case PSD_KEY_OTHER:
	case PSD_KEY_PATH: cr_assert_fail("'%s' has no plain value", key->name);
	case PSD_KEY_TEXT: snprintf(text, 64, "another"); break;
	case PSD_KEY_NAME: snprintf(text, 64, "%s", key->names[0]); break;
	case PSD_KEY_CHOICE:
	case PSD_KEY_FLAG: {
		const bool is_first =
			!strcmp(key->fallback, key->names ? key->names[0] : "false") || !strcmp(key->name, "sync");

		snprintf(text, 64, "%s", key->names ? key->names[is_first] : is_first ? "true" : "false");
		break;
	}
	case PSD_KEY_RATE: snprintf(text, 64, "7Gbps"); break;
	case PSD_KEY_BYTES: snprintf(text, 64, "7MB"); break;
	case PSD_KEY_SECONDS: snprintf(text, 64, "7ms"); break;
	case PSD_KEY_RATIO:
	case PSD_KEY_NUMBER: snprintf(text, 64, "%g", middle); break;
	case PSD_KEY_PAIR:
	case PSD_KEY_UNSIGNED:
	case PSD_KEY_COUNT: snprintf(text, 64, "%.0f", key->lowest + 2); break;
	}
}

static struct psd_text make_terms(const char *text, const char *setting)
{
	const char *const settings[] = {setting, NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};
	struct psd_text terms = {.bytes = NULL};

	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(text), settings, &err), PSD_OK, "%s",
		     err.text);
	psd_scenario_add_agreed(&terms, &scenario, &scenario.systems[0], NULL, 0);
	psd_scenario_release(&scenario);
	return terms;
}

/* Both hosts say the key and both values. */
static void expect_named(const struct psd_text *ours, const struct psd_text *theirs, const char *path)
{
	struct host hosts[HOSTS] = {{.options = {.n_connections = 1, .terms = ours->bytes}},
				    {.options = {.n_connections = 1, .terms = theirs->bytes}}};
	char words[128];

	meet(hosts);
	snprintf(words, sizeof(words), "has another build, scenario or other options: '%s' is ", path);
	for (unsigned h = 0; h < HOSTS; h++) {
		cr_expect_eq(hosts[h].status, PSD_ERUN, "'%s' is not refused by host %u", path, h);
		cr_expect(strstr(hosts[h].err.text, words), "host %u does not name '%s': %s", h, path,
			  hosts[h].err.text);
	}
	part(hosts);
}

static void check_key(const char *path, const struct psd_key *key, bool is_by_seconds)
{
	const struct special *special = find_special(path);
	const bool is_of_system = !strncmp(path, "systems.", strlen("systems."));
	char text[2048], changed[2048], setting[256] = "seed=11", value[64];
	struct psd_text ours, theirs;

	memcpy(text, base, sizeof(base));
	apply(text, &special->both);
	if (is_by_seconds)
		apply(text, &by_seconds);
	memcpy(changed, text, sizeof(changed));
	apply(changed, &special->one);
	if (!special->one.from) {
		if (!special->value)
			write_other(key, value);
		snprintf(setting, sizeof(setting), "%s%s=%s", is_of_system ? "systems.0." : "",
			 is_of_system ? path + strlen("systems.") : path, special->value ? special->value : value);
	}
	ours = make_terms(text, NULL);
	theirs = make_terms(changed, setting);
	expect_named(&ours, &theirs, path);
	psd_text_release(&ours);
	psd_text_release(&theirs);
}

/* How many rows were looked at, and those of paths, which another test looks at. */
struct tally {
	unsigned n_rows, n_paths;
};

static bool check_row(const struct psd_schema_spot *spot)
{
	struct tally *tally = spot->context;
	const struct psd_key *key = spot->key;
	const bool is_section = key->type == PSD_KEY_SECTION && (!key->most_entries || !strcmp(key->name, "systems"));

	if (is_section || !(spot->uses & (PSD_AGREED | PSD_BY_CHOICE)))
		return is_section;
	if (key->type == PSD_KEY_PATH) {
		tally->n_paths++;
		return false;
	}
	if (key->names && !key->names[1]) /* nothing else to choose */
		return false;
	check_key(spot->path, key, !(spot->uses & PSD_AGREED));
	tally->n_rows++;
	return false;
}

Test(terms, every_key_that_matters_is_refused_and_named_by_both_hosts)
{
	struct tally tally = {0, 0};

	psd_schema_walk(&psd_scenario_root, NULL, NULL, check_row, &tally);
	cr_expect_gt(tally.n_rows, 50);
	cr_expect_eq(tally.n_paths, 4, "the files of the next tests");
}

/* The measurement of speeds joins hosts, too, by a copy of the system that is not one of the scenario's entries. */
Test(terms, a_split_that_one_host_measures_is_named)
{
	struct change grouped = {"nodes: 2", "groups: [{nodes: 2}]"},
		      measured = {"sync: ps", "sync: ps, split: measured"};
	char text[2048], changed[2048];
	struct psd_scenario scenario;
	struct psd_text ours, theirs = {.bytes = NULL};
	struct psd_error err = {.text = ""};

	memcpy(text, base, sizeof(base));
	apply(text, &grouped);
	memcpy(changed, text, sizeof(changed));
	apply(changed, &measured);
	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", changed, strlen(changed), NULL, &err), PSD_OK, "%s",
		     err.text);
	struct psd_system even = scenario.systems[0];
	even.split = PSD_SPLIT_EVEN;
	psd_scenario_add_agreed(&theirs, &scenario, &even, NULL, 0);
	psd_scenario_release(&scenario);
	ours = make_terms(text, NULL);
	expect_named(&ours, &theirs, "systems.split");
	psd_text_release(&ours);
	psd_text_release(&theirs);
}

/* So that a new key is not forgotten: what training heeds and hosts need not agree on, each with its reason. */
static const char *const free_keys[] = {
	"title",		/* tables' contents */
	"cluster.nodes",	/* the hosts file says it, and greetings compare that */
	"sweep.nodes",		/* likewise */
	"sweep.workers",	/* likewise */
	"cluster.stack",	/* counts by the keys of host that it fills in */
	"systems.stack",	/* likewise */
	"cluster.groups.nodes", /* counts by workers and batches of all nodes: a line of their own has them */
	"cluster.groups.workers_per_node",  /* likewise */
	"cluster.groups.batch_per_worker",  /* likewise */
	"cluster.groups.speed",		    /* likewise */
	"cluster.groups.network.bandwidth", /* emulated by one process for all */
	"cluster.groups.network.latency",   /* likewise */
	"cluster.slow.node",		    /* the speed of the host's own node */
	"cluster.slow.compute",		    /* likewise */
	"train.data.test",		    /* worker 0 alone tests */
	"train.solver",			    /* counts by what it says */
	"train.device",			    /* one host's; its effect on the program is compared */
	"train.graphs",			    /* one host's; results have the same bits */
	"train.threads",		    /* one host's; sums are in the same order */
	"train.readers",		    /* one host's; samples are the same */
};

static bool check_freedom(const struct psd_schema_spot *spot)
{
	unsigned *n_found = spot->context;

	if (spot->key->type == PSD_KEY_SECTION || !(spot->uses & PSD_BY_RUN) ||
	    spot->uses & (PSD_AGREED | PSD_BY_CHOICE))
		return true;
	for (size_t i = 0; i < sizeof(free_keys) / sizeof(free_keys[0]); i++)
		if (!strcmp(spot->path, free_keys[i])) {
			++*n_found;
			return true;
		}
	cr_expect_fail("training heeds '%s': do hosts agree on it, or why not?", spot->path);
	return true;
}

Test(terms, all_that_training_heeds_is_agreed_on_but_for_a_few_keys)
{
	unsigned n_found = 0;

	psd_schema_walk(&psd_scenario_root, NULL, NULL, check_freedom, &n_found);
	cr_expect_eq(n_found, sizeof(free_keys) / sizeof(free_keys[0]));
}

Test(terms, irrelevant_keys_may_differ)
{
	static const char *const settings[] = {
		"title=u",	     "fidelity=message", "published=p.csv",    "cluster.host.copy=1GBps",
		"compute.jitter=5%", "train.threads=2",	 "compute.device=k20", "model.graph=b.yaml"};
	struct psd_text ours = make_terms(base, NULL), words = {.bytes = NULL};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		struct psd_text theirs = make_terms(base, settings[i]);

		cr_expect_not(psd_agreed_find_difference(ours.bytes, theirs.bytes, &words), "%s: %s", settings[i],
			      words.bytes);
		psd_text_release(&theirs);
	}
	psd_text_release(&ours);
}

/* ---- contents of files ---- */

static const char model[] = "name: tiny\ninput: {channels: 1, height: 2, width: 2}\nlayers:\n"
			    "  - {name: fc1, kind: inner-product, outputs: 4}\n"
			    "  - {name: act, kind: relu}\n"
			    "  - {name: fc2, kind: inner-product, outputs: 4}\n"
			    "  - {name: loss, kind: softmax-loss}\n";
static const char profile[] =
	"# origin: a test\n# batch: 8\n# kind: measured\n# device: cpu\n# gemm_flops_per_sec: 1GFLOPS\n"
	"layer,forward_sec,backward_sec\nfc1,0.001,0.002\nact,0.001,0.002\nfc2,0.001,0.002\n"
	"loss,0.001,0.002\n";
static const char job[] = "model: {graph: m.yaml, batch_per_worker: 8}\ncompute: {profile: p.csv}\n"
			  "cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			  "systems:\n  - {name: A, sync: hybrid, rule: seconds}\n"
			  "train: {iterations: 4, start: w, learning_rate: {base: 1}, data: {kind: idx, path: .}}\n";

/* Two images each of four pixels; `pixel` is the last of the training samples. */
static void write_data(const struct scratch_folder *folder, uint8_t pixel)
{
	const uint8_t images[16 + 8] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, pixel};
	const uint8_t labels[8 + 2] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 3};

	scratch_folder_write(folder, "train-images-idx3-ubyte", images, sizeof(images));
	scratch_folder_write(folder, "train-labels-idx1-ubyte", labels, sizeof(labels));
	scratch_folder_write(folder, "t10k-images-idx3-ubyte", images, sizeof(images));
	scratch_folder_write(folder, "t10k-labels-idx1-ubyte", labels, sizeof(labels));
}

static struct psd_text terms_of(const struct scratch_folder *folder, uint32_t n_iterations)
{
	struct psd_scenario scenario;
	struct psd_costed_model costed;
	struct psd_case made;
	struct psd_error err = {.text = ""};
	struct psd_text terms = {.bytes = NULL};

	cr_assert_eq(psd_scenario_load(&scenario, scratch_folder_path(folder, "s.yaml").text, NULL, &err), PSD_OK, "%s",
		     err.text);
	cr_assert_eq(psd_costed_model_load(&costed, &scenario, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_case_make(&made, &costed, &scenario.systems[0], psd_scenario_point(&scenario, 0), &err),
		     PSD_OK, "%s", err.text);
	cr_assert_eq(psd_terms_add(&terms, &made, &scenario.train, n_iterations, &err), PSD_OK, "%s", err.text);
	psd_case_release(&made);
	psd_costed_model_release(&costed);
	psd_scenario_release(&scenario);
	return terms;
}

/* Its data end with that pixel, its start is that text. */
static struct scratch_folder write_host(const char *model_text, const char *profile_text, uint8_t pixel,
					const char *start)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "m.yaml", model_text, strlen(model_text));
	scratch_folder_write(&folder, "p.csv", profile_text, strlen(profile_text));
	scratch_folder_write(&folder, "s.yaml", job, strlen(job));
	scratch_folder_write(&folder, "w", start, strlen(start));
	write_data(&folder, pixel);
	return folder;
}

static void expect_contents_named(const char *model_text, const char *profile_text, uint8_t pixel, const char *start,
				  uint32_t n_iterations, const char *path)
{
	const struct scratch_folder ours = write_host(model, profile, 8, "w"),
				    theirs = write_host(model_text, profile_text, pixel, start);
	struct psd_text our_terms = terms_of(&ours, 4), their_terms = terms_of(&theirs, n_iterations);

	expect_named(&our_terms, &their_terms, path);
	psd_text_release(&our_terms);
	psd_text_release(&their_terms);
	scratch_folder_remove(&ours);
	scratch_folder_remove(&theirs);
}

Test(terms, the_contents_of_files_count_and_not_their_names)
{
	const struct scratch_folder ours = write_host(model, profile, 8, "w"),
				    theirs = write_host(model, profile, 8, "w");
	struct psd_text our_terms = terms_of(&ours, 4), their_terms = terms_of(&theirs, 4);
	char text[sizeof(model)];

	cr_expect_str_eq(our_terms.bytes, their_terms.bytes, "two folders with equal files");
	psd_text_release(&our_terms);
	psd_text_release(&their_terms);
	scratch_folder_remove(&ours);
	scratch_folder_remove(&theirs);

	memcpy(text, model, sizeof(text));
	memcpy(strstr(text, "tiny"), "slim", 4);
	expect_contents_named(text, profile, 8, "w", 4, "model.graph");
	expect_contents_named(
		model,
		"# origin: a test\n# batch: 8\n# kind: measured\n# device: cpu\n# gemm_flops_per_sec: 1GFLOPS\n"
		"layer,forward_sec,backward_sec\nfc1,0.001,0.003\nact,0.001,0.002\n"
		"fc2,0.001,0.002\nloss,0.001,0.002\n",
		8, "w", 4, "compute.profile");
	expect_contents_named(model, profile, 9, "w", 4, "train.data.path");
	expect_contents_named(model, profile, 8, "v", 4, "train.start");
}

TEST_ROW(terms, an_option_counts_like_the_key_it_stands_for,
	 expect_contents_named(model, profile, 8, "w", 5, "train.iterations"))
