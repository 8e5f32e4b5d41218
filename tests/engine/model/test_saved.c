/* Values that PyTorch saves for backward: against counts of PyTorch itself, and peaks that others published. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "engine/model/saved.h"

static const double tolerance_ratio = 0.1;

/* Printed by tests/saved-tensors.py with PyTorch 2.15: bytes of a sample, with fused attention, and of any batch. */
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
	{"bert-large", false, 822.40, 0.00},   {"bert-large", true, 517.79, 670.69},
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

/* PyTorch of these years also saved the input of softmax in fp32. Both runs were with AdamW: 16 bytes a parameter. */

/* Hugging Face, "Model training anatomy", January 2022: 14949 MiB of a V100, 1343 MiB before the model. Batch 4 of 512
 * tokens in fp32. Dropouts, which bert-large.yaml leaves out: masks of 24 x 2 and 1 outputs of 1,024 channels; masks of
 * the probabilities and the probabilities left. */
Test(saved, bert_large_has_the_peak_that_hugging_face_published)
{
	uint64_t parameters;
	const struct psd_saved saved = saved_of("bert-large", false, &parameters);
	const double scores = (double)saved.score_bytes / 4.0, masks = 49.0 * 512.0 * 1024.0;
	const double sample_bytes = (double)saved.sample_bytes + scores * (4.0 + 4.0 + 1.0 + 4.0) + masks;

	cr_assert_eq(saved.score_bytes, UINT64_C(4) * 24 * 16 * 512 * 512);
	expect_near("BERT-large", 16.0 * (double)parameters + 4.0 * sample_bytes, (14949.0 - 1343.0) * 1048576.0);
}

/* Mesa (arXiv 2111.11124), table of its repository: DeiT-B 17,691 MiB by max_memory_allocated(), PyTorch 1.7.1 with
 * AMP, batch 128. Training keeps a moving average of the parameters, too. */
Test(saved, deit_b_has_the_peak_that_mesa_published)
{
	uint64_t parameters;
	const struct psd_saved saved = saved_of("vit-b16", true, &parameters);
	const double scores = 12.0 * 12.0 * 196.0 * 196.0;
	const double sample_bytes = (double)(saved.sample_bytes + saved.score_bytes) + 4.0 * scores;

	cr_assert_eq((double)saved.score_bytes, 6.0 * scores); /* fp32, and a copy in half precision */
	expect_near("DeiT-B", 20.0 * (double)parameters + (double)saved.weights_bytes + 128.0 * sample_bytes,
		    17691.0 * 1048576.0);
}

/* A block of BERT-large saves 16 outputs of 1,024 channels: its input and that of qkv are one, 3 of attention's input,
 * its output, inputs of two norms, the input of up, 4 of GELU and 4 of down. The input alone is kept of all blocks. */
Test(saved, checkpointed_blocks_keep_their_inputs)
{
	const uint64_t map_bytes = UINT64_C(4) * 512 * 1024;
	uint64_t parameters;
	const struct psd_saved all = saved_of("bert-large", false, &parameters);
	const struct psd_saved less = count_of("bert-large", false, true, &parameters);

	cr_expect_eq(all.sample_bytes - less.sample_bytes, 23 * 15 * map_bytes, "%g maps",
		     (double)(all.sample_bytes - less.sample_bytes) / (double)map_bytes);
	cr_expect_eq(less.score_bytes, all.score_bytes / 24);
	cr_expect_eq(less.head_bytes, all.head_bytes);
}
