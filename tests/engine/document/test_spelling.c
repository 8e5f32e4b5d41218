/* Spellings of rates, sizes, times, counts, devices, stacks and layer kinds: each is read, or refused with the right
 * one. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/document/document.h"
#include "engine/model/graph.h"
#include "engine/model/kind.h"
#include "engine/model/layer.h"
#include "engine/model/model.h"
#include "engine/scenario/device.h"
#include "engine/scenario/stack.h"

enum kind { RATE, SIZE, TIME, COUNT, FLAG, DEVICE, STACK };

/* A spelling with its value, or with the end of the message that refuses it. */
struct spelling {
	enum kind kind;
	const char *text;
	double value;
	const char *name;    /* name that the text spells; NULL: a number */
	const char *message; /* end of the message; NULL: the text is read */
};

#define READ(kind, text, value)                                                                                        \
	{                                                                                                              \
		(kind), (text), (value), NULL, NULL                                                                    \
	}
#define NAMED(kind, text, name)                                                                                        \
	{                                                                                                              \
		(kind), (text), 0.0, (name), NULL                                                                      \
	}
#define REFUSED(kind, text, message)                                                                                   \
	{                                                                                                              \
		(kind), (text), 0.0, NULL, (message)                                                                   \
	}

static const struct spelling spellings[] = {
	READ(RATE, "10Gbps", 10e9),
	READ(RATE, "10 Gbps", 10e9),
	READ(RATE, "10 Gbit/s", 10e9),
	READ(RATE, "10Gb/s", 10e9),
	READ(RATE, "10 Gbits/s", 10e9),
	READ(RATE, "1.25 GB/s", 10e9),
	READ(RATE, "1.25GBps", 10e9),
	READ(RATE, "1.25 GByte/s", 10e9),
	READ(RATE, "1250 Mbytes/s", 10e9),
	READ(RATE, "1 GiB/s", 8 * 1024.0 * 1024 * 1024),
	READ(RATE, "0.1Tbit/s", 1e11),
	READ(RATE, "2.5e1Gbps", 25e9),
	REFUSED(RATE, "40G", "did you mean 40Gbps or 40GBps?"),
	REFUSED(RATE, "40 gbps", "did you mean 40Gbps?"),
	REFUSED(RATE, "40Gb", "did you mean 40Gbps?"),
	REFUSED(RATE, "40KBps", "did you mean 40kBps?"),
	REFUSED(RATE, "1,5Gbps", "did you mean 1.5Gbps?"),
	REFUSED(RATE, ".5Gbps", "did you mean 0.5Gbps?"),
	REFUSED(RATE, "40", "must be a rate such as 40Gbps or 2.3GBps"),
	REFUSED(RATE, "fast", "must be a rate such as 40Gbps or 2.3GBps"),
	READ(SIZE, "64MB", 64e6),
	READ(SIZE, "64 MB", 64e6),
	READ(SIZE, "256 KiB", 256 * 1024.0),
	READ(SIZE, "512 bytes", 512),
	READ(SIZE, "2 Mbyte", 2e6),
	READ(SIZE, "0.5GiB", 0.5 * 1024 * 1024 * 1024),
	REFUSED(SIZE, "64KB", "did you mean 64kB?"),
	REFUSED(SIZE, "25mb", "did you mean 25MB?"),
	REFUSED(SIZE, "64M", "did you mean 64MB?"),
	REFUSED(SIZE, "1gib", "did you mean 1GiB?"),
	REFUSED(SIZE, "64", "must be a size such as 256KiB or 2MB"),
	READ(TIME, "30us", 30e-6),
	READ(TIME, "30 us", 30e-6),
	READ(TIME, "30\xc2\xb5s", 30e-6),
	READ(TIME, "30 \xce\xbcs", 30e-6),
	READ(TIME, "1.5 ms", 1.5e-3),
	READ(TIME, "2sec", 2),
	READ(TIME, "3min", 180),
	READ(TIME, "24h", 86400),
	READ(TIME, "24 hours", 86400),
	READ(TIME, "2d", 172800),
	REFUSED(TIME, "30US", "did you mean 30us?"),
	REFUSED(TIME, "30u", "did you mean 30us?"),
	REFUSED(TIME, "30", "must be a time such as 30us or 1.5ms"),
	READ(COUNT, "1281167", 1281167),
	REFUSED(COUNT, "1,281,167", "did you mean 1281167?"),
	REFUSED(COUNT, "1_000", "did you mean 1000?"),
	READ(FLAG, "True", 1),
	READ(FLAG, "FALSE", 0),
	REFUSED(FLAG, "yes", "must be true or false"),
	NAMED(DEVICE, "a100", "a100"),
	NAMED(DEVICE, "A100", "a100"),
	NAMED(DEVICE, "V100-SXM2", "v100-sxm2"),
	NAMED(DEVICE, "A100 80GB", "a100-80gb"),
	NAMED(DEVICE, "RTX_3090", "rtx-3090"),
	NAMED(DEVICE, "Titan X", "titan-x"),
	REFUSED(DEVICE, "a10", "did you mean a100?"),
	REFUSED(DEVICE, "NVIDIA Tesla V100", "did you mean v100?"),
	NAMED(STACK, "NCCL TCP", "nccl-tcp"),
	NAMED(STACK, "nccl_rdma", "nccl-rdma"),
	REFUSED(STACK, "nccl-tpc", "did you mean nccl-tcp?"),
};

static enum psd_status read_names(const struct psd_node *node, const char *const names[], const char **name,
				  struct psd_error *err)
{
	unsigned index = 0;
	const enum psd_status status = psd_node_choice(node, names, &index, err);

	*name = names[index];
	return status;
}

static enum psd_status read_spelling(const struct spelling *spelling, double *value, const char **name,
				     struct psd_error *err)
{
	const struct psd_node node = {.kind = PSD_NODE_SCALAR, .key = "k", .text = spelling->text};
	enum psd_status status = PSD_OK;
	uint64_t count = 0;
	bool flag = false;

	*value = 0.0;
	*name = NULL;
	switch (spelling->kind) {
	case RATE: return psd_node_rate(&node, value, err);
	case TIME: return psd_node_seconds(&node, 0, value, err);
	case SIZE: status = psd_node_bytes(&node, &count, err); break;
	case COUNT: status = psd_node_count(&node, 0, 1u << 30, &count, err); break;
	case FLAG: status = psd_node_bool(&node, &flag, err); break;
	case DEVICE: return read_names(&node, psd_device_names, name, err);
	case STACK: return read_names(&node, psd_stack_names, name, err);
	}
	*value = (double)count + flag;
	return status;
}

Test(spelling, each_is_read_or_refused_with_the_right_one)
{
	struct psd_error err;
	const char *name;
	double value;

	for (const struct spelling *s = spellings; s < spellings + sizeof(spellings) / sizeof(spellings[0]); s++) {
		const enum psd_status status = read_spelling(s, &value, &name, &err);
		const size_t length = s->message ? strlen(s->message) : 0;

		cr_expect_eq(status, s->message ? PSD_EINVAL : PSD_OK, "'%s': %s", s->text, status ? err.text : "read");
		if (status && s->message)
			cr_expect(strlen(err.text) > length &&
					  !strcmp(err.text + strlen(err.text) - length, s->message),
				  "%s", err.text);
		else if (s->name)
			cr_expect_str_eq(name, s->name);
		else if (!status)
			cr_expect(value > s->value * (1 - 1e-15) - 1e-300 && value < s->value * (1 + 1e-15) + 1e-300,
				  "'%s' is %g", s->text, value);
	}
}

/* ---- layer kinds ---- */

static enum psd_status read_layer(struct psd_graph *graph, const char *layer, struct psd_error *err)
{
	char text[256];
	const int length =
		snprintf(text, sizeof(text),
			 "name: n\ninput: {channels: 3, height: 8, width: 8}\nlayers:\n  - {name: a, %s}\n", layer);

	return psd_model_parse(graph, "model.yaml", text, (size_t)length, err);
}

Test(spelling, layer_kinds_have_names_of_pytorch_too)
{
	static const struct {
		const char *layer;
		const struct psd_layer_kind *kind;
	} layers[] = {
		{"kind: conv, outputs: 4, kernel: 3", &psd_layer_conv},
		{"kind: Conv2d, outputs: 4, kernel: 3", &psd_layer_conv},
		{"kind: linear, outputs: 5", &psd_layer_inner_product},
		{"kind: Linear, outputs: 5", &psd_layer_inner_product},
		{"kind: inner_product, outputs: 5", &psd_layer_inner_product},
		{"kind: batchnorm", &psd_layer_batch_norm},
		{"kind: BatchNorm2d", &psd_layer_batch_norm},
		{"kind: LayerNorm", &psd_layer_layer_norm},
		{"kind: ReLU", &psd_layer_relu},
		{"kind: MaxPool2d, kernel: 2, stride: 2", &psd_layer_pool},
		{"kind: AdaptiveAvgPool2d", &psd_layer_global_pool},
		{"kind: Dropout2d, ratio: 0.5", &psd_layer_dropout},
		{"kind: BatchNorm1d", &psd_layer_batch_norm},
		{"kind: affine, factor: 2", &psd_layer_affine},
	};
	struct psd_graph graph;
	struct psd_error err;

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		const enum psd_status status = read_layer(&graph, layers[i].layer, &err);

		cr_assert_eq(status, PSD_OK, "%s: %s", layers[i].layer, status ? err.text : "");
		cr_expect_str_eq(graph.layers[1].kind->name, layers[i].kind->name);
		psd_graph_release(&graph);
	}
}

Test(spelling, the_pooling_of_means_has_its_name)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(read_layer(&graph, "kind: AvgPool2d, kernel: 2, stride: 2", &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.layers[1].settings.pool.method, PSD_POOL_AVERAGE);
	psd_graph_release(&graph);
}

Test(spelling, a_model_that_is_not_there_gets_the_name_of_one_that_is)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_expect_eq(psd_graph_load(&graph, "scenarios/GPT2", &err), PSD_EFILE);
	cr_expect_str_eq(err.text, "scenarios/GPT2: cannot be opened: No such file or directory, did you mean "
				   "'gpt2.yaml' or 'models/gpt2.yaml'?");
	cr_expect_eq(psd_graph_load(&graph, "scenarios/models/ResNet-50.yaml", &err), PSD_EFILE);
	cr_expect_str_eq(err.text, "scenarios/models/ResNet-50.yaml: cannot be opened: No such file or directory, did "
				   "you mean 'resnet50.yaml'?");
	cr_expect_eq(psd_graph_load(&graph, "scenarios/unheard", &err), PSD_EFILE);
	cr_expect_str_eq(err.text, "scenarios/unheard: cannot be opened: No such file or directory");
}

Test(spelling, an_older_file_cannot_take_a_linear_layer_for_an_affine_map)
{
	struct psd_graph graph;
	struct psd_error err;

	cr_assert_eq(read_layer(&graph, "kind: linear, factor: 2", &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "now called 'affine'"), "%s", err.text);
	cr_assert_eq(read_layer(&graph, "kind: linear", &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "outputs"), "%s", err.text);
	cr_assert_eq(read_layer(&graph, "kind: convv, outputs: 4", &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "did you mean conv?"), "%s", err.text);
}
