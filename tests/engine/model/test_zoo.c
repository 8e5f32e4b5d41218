/* Networks of Caffe's zoo, written here by a few loops in Caffe's spelling and its forks', load with the number of
 * parameters that their papers or their authors' implementations have. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/model/graph.h"
#include "engine/model/prototxt.h"

/* A network under construction: blobs are numbers, and a layer is named after the blob that it makes. */
struct zoo {
	struct psd_text text;
	unsigned n_blobs;
	const char
		*batch_norm; /* text of batch_norm_param; NULL: no batch normalisation, and convolutions have a bias */
	bool has_bias;	     /* convolutions have one beside a batch norm, too */
};

static unsigned begin(struct zoo *zoo, const char *batch_norm, const char *input)
{
	*zoo = (struct zoo){.batch_norm = batch_norm};
	psd_text_add(&zoo->text, "name: 'zoo'\n%s\n", input);
	return 0;
}

#define INPUT_DIM	  "input: 'b0' input_dim: 1 input_dim: 3 input_dim: 224 input_dim: 224"
#define INPUT_SHAPE(side) "input: 'b0' input_shape { dim: 1 dim: 3 dim: " #side " dim: " #side " }"
#define INPUT_LAYER                                                                                                    \
	"layer { name: 'data' type: 'Input' top: 'b0' input_param: { shape: { dim: 10 dim: 3 dim: 224 dim: 224 } } }"
#define DATA_LAYER                                                                                                     \
	"layer { name: 'data' type: 'Data' top: 'b0' top: 'label' include { phase: TRAIN } transform_param { mirror: " \
	"true crop_size: 224 mean_value: 104 } data_param { source: 'lmdb' batch_size: 32 backend: LMDB } }"

#define FIXED "use_global_stats: true eps: 0.001"

/* A layer of one bottom and what stands in it. */
static unsigned layer(struct zoo *zoo, const char *type, unsigned in, const char *rest)
{
	const unsigned out = ++zoo->n_blobs;

	psd_text_add(&zoo->text, "layer { name: 'l%u' type: '%s' bottom: 'b%u' top: 'b%u' %s }\n", out, type, in, out,
		     rest);
	return out;
}

static unsigned in_place(struct zoo *zoo, const char *type, unsigned blob, const char *rest)
{
	psd_text_add(&zoo->text, "layer { name: 'l%u_%s' type: '%s' bottom: 'b%u' top: 'b%u' %s }\n", blob, type, type,
		     blob, blob, rest);
	return blob;
}

struct window {
	unsigned height, width, stride, pad_height, pad_width, group;
};

static unsigned convolve(struct zoo *zoo, unsigned in, unsigned outputs, struct window w)
{
	const unsigned out = ++zoo->n_blobs;
	const bool is_deep = w.group == outputs;

	psd_text_add(&zoo->text,
		     "layer { name: 'l%u' type: '%s' bottom: 'b%u' top: 'b%u' param { lr_mult: 1 decay_mult: 1 } "
		     "convolution_param { num_output: %u bias_term: %s stride: %u weight_filler { type: 'msra' } ",
		     out, is_deep ? "ConvolutionDepthwise" : "Convolution", in, out, outputs,
		     zoo->batch_norm && !zoo->has_bias ? "false" : "true", w.stride);
	if (w.height == w.width)
		psd_text_add(&zoo->text, "kernel_size: %u pad: %u ", w.height, w.pad_height);
	else
		psd_text_add(&zoo->text, "kernel_h: %u kernel_w: %u pad_h: %u pad_w: %u ", w.height, w.width,
			     w.pad_height, w.pad_width);
	psd_text_add(&zoo->text, w.group > 1 && !is_deep ? "group: %u } }\n" : "} }\n", w.group);
	return out;
}

static unsigned normalise(struct zoo *zoo, unsigned in, bool is_in_place)
{
	char rest[120];
	unsigned out;

	snprintf(rest, sizeof(rest), "%s batch_norm_param { %s }",
		 strstr(zoo->batch_norm, "global") ? ""
						   : "param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 0 }",
		 zoo->batch_norm);
	out = is_in_place ? in_place(zoo, "BatchNorm", in, rest) : layer(zoo, "BatchNorm", in, rest);
	return in_place(zoo, "Scale", out, "scale_param { bias_term: true }");
}

static unsigned rectify(struct zoo *zoo, unsigned blob)
{
	return in_place(zoo, "ReLU", blob, "");
}

/* A convolution with what follows it, but for the rectifier. */
static unsigned bare(struct zoo *zoo, unsigned in, unsigned outputs, struct window w)
{
	const unsigned out = convolve(zoo, in, outputs, w);

	return zoo->batch_norm ? normalise(zoo, out, true) : out;
}

static unsigned conv(struct zoo *zoo, unsigned in, unsigned outputs, unsigned kernel, unsigned stride, unsigned pad)
{
	return rectify(zoo, bare(zoo, in, outputs, (struct window){kernel, kernel, stride, pad, pad, 1}));
}

/* A convolution of one row or one column, padded so that the size stays. */
static unsigned line(struct zoo *zoo, unsigned in, unsigned outputs, unsigned height, unsigned width)
{
	return rectify(zoo, bare(zoo, in, outputs, (struct window){height, width, 1, height / 2, width / 2, 1}));
}

static unsigned pool(struct zoo *zoo, unsigned in, const char *rest)
{
	char param[120];

	snprintf(param, sizeof(param), "pooling_param { %s }", rest);
	return layer(zoo, "Pooling", in, param);
}

#define MAX_2	 "pool: MAX kernel_size: 3 stride: 2"
#define AVERAGE	 "pool: AVE kernel_size: 3 stride: 1 pad: 1"
#define ALL	 "pool: AVE global_pooling: true"
#define OUTWARDS "pool: MAX kernel_size: 3 stride: 2 pad: 1 ceil_mode: false"

/* blobs: up to the first 0. */
static unsigned join(struct zoo *zoo, const char *type, const unsigned blobs[], const char *rest)
{
	const unsigned out = ++zoo->n_blobs;

	psd_text_add(&zoo->text, "layer { name: 'l%u' type: '%s' top: 'b%u' %s", out, type, out, rest);
	for (unsigned i = 0; blobs[i]; i++)
		psd_text_add(&zoo->text, " bottom: 'b%u'", blobs[i]);
	psd_text_add(&zoo->text, " }\n");
	return out;
}

#define CONCAT(zoo, ...) join(zoo, "Concat", (const unsigned[]){__VA_ARGS__, 0}, "")
#define ADD(zoo, ...)	 join(zoo, "Eltwise", (const unsigned[]){__VA_ARGS__, 0}, "eltwise_param { operation: SUM }")

static unsigned connect(struct zoo *zoo, unsigned in, unsigned outputs)
{
	char rest[120];

	snprintf(rest, sizeof(rest),
		 "param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } inner_product_param { num_output: %u }",
		 outputs);
	return layer(zoo, "InnerProduct", in, rest);
}

static void end(struct zoo *zoo, unsigned blob, uint64_t parameters)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	layer(zoo, "Softmax", blob, "");
	cr_assert_not(zoo->text.is_out_of_memory);
	cr_assert_eq(psd_prototxt_parse(&graph, "zoo.prototxt", zoo->text.bytes, strlen(zoo->text.bytes), NULL, &err),
		     PSD_OK, "%s", err.text);
	cr_assert_eq(graph.parameters, parameters, "%llu, must be %llu", (unsigned long long)graph.parameters,
		     (unsigned long long)parameters);
	psd_graph_release(&graph);
	psd_text_release(&zoo->text);
}

static void classify(struct zoo *zoo, unsigned blob, uint64_t parameters)
{
	end(zoo, connect(zoo, pool(zoo, blob, ALL), 1000), parameters);
}

/* ---- VGG (Simonyan and Zisserman 2015) ---- */

static void check_vgg(const unsigned depths[5], const char *batch_norm, uint64_t parameters)
{
	struct zoo zoo;
	unsigned blob = begin(&zoo, batch_norm, INPUT_DIM);

	zoo.has_bias = true;
	for (unsigned stage = 0; stage < 5; stage++) {
		for (unsigned i = 0; i < depths[stage]; i++)
			blob = conv(&zoo, blob, stage < 3 ? 64u << stage : 512, 3, 1, 1);
		blob = pool(&zoo, blob, "pool: MAX kernel_size: 2 stride: 2");
	}
	for (unsigned i = 0; i < 2; i++) {
		blob = rectify(&zoo, connect(&zoo, blob, 4096));
		in_place(&zoo, "Dropout", blob, "dropout_param { dropout_ratio: 0.5 }");
	}
	end(&zoo, connect(&zoo, blob, 1000), parameters);
}

Test(zoo, vgg_with_and_without_batch_norm)
{
	check_vgg((const unsigned[]){2, 2, 3, 3, 3}, NULL, 138357544);
	check_vgg((const unsigned[]){2, 2, 4, 4, 4}, NULL, 143667240);
	check_vgg((const unsigned[]){2, 2, 3, 3, 3}, FIXED, 138365992);
	check_vgg((const unsigned[]){2, 2, 4, 4, 4}, FIXED, 143678248);
}

/* ---- ResNet v1 and v2, ResNeXt, wide, squeeze and excitation ---- */

struct residual {
	unsigned depths[4];
	unsigned width, group; /* 3x3 convolution in the first stage; 0: two 3x3 without a bottleneck */
	bool comes_first;      /* normalisation, before each convolution: v2 */
	bool is_excited;
	const char *input;
};

/* Squeeze and excitation: weighs the channels by their means; added to the shortcut. */
static unsigned excite(struct zoo *zoo, unsigned blob, unsigned shortcut, unsigned channels)
{
	const char *const batch_norm = zoo->batch_norm;
	unsigned worth;

	zoo->batch_norm = NULL;
	worth = conv(zoo, pool(zoo, blob, "pool: AVE engine: CAFFE global_pooling: true"), channels / 16, 1, 1, 0);
	worth = in_place(zoo, "Sigmoid", convolve(zoo, worth, channels, (struct window){1, 1, 1, 0, 0, 1}), "");
	zoo->batch_norm = batch_norm;
	return join(zoo, "Axpy", (const unsigned[]){worth, blob, shortcut, 0}, "");
}

static unsigned add_block(struct zoo *zoo, const struct residual *net, unsigned in, unsigned stage, unsigned stride,
			  bool is_first)
{
	const unsigned width = (net->width ? net->width : 64) << stage, outputs = (net->width ? 256u : 64u) << stage;
	const bool is_deep = net->width > 0;
	const bool has_projection = is_first && (is_deep || stage > 0);
	unsigned shortcut = in, blob = in;

	if (has_projection)
		shortcut = bare(zoo, in, outputs, (struct window){1, 1, stride, 0, 0, 1});
	blob = is_deep ? conv(zoo, blob, width, 1, 1, 0) : conv(zoo, blob, width, 3, stride, 1);
	if (is_deep)
		blob = rectify(zoo, bare(zoo, blob, width, (struct window){3, 3, stride, 1, 1, net->group}));
	blob = is_deep ? bare(zoo, blob, outputs, (struct window){1, 1, 1, 0, 0, 1})
		       : bare(zoo, blob, outputs, (struct window){3, 3, 1, 1, 1, 1});
	return rectify(zoo, net->is_excited ? excite(zoo, blob, shortcut, outputs) : ADD(zoo, shortcut, blob));
}

/* He et al. 2016: a rectified normalisation stands before each convolution, and of a first block before both ways. */
static unsigned add_block_v2(struct zoo *zoo, const struct residual *net, unsigned in, unsigned stage, unsigned stride,
			     bool is_first)
{
	const unsigned width = net->width << stage, outputs = 256u << stage;
	const unsigned before = rectify(zoo, normalise(zoo, in, false));
	const unsigned shortcut =
		is_first ? convolve(zoo, before, outputs, (struct window){1, 1, stride, 0, 0, 1}) : in;
	unsigned blob = conv(zoo, before, width, 1, 1, 0);

	blob = conv(zoo, blob, width, 3, stride, 1);
	return ADD(zoo, shortcut, convolve(zoo, blob, outputs, (struct window){1, 1, 1, 0, 0, 1}));
}

static void check_residual(struct residual net, uint64_t parameters)
{
	struct zoo zoo;
	unsigned blob = begin(&zoo, net.comes_first ? "eps: 1e-5" : FIXED, net.input);

	blob = net.comes_first ? convolve(&zoo, blob, 64, (struct window){7, 7, 2, 3, 3, 1})
			       : conv(&zoo, blob, 64, 7, 2, 3);
	blob = pool(&zoo, blob, OUTWARDS);
	for (unsigned stage = 0; stage < 4; stage++)
		for (unsigned i = 0; i < net.depths[stage]; i++)
			blob = (net.comes_first ? add_block_v2 : add_block)(&zoo, &net, blob, stage,
									    stage && !i ? 2 : 1, i == 0);
	if (net.comes_first)
		blob = rectify(&zoo, normalise(&zoo, blob, false));
	classify(&zoo, blob, parameters);
}

Test(zoo, resnet_v1)
{
	check_residual((struct residual){{2, 2, 2, 2}, .group = 1, .input = INPUT_DIM}, 11689512);
	check_residual((struct residual){{3, 4, 6, 3}, .group = 1, .input = INPUT_LAYER}, 21797672);
	check_residual((struct residual){{3, 4, 6, 3}, 64, 1, .input = INPUT_DIM}, 25557032);
	check_residual((struct residual){{3, 4, 23, 3}, 64, 1, .input = DATA_LAYER}, 44549160);
	check_residual((struct residual){{3, 8, 36, 3}, 64, 1, .input = INPUT_DIM}, 60192808);
}

Test(zoo, resnet_v2)
{
	check_residual((struct residual){{3, 4, 6, 3}, 64, 1, .comes_first = true, .input = INPUT_DIM}, 25549352);
	check_residual((struct residual){{3, 4, 23, 3}, 64, 1, .comes_first = true, .input = INPUT_DIM}, 44541480);
	check_residual((struct residual){{3, 8, 36, 3}, 64, 1, .comes_first = true, .input = INPUT_DIM}, 60185128);
}

Test(zoo, resnext_and_wide_resnet)
{
	check_residual((struct residual){{3, 4, 6, 3}, 128, 32, .input = INPUT_DIM}, 25028904);
	check_residual((struct residual){{3, 4, 23, 3}, 128, 32, .input = INPUT_DIM}, 44177704);
	check_residual((struct residual){{3, 4, 23, 3}, 256, 64, .input = INPUT_SHAPE(224)}, 83455272);
	check_residual((struct residual){{3, 4, 6, 3}, 128, 1, .input = INPUT_SHAPE(224)}, 68883240);
}

/* Hu et al. 2018: three 3x3 at first, half of the channels before a grouped 3x3, and a 3x3 beside it to shrink. */
Test(zoo, senet_154)
{
	static const unsigned depths[] = {3, 8, 36, 3};
	struct zoo zoo;
	unsigned blob = begin(&zoo, FIXED, INPUT_LAYER);

	blob = conv(&zoo, conv(&zoo, conv(&zoo, blob, 64, 3, 2, 1), 64, 3, 1, 1), 128, 3, 1, 1);
	blob = pool(&zoo, blob, MAX_2);
	for (unsigned stage = 0; stage < 4; stage++)
		for (unsigned i = 0; i < depths[stage]; i++) {
			const unsigned width = 256u << stage, side = stage ? 3 : 1, stride = stage && !i ? 2 : 1;
			const unsigned shortcut =
				i ? blob
				  : bare(&zoo, blob, width, (struct window){side, side, stride, side / 2, side / 2, 1});

			blob = conv(&zoo, blob, width / 2, 1, 1, 0);
			blob = rectify(&zoo, bare(&zoo, blob, width, (struct window){3, 3, stride, 1, 1, 64}));
			blob = bare(&zoo, blob, width, (struct window){1, 1, 1, 0, 0, 1});
			blob = rectify(&zoo, excite(&zoo, blob, shortcut, width));
		}
	in_place(&zoo, "Dropout", blob, "dropout_param { dropout_ratio: 0.2 }");
	classify(&zoo, blob, 115088984);
}

Test(zoo, squeeze_and_excitation)
{
	check_residual((struct residual){{3, 8, 36, 3}, 64, 1, .is_excited = true, .input = INPUT_LAYER}, 66821848);
	check_residual((struct residual){{3, 4, 23, 3}, 128, 32, .is_excited = true, .input = INPUT_LAYER}, 48955416);
	check_residual((struct residual){{3, 4, 6, 3}, 64, 1, .is_excited = true, .input = INPUT_LAYER}, 28088024);
	check_residual((struct residual){{3, 4, 6, 3}, 128, 32, .is_excited = true, .input = INPUT_LAYER}, 27559896);
}

/* ---- Inception ---- */

static unsigned project(struct zoo *zoo, unsigned in, const char *pooling, unsigned outputs)
{
	return conv(zoo, pool(zoo, in, pooling), outputs, 1, 1, 0);
}

Test(zoo, inception_v1)
{
	static const unsigned widths[][6] = {
		{64, 96, 128, 16, 32, 32},     {128, 128, 192, 32, 96, 64},   {192, 96, 208, 16, 48, 64},
		{160, 112, 224, 24, 64, 64},   {128, 128, 256, 24, 64, 64},   {112, 144, 288, 32, 64, 64},
		{256, 160, 320, 32, 128, 128}, {256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128},
	};
	static const char lrn[] = "lrn_param { local_size: 5 alpha: 0.0001 beta: .75 }";
	struct zoo zoo;
	unsigned blob = begin(&zoo, NULL, DATA_LAYER);

	blob = layer(&zoo, "LRN", pool(&zoo, conv(&zoo, blob, 64, 7, 2, 3), MAX_2), lrn);
	blob = conv(&zoo, conv(&zoo, blob, 64, 1, 1, 0), 192, 3, 1, 1);
	blob = pool(&zoo, layer(&zoo, "LRN", blob, lrn), MAX_2);
	for (unsigned i = 0; i < 9; i++) {
		const unsigned *w = widths[i], in = i == 2 || i == 7 ? pool(&zoo, blob, MAX_2) : blob;
		const unsigned a = conv(&zoo, in, w[0], 1, 1, 0);
		const unsigned b = conv(&zoo, conv(&zoo, in, w[1], 1, 1, 0), w[2], 3, 1, 1);
		const unsigned c = conv(&zoo, conv(&zoo, in, w[3], 1, 1, 0), w[4], 5, 1, 2);

		blob = CONCAT(&zoo, a, b, c, project(&zoo, in, "pool: MAX kernel_size: 3 stride: 1 pad: 1", w[5]));
	}
	classify(&zoo, blob, 6998552);
}

/* Ioffe and Szegedy 2015, with the biases that the authors' convolutions have beside their normalisation. */
Test(zoo, inception_v2)
{
	static const unsigned widths[][6] = {/* 1x1 (0: a stride of 2), 3x3 after, twice 3x3 after, projection */
					     {64, 64, 64, 64, 96, 32},	     {64, 64, 96, 64, 96, 64},
					     {0, 128, 160, 64, 96, 0},	     {224, 64, 96, 96, 128, 128},
					     {192, 96, 128, 96, 128, 128},   {160, 128, 160, 128, 160, 128},
					     {96, 128, 192, 160, 192, 128},  {0, 128, 192, 192, 256, 0},
					     {352, 192, 320, 160, 224, 128}, {352, 192, 320, 192, 224, 128}};
	struct zoo zoo;
	unsigned blob = begin(&zoo, FIXED, INPUT_DIM);

	zoo.has_bias = true;
	blob = conv(&zoo, pool(&zoo, conv(&zoo, blob, 64, 7, 2, 3), MAX_2), 64, 1, 1, 0);
	blob = pool(&zoo, conv(&zoo, blob, 192, 3, 1, 1), MAX_2);
	for (unsigned i = 0; i < 10; i++) {
		const unsigned *w = widths[i], stride = w[0] ? 1 : 2;
		const unsigned b = conv(&zoo, conv(&zoo, blob, w[1], 1, 1, 0), w[2], 3, stride, 1);
		const unsigned first = conv(&zoo, conv(&zoo, blob, w[3], 1, 1, 0), w[4], 3, 1, 1);
		const unsigned c = conv(&zoo, first, w[4], 3, stride, 1);

		blob = w[0] ? CONCAT(&zoo, conv(&zoo, blob, w[0], 1, 1, 0), b, c, project(&zoo, blob, AVERAGE, w[5]))
			    : CONCAT(&zoo, b, c, pool(&zoo, blob, MAX_2));
	}
	classify(&zoo, blob, 11295240);
}

/* Two 3x3 after a 1x1. */
static unsigned twice(struct zoo *zoo, unsigned in, unsigned reduced, unsigned outputs, unsigned last, unsigned stride)
{
	const unsigned blob = conv(zoo, conv(zoo, in, reduced, 1, 1, 0), outputs, 3, 1, 1);

	return conv(zoo, blob, last, 3, stride, stride == 1);
}

/* Stem of Inception v3 and of Inception-ResNet v2. */
static unsigned add_stem(struct zoo *zoo, unsigned blob)
{
	blob = conv(zoo, conv(zoo, conv(zoo, blob, 32, 3, 2, 0), 32, 3, 1, 0), 64, 3, 1, 1);
	blob = conv(zoo, conv(zoo, pool(zoo, blob, MAX_2), 80, 1, 1, 0), 192, 3, 1, 0);
	return pool(zoo, blob, MAX_2);
}

/* Rows and columns beside each other. */
static unsigned cross(struct zoo *zoo, unsigned in, unsigned outputs)
{
	return CONCAT(zoo, line(zoo, in, outputs, 1, 3), line(zoo, in, outputs, 3, 1));
}

Test(zoo, inception_v3)
{
	static const unsigned pooled[] = {32, 64, 64}, sevens[] = {128, 160, 160, 192};
	struct zoo zoo;
	unsigned blob = add_stem(&zoo, begin(&zoo, FIXED, INPUT_SHAPE(299)));

	for (unsigned i = 0; i < 3; i++)
		blob = CONCAT(&zoo, conv(&zoo, blob, 64, 1, 1, 0),
			      conv(&zoo, conv(&zoo, blob, 48, 1, 1, 0), 64, 5, 1, 2), twice(&zoo, blob, 64, 96, 96, 1),
			      project(&zoo, blob, AVERAGE, pooled[i]));
	blob = CONCAT(&zoo, conv(&zoo, blob, 384, 3, 2, 0), twice(&zoo, blob, 64, 96, 96, 2), pool(&zoo, blob, MAX_2));
	for (unsigned i = 0; i < 4; i++) {
		const unsigned w = sevens[i], a = conv(&zoo, blob, 192, 1, 1, 0);
		const unsigned b = line(&zoo, line(&zoo, conv(&zoo, blob, w, 1, 1, 0), w, 1, 7), 192, 7, 1);
		const unsigned half = line(&zoo, line(&zoo, conv(&zoo, blob, w, 1, 1, 0), w, 7, 1), w, 1, 7);

		blob = CONCAT(&zoo, a, b, line(&zoo, line(&zoo, half, w, 7, 1), 192, 1, 7),
			      project(&zoo, blob, AVERAGE, 192));
	}
	const unsigned far = line(&zoo, line(&zoo, conv(&zoo, blob, 192, 1, 1, 0), 192, 1, 7), 192, 7, 1);

	blob = CONCAT(&zoo, conv(&zoo, conv(&zoo, blob, 192, 1, 1, 0), 320, 3, 2, 0), conv(&zoo, far, 192, 3, 2, 0),
		      pool(&zoo, blob, MAX_2));
	for (unsigned i = 0; i < 2; i++)
		blob = CONCAT(&zoo, conv(&zoo, blob, 320, 1, 1, 0), cross(&zoo, conv(&zoo, blob, 384, 1, 1, 0), 384),
			      cross(&zoo, conv(&zoo, conv(&zoo, blob, 448, 1, 1, 0), 384, 3, 1, 1), 384),
			      project(&zoo, blob, AVERAGE, 192));
	classify(&zoo, blob, 23834568);
}

Test(zoo, inception_v4)
{
	struct zoo zoo;
	unsigned blob = begin(&zoo, FIXED, INPUT_SHAPE(299)), far;

	blob = conv(&zoo, conv(&zoo, conv(&zoo, blob, 32, 3, 2, 0), 32, 3, 1, 0), 64, 3, 1, 1);
	blob = CONCAT(&zoo, pool(&zoo, blob, MAX_2), conv(&zoo, blob, 96, 3, 2, 0));
	far = line(&zoo, line(&zoo, conv(&zoo, blob, 64, 1, 1, 0), 64, 1, 7), 64, 7, 1);
	blob = CONCAT(&zoo, conv(&zoo, conv(&zoo, blob, 64, 1, 1, 0), 96, 3, 1, 0), conv(&zoo, far, 96, 3, 1, 0));
	blob = CONCAT(&zoo, conv(&zoo, blob, 192, 3, 2, 0), pool(&zoo, blob, MAX_2));
	for (unsigned i = 0; i < 4; i++)
		blob = CONCAT(&zoo, conv(&zoo, blob, 96, 1, 1, 0),
			      conv(&zoo, conv(&zoo, blob, 64, 1, 1, 0), 96, 3, 1, 1), twice(&zoo, blob, 64, 96, 96, 1),
			      project(&zoo, blob, AVERAGE, 96));
	blob = CONCAT(&zoo, conv(&zoo, blob, 384, 3, 2, 0), twice(&zoo, blob, 192, 224, 256, 2),
		      pool(&zoo, blob, MAX_2));
	for (unsigned i = 0; i < 7; i++) {
		const unsigned b = line(&zoo, line(&zoo, conv(&zoo, blob, 192, 1, 1, 0), 224, 1, 7), 256, 7, 1);

		far = line(&zoo, line(&zoo, conv(&zoo, blob, 192, 1, 1, 0), 192, 7, 1), 224, 1, 7);
		blob = CONCAT(&zoo, conv(&zoo, blob, 384, 1, 1, 0), b,
			      line(&zoo, line(&zoo, far, 224, 7, 1), 256, 1, 7), project(&zoo, blob, AVERAGE, 128));
	}
	far = line(&zoo, line(&zoo, conv(&zoo, blob, 256, 1, 1, 0), 256, 1, 7), 320, 7, 1);
	blob = CONCAT(&zoo, conv(&zoo, conv(&zoo, blob, 192, 1, 1, 0), 192, 3, 2, 0), conv(&zoo, far, 320, 3, 2, 0),
		      pool(&zoo, blob, MAX_2));
	for (unsigned i = 0; i < 3; i++) {
		far = line(&zoo, line(&zoo, conv(&zoo, blob, 384, 1, 1, 0), 448, 3, 1), 512, 1, 3);
		blob = CONCAT(&zoo, conv(&zoo, blob, 256, 1, 1, 0), cross(&zoo, conv(&zoo, blob, 384, 1, 1, 0), 256),
			      cross(&zoo, far, 256), project(&zoo, blob, AVERAGE, 256));
	}
	classify(&zoo, blob, 42679816);
}

/* The residual counts less than the shortcut. */
static unsigned add_scaled(struct zoo *zoo, unsigned in, unsigned blob, unsigned outputs, const char *coefficient)
{
	const char *const batch_norm = zoo->batch_norm;
	char rest[100];

	zoo->batch_norm = NULL;
	blob = convolve(zoo, blob, outputs, (struct window){1, 1, 1, 0, 0, 1});
	zoo->batch_norm = batch_norm;
	snprintf(rest, sizeof(rest), "eltwise_param { operation: SUM coeff: 1 coeff: %s }", coefficient);
	return rectify(zoo, join(zoo, "Eltwise", (const unsigned[]){in, blob, 0}, rest));
}

Test(zoo, inception_resnet_v2)
{
	struct zoo zoo;
	unsigned blob = add_stem(&zoo, begin(&zoo, FIXED, INPUT_SHAPE(299))), part;

	blob = CONCAT(&zoo, conv(&zoo, blob, 96, 1, 1, 0), conv(&zoo, conv(&zoo, blob, 48, 1, 1, 0), 64, 5, 1, 2),
		      twice(&zoo, blob, 64, 96, 96, 1), project(&zoo, blob, AVERAGE, 64));
	for (unsigned i = 0; i < 10; i++) {
		part = CONCAT(&zoo, conv(&zoo, blob, 32, 1, 1, 0),
			      conv(&zoo, conv(&zoo, blob, 32, 1, 1, 0), 32, 3, 1, 1), twice(&zoo, blob, 32, 48, 64, 1));
		blob = add_scaled(&zoo, blob, part, 320, "0.17");
	}
	blob = CONCAT(&zoo, conv(&zoo, blob, 384, 3, 2, 0), twice(&zoo, blob, 256, 256, 384, 2),
		      pool(&zoo, blob, MAX_2));
	for (unsigned i = 0; i < 20; i++) {
		part = line(&zoo, line(&zoo, conv(&zoo, blob, 128, 1, 1, 0), 160, 1, 7), 192, 7, 1);
		blob = add_scaled(&zoo, blob, CONCAT(&zoo, conv(&zoo, blob, 192, 1, 1, 0), part), 1088, ".1");
	}
	blob = CONCAT(&zoo, conv(&zoo, conv(&zoo, blob, 256, 1, 1, 0), 384, 3, 2, 0),
		      conv(&zoo, conv(&zoo, blob, 256, 1, 1, 0), 288, 3, 2, 0), twice(&zoo, blob, 256, 288, 320, 2),
		      pool(&zoo, blob, MAX_2));
	for (unsigned i = 0; i < 10; i++) {
		part = line(&zoo, line(&zoo, conv(&zoo, blob, 192, 1, 1, 0), 224, 1, 3), 256, 3, 1);
		blob = add_scaled(&zoo, blob, CONCAT(&zoo, conv(&zoo, blob, 192, 1, 1, 0), part), 2080, "0.2");
	}
	classify(&zoo, conv(&zoo, blob, 1536, 1, 1, 0), 55843464);
}

/* ---- DenseNet (Huang et al. 2017) ---- */

static void check_dense(const unsigned depths[4], unsigned growth, uint64_t parameters)
{
	struct zoo zoo;
	unsigned channels = 2 * growth, blob = begin(&zoo, "eps: 1e-5", INPUT_DIM);

	blob = pool(&zoo, conv(&zoo, blob, channels, 7, 2, 3),
		    "pool: MAX kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR");
	for (unsigned stage = 0; stage < 4; stage++) {
		for (unsigned i = 0; i < depths[stage]; i++, channels += growth) {
			unsigned part = rectify(&zoo, normalise(&zoo, blob, false));

			part = conv(&zoo, part, 4 * growth, 1, 1, 0);
			blob = CONCAT(&zoo, blob, convolve(&zoo, part, growth, (struct window){3, 3, 1, 1, 1, 1}));
		}
		blob = rectify(&zoo, normalise(&zoo, blob, false));
		if (stage == 3)
			break;
		blob = convolve(&zoo, blob, channels /= 2, (struct window){1, 1, 1, 0, 0, 1});
		blob = pool(&zoo, blob, "pool: AVE kernel_size: 2 stride: 2");
	}
	classify(&zoo, blob, parameters);
}

Test(zoo, densenet)
{
	check_dense((const unsigned[]){6, 12, 24, 16}, 32, 7978856);
	check_dense((const unsigned[]){6, 12, 36, 24}, 48, 28681000);
	check_dense((const unsigned[]){6, 12, 48, 32}, 32, 20013928);
}

/* ---- dual path networks (Chen et al. 2017) ---- */

struct dual {
	unsigned depths[4], dense[4];	 /* blocks, and channels that one adds */
	unsigned first, width, residual; /* channels of the first convolution, of a 3x3 and of the residual path */
	bool is_small;
};

static unsigned slice(struct zoo *zoo, unsigned in, unsigned at)
{
	const unsigned out = zoo->n_blobs + 1;

	psd_text_add(&zoo->text,
		     "layer { name: 'l%u_Slice' type: 'Slice' bottom: 'b%u' top: 'b%u' top: 'b%u' slice_param { axis: "
		     "1 slice_point: %u } }\n",
		     out, in, out, out + 1, at);
	zoo->n_blobs += 2;
	return out;
}

static void check_dual(const struct dual *net, uint64_t parameters)
{
	struct zoo zoo;
	const unsigned side = net->is_small ? 3 : 7;
	unsigned whole = begin(&zoo, FIXED, INPUT_DIM), paths[2];

	whole = pool(&zoo, conv(&zoo, whole, net->first, side, 2, side / 2), OUTWARDS);
	for (unsigned stage = 0; stage < 4; stage++)
		for (unsigned i = 0; i < net->depths[stage]; i++) {
			const unsigned residual = net->residual << stage, width = net->width << stage;
			const unsigned stride = stage && !i ? 2 : 1, dense = net->dense[stage];
			unsigned part;

			if (i == 0) {
				part = rectify(&zoo, normalise(&zoo, whole, false));
				part = convolve(&zoo, part, residual + 2 * dense,
						(struct window){1, 1, stride, 0, 0, 1});
				paths[0] = slice(&zoo, part, residual);
				paths[1] = paths[0] + 1;
			}
			part = rectify(&zoo, normalise(&zoo, whole, false));
			part = conv(&zoo, part, width, 1, 1, 0);
			part = rectify(&zoo, bare(&zoo, part, width, (struct window){3, 3, stride, 1, 1, 32}));
			part = slice(&zoo, convolve(&zoo, part, residual + dense, (struct window){1, 1, 1, 0, 0, 1}),
				     residual);
			paths[0] = ADD(&zoo, paths[0], part);
			paths[1] = CONCAT(&zoo, paths[1], part + 1);
			whole = CONCAT(&zoo, paths[0], paths[1]);
		}
	classify(&zoo, rectify(&zoo, normalise(&zoo, whole, false)), parameters);
}

Test(zoo, dual_path_networks)
{
	const struct dual small = {{3, 4, 12, 3}, {16, 32, 32, 64}, 10, 128, 64, true},
			  large = {{3, 4, 20, 3}, {16, 32, 24, 128}, 64, 96, 256, false};

	check_dual(&small, 12611602);
	check_dual(&large, 37668392);
}

/* ---- MobileNet v1 and v2, Xception ---- */

/* A 3x3 of each channel alone. */
static unsigned deepen(struct zoo *zoo, unsigned in, unsigned channels, unsigned stride)
{
	return bare(zoo, in, channels, (struct window){3, 3, stride, 1, 1, channels});
}

Test(zoo, mobilenet_v1)
{
	static const unsigned outputs[] = {64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024};
	struct zoo zoo;
	unsigned channels = 32, blob = conv(&zoo, begin(&zoo, FIXED, INPUT_DIM), channels, 3, 2, 1);

	for (unsigned i = 0; i < 13; i++) {
		blob = rectify(&zoo, deepen(&zoo, blob, channels, i == 1 || i == 3 || i == 5 || i == 11 ? 2 : 1));
		blob = conv(&zoo, blob, channels = outputs[i], 1, 1, 0);
	}
	classify(&zoo, blob, 4231976);
}

Test(zoo, mobilenet_v2)
{
	static const unsigned stages[][4] = {/* expansion, channels, blocks, stride */
					     {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
					     {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
	struct zoo zoo;
	unsigned channels = 32, blob = conv(&zoo, begin(&zoo, FIXED, INPUT_DIM), channels, 3, 2, 1);

	for (unsigned s = 0; s < 7; s++)
		for (unsigned i = 0; i < stages[s][2]; i++) {
			const unsigned wide = channels * stages[s][0], in = blob;

			if (stages[s][0] > 1)
				blob = conv(&zoo, blob, wide, 1, 1, 0);
			blob = in_place(&zoo, "ReLU6", deepen(&zoo, blob, wide, i ? 1 : stages[s][3]), "");
			blob = bare(&zoo, blob, channels = stages[s][1], (struct window){1, 1, 1, 0, 0, 1});
			if (i)
				blob = ADD(&zoo, in, blob);
		}
	classify(&zoo, conv(&zoo, blob, 1280, 1, 1, 0), 3504872);
}

/* Chollet 2017: one normalisation after both convolutions. */
static unsigned separate(struct zoo *zoo, unsigned in, unsigned channels, unsigned outputs)
{
	const unsigned deep = convolve(zoo, in, channels, (struct window){3, 3, 1, 1, 1, channels});

	return bare(zoo, deep, outputs, (struct window){1, 1, 1, 0, 0, 1});
}

Test(zoo, xception)
{
	static const unsigned entry[] = {128, 256, 728, 1024};
	struct zoo zoo;
	unsigned channels = 64, blob = conv(&zoo, begin(&zoo, FIXED, INPUT_SHAPE(299)), 32, 3, 2, 0), part;

	blob = conv(&zoo, blob, channels, 3, 1, 0);
	for (unsigned i = 0; i < 4; i++) {
		const unsigned outputs = entry[i], inner = i == 3 ? channels : outputs;
		const unsigned shortcut = bare(&zoo, blob, outputs, (struct window){1, 1, 2, 0, 0, 1});

		part = separate(&zoo, i ? layer(&zoo, "ReLU", blob, "") : blob, channels, inner);
		part = separate(&zoo, rectify(&zoo, part), inner, outputs);
		blob = ADD(&zoo, shortcut, pool(&zoo, part, OUTWARDS));
		channels = outputs;
		for (unsigned m = 0; i == 2 && m < 8; m++) {
			part = layer(&zoo, "ReLU", blob, "");
			for (unsigned s = 0; s < 3; s++)
				part = s ? separate(&zoo, rectify(&zoo, part), 728, 728)
					 : separate(&zoo, part, 728, 728);
			blob = ADD(&zoo, blob, part);
		}
	}
	blob = rectify(&zoo, separate(&zoo, blob, 1024, 1536));
	classify(&zoo, rectify(&zoo, separate(&zoo, blob, 1536, 2048)), 22855952);
}

/* ---- SqueezeNet 1.1, and the channel shuffle of ShuffleNet ---- */

Test(zoo, squeezenet)
{
	static const unsigned squeezes[] = {16, 16, 32, 32, 48, 48, 64, 64};
	struct zoo zoo;
	unsigned blob = pool(&zoo, conv(&zoo, begin(&zoo, NULL, INPUT_SHAPE(227)), 64, 3, 2, 0), MAX_2);

	for (unsigned i = 0; i < 8; i++) {
		const unsigned part = conv(&zoo, blob, squeezes[i], 1, 1, 0), wide = 4 * squeezes[i];

		blob = CONCAT(&zoo, conv(&zoo, part, wide, 1, 1, 0), conv(&zoo, part, wide, 3, 1, 1));
		if (i == 1 || i == 3)
			blob = pool(&zoo, blob, MAX_2);
	}
	blob = conv(&zoo, in_place(&zoo, "Dropout", blob, ""), 1000, 1, 1, 0);
	end(&zoo, layer(&zoo, "Flatten", pool(&zoo, blob, ALL), ""), 1235496);
}

/* Channels of three groups in turn, by blobs of five dimensions. */
static unsigned mix(struct zoo *zoo, unsigned blob, unsigned channels)
{
	char rest[100];

	snprintf(rest, sizeof(rest), "reshape_param { shape { dim: 3 dim: %u } axis: 1 num_axes: 1 }", channels / 3);
	blob = layer(zoo, "Reshape", blob, rest);
	blob = layer(zoo, "Permute", blob, "permute_param { order: [0, 2, 1, 3, 4] }");
	return layer(zoo, "Flatten", blob, "flatten_param { axis: 1 end_axis: 2 }");
}

/* Zhang et al. 2018, with three groups; the first convolution of 24 channels has one. */
Test(zoo, shufflenet_v1)
{
	static const unsigned outputs[] = {240, 480, 960}, depths[] = {4, 8, 4};
	struct zoo zoo;
	unsigned blob = pool(&zoo, conv(&zoo, begin(&zoo, FIXED, INPUT_DIM), 24, 3, 2, 1), MAX_2), inputs = 24;

	for (unsigned stage = 0; stage < 3; stage++)
		for (unsigned i = 0; i < depths[stage]; i++, inputs = outputs[stage]) {
			const unsigned width = outputs[stage] / 4, groups = inputs == 24 ? 1 : 3;
			const unsigned added = i ? outputs[stage] : outputs[stage] - inputs;
			unsigned part = rectify(&zoo, bare(&zoo, blob, width, (struct window){1, 1, 1, 0, 0, groups}));

			part = deepen(&zoo, mix(&zoo, part, width), width, i ? 1 : 2);
			part = bare(&zoo, part, added, (struct window){1, 1, 1, 0, 0, 3});
			blob = i ? ADD(&zoo, blob, part)
				 : CONCAT(&zoo, pool(&zoo, blob, "pool: AVE kernel_size: 3 stride: 2"), part);
			blob = rectify(&zoo, blob);
		}
	classify(&zoo, blob, 1865728);
}

/* Ma et al. 2018: half of the channels are passed on unchanged, then all are mixed. A block that shrinks the map has a
 * branch for the other half. */
Test(zoo, shufflenet_v2)
{
	static const unsigned outputs[] = {116, 232, 464}, depths[] = {4, 8, 4};
	struct zoo zoo;
	unsigned blob = pool(&zoo, conv(&zoo, begin(&zoo, FIXED, INPUT_DIM), 24, 3, 2, 1), MAX_2), inputs = 24;

	for (unsigned stage = 0; stage < 3; stage++)
		for (unsigned i = 0; i < depths[stage]; i++, inputs = outputs[stage]) {
			const unsigned half = outputs[stage] / 2;
			const unsigned left =
				i ? slice(&zoo, blob, half) : conv(&zoo, deepen(&zoo, blob, inputs, 2), half, 1, 1, 0);

			blob = conv(&zoo, i ? left + 1 : blob, half, 1, 1, 0);
			blob = conv(&zoo, deepen(&zoo, blob, half, i ? 1 : 2), half, 1, 1, 0);
			blob = CONCAT(&zoo, left, blob);
			blob = layer(&zoo, "ShuffleChannel", blob, "shuffle_channel_param { group: 2 }");
		}
	classify(&zoo, conv(&zoo, blob, 1024, 1, 1, 0), 2278604);
}

/* ---- without normalisation ---- */

Test(zoo, caffenet)
{
	static const unsigned outputs[] = {384, 384, 256}, groups[] = {1, 2, 2};
	struct zoo zoo;
	unsigned blob = pool(&zoo, conv(&zoo, begin(&zoo, NULL, INPUT_SHAPE(227)), 96, 11, 4, 0), MAX_2);

	blob = layer(&zoo, "LRN", blob, "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }");
	blob = rectify(&zoo, convolve(&zoo, blob, 256, (struct window){5, 5, 1, 2, 2, 2}));
	blob = layer(&zoo, "LRN", pool(&zoo, blob, MAX_2), "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }");
	for (unsigned i = 0; i < 3; i++)
		blob = rectify(&zoo, convolve(&zoo, blob, outputs[i], (struct window){3, 3, 1, 1, 1, groups[i]}));
	blob = pool(&zoo, blob, MAX_2);
	for (unsigned i = 0; i < 2; i++)
		in_place(&zoo, "Dropout", blob = rectify(&zoo, connect(&zoo, blob, 4096)), "");
	end(&zoo, connect(&zoo, blob, 1000), 60965224);
}

/* Lin et al. 2014. */
Test(zoo, network_in_network)
{
	static const unsigned widths[][5] = {
		{96, 96, 11, 4, 0}, {256, 256, 5, 1, 2}, {384, 384, 3, 1, 1}, {1024, 1000, 3, 1, 1}};
	struct zoo zoo;
	unsigned blob = begin(&zoo, NULL, INPUT_DIM);

	for (unsigned i = 0; i < 4; i++) {
		const unsigned *w = widths[i];

		blob = conv(&zoo, conv(&zoo, blob, w[0], w[2], w[3], w[4]), w[0], 1, 1, 0);
		blob = conv(&zoo, blob, w[1], 1, 1, 0);
		blob = i < 3 ? pool(&zoo, blob, MAX_2) : pool(&zoo, blob, ALL);
	}
	end(&zoo, blob, 7595176);
}
