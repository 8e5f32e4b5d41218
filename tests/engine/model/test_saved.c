/* Values that PyTorch saves for backward, against counts of PyTorch itself. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "engine/model/saved.h"

static const double tolerance_ratio = 0.1;

/* Printed by tests/saved-tensors.py with PyTorch 2.15: bytes of a sample, with fused attention, and of any batch. To
 * BERT's, which are printed without dropouts, masks of 49 are added: a byte for each of 512 x 1,024 values. */
static const struct {
	const char *model;
	bool is_half;
	double sample_mb, fixed_mb;
} counts[] = {
	{"resnet18", false, 21.58, 0.04},      {"resnet18", true, 11.90, 23.40},
	{"resnet50-v1.5", false, 85.31, 0.21}, {"resnet50-v1.5", true, 43.76, 51.22},
	{"resnet152", false, 176.83, 0.61},    {"resnet152", true, 89.52, 120.69},
	{"vgg16", false, 72.73, 0.00},	       {"vgg16", true, 42.80, 276.69},
	{"vit-b16", false, 117.58, 0.00},      {"vit-b16", true, 66.43, 172.59},
	{"bert-large", false, 848.09, 0.00},   {"bert-large", true, 543.48, 670.69},
	{"gpt2", false, 816.93, 0.01},	       {"gpt2", true, 551.11, 247.07},
	{"gpt2-medium", false, 1826.84, 0.01}, {"gpt2-medium", true, 1120.10, 706.91},
};

static struct psd_saved count_of(const char *model, bool is_half, bool recomputes, uint64_t *parameters)
{
	struct psd_error err = {.text = ""};
	struct psd_graph graph;
	struct psd_saved saved;
	char path[64];

	snprintf(path, sizeof(path), "scenarios/models/%s.yaml", model);
	cr_assert_eq(psd_graph_load(&graph, path, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_saved_count(&saved, &graph, is_half, recomputes, &err), PSD_OK, "%s", err.text);
	*parameters = graph.parameters;
	psd_graph_release(&graph);
	return saved;
}

static struct psd_saved saved_of(const char *model, bool is_half, uint64_t *parameters)
{
	return count_of(model, is_half, false, parameters);
}

static void expect_near(const char *model, double bytes, double expected_bytes)
{
	cr_expect_leq(fabs(bytes / expected_bytes - 1.0), tolerance_ratio, "%s: %.2f MB, expected are %.2f: %+.1f %%",
		      model, bytes / 1e6, expected_bytes / 1e6, 100.0 * (bytes / expected_bytes - 1.0));
}

Test(saved, is_what_pytorch_saves)
{
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t parameters;
		const struct psd_saved saved = saved_of(counts[i].model, counts[i].is_half, &parameters);

		expect_near(counts[i].model, (double)saved.sample_bytes, 1e6 * counts[i].sample_mb);
		if (counts[i].is_half)
			expect_near(counts[i].model, (double)saved.weights_bytes, 1e6 * counts[i].fixed_mb);
		else
			cr_expect_eq(saved.weights_bytes, 0);
	}
}

/* Each score: a probability; with dropout a byte of its mask and the probability left, of which autocast saves the copy
 * in 16 bits alone. ViT has no dropout. */
Test(saved, eager_attention_saves_masks_of_dropout)
{
	static const struct {
		const char *model;
		double scores;
		uint64_t bytes[2]; /* in fp32, under autocast */
	} rows[] = {
		{"bert-large", 24.0 * 16.0 * 512.0 * 512.0, {4 + 1 + 4, 4 + 1 + 2}},
		{"vit-b16", 12.0 * 12.0 * 196.0 * 196.0, {4, 4 + 2}},
	};

	for (unsigned i = 0; i < 4; i++) {
		uint64_t parameters;
		const struct psd_saved saved = saved_of(rows[i / 2].model, i % 2, &parameters);

		cr_expect_eq((double)saved.score_bytes, rows[i / 2].scores * (double)rows[i / 2].bytes[i % 2]);
		cr_expect_eq((double)saved.softmax_input_bytes, 4.0 * rows[i / 2].scores);
	}
}

/* A block of BERT-large saves 16 outputs of 1,024 channels: its input and that of qkv are one, 3 of attention's input,
 * its output, inputs of two norms, the input of up, 4 of GELU and 4 of down. Masks of its two dropouts have a byte for
 * each value. The input alone is kept of all blocks. */
Test(saved, checkpointed_blocks_keep_their_inputs)
{
	const uint64_t map_bytes = UINT64_C(4) * 512 * 1024;
	uint64_t parameters;
	const struct psd_saved all = saved_of("bert-large", false, &parameters);
	const struct psd_saved less = count_of("bert-large", false, true, &parameters);

	cr_expect_eq(all.sample_bytes - less.sample_bytes, 23 * (15 * map_bytes + 2 * map_bytes / 4), "%g maps",
		     (double)(all.sample_bytes - less.sample_bytes) / (double)map_bytes);
	cr_expect_eq(less.score_bytes, all.score_bytes / 24);
	cr_expect_eq(less.head_bytes, all.head_bytes);
}
