/* Kernels that do four elements for an index: they give what they give one by one, to the bit. */
#include <criterion/criterion.h>
#include <string.h>

#include "real/device/gpu/bodies_layers.h"
#include "real/device/gpu/bodies_neighbours.h"
#include "tests/cuda/draw_helper.h"

enum { SAMPLES = 2, CHANNELS = 8, HEIGHT = 4, WIDTH = 6, ALL = SAMPLES * CHANNELS * HEIGHT * WIDTH, BLOCKS = 4 };

struct fours {
	_Alignas(16) unsigned char blocks[BLOCKS][ALL * sizeof(float)], expected[ALL * sizeof(float)];
	_Alignas(16) uint32_t places[ALL];
	uint32_t expected_places[ALL];
	struct psd_gpu_values left, right, to;
};

static struct psd_gpu_values draw_values(unsigned char *block, enum psd_gpu_type type, uint32_t seed)
{
	const struct psd_gpu_values values = {block, type};
	uint32_t state = seed;

	for (uint64_t i = 0; i < ALL; i++)
		psd_put(values, i, draw(&state));
	return values;
}

static void start_fours(struct fours *fours, enum psd_gpu_type type)
{
	fours->left = draw_values(fours->blocks[0], type, 1);
	fours->right = draw_values(fours->blocks[1], type, 2);
	fours->to = draw_values(fours->blocks[2], type, 3);
}

/* A kernel gives the same bits whether its indices are elements or fours of them. */
#define CHECK_FOURS(name, fours, type, n, ...)                                                                         \
	do {                                                                                                           \
		const struct psd_gpu_##name of = {__VA_ARGS__};                                                        \
                                                                                                                       \
		for (uint64_t i = 0; i < (n); i++)                                                                     \
			psd_##name##_at(i, &of);                                                                       \
		memcpy((fours)->expected, (fours)->blocks[2], sizeof((fours)->expected));                              \
		memcpy((fours)->expected_places, (fours)->places, sizeof((fours)->places));                            \
		start_fours(fours, type);                                                                              \
		for (uint64_t i = 0; i < (n) / 4; i++)                                                                 \
			psd_##name##_four_at(i, &of);                                                                  \
		cr_assert_arr_eq((fours)->blocks[2], (fours)->expected, sizeof((fours)->expected), #name);             \
		cr_assert_arr_eq((fours)->places, (fours)->expected_places, sizeof((fours)->places), #name);           \
		start_fours(fours, type);                                                                              \
	} while (0)

static void check_elements(struct fours *fours, enum psd_gpu_type type, bool adds)
{
	float vectors[4][CHANNELS];
	const struct psd_gpu_channel last = {1, CHANNELS}, first = {HEIGHT * WIDTH, CHANNELS};

	for (uint32_t v = 0; v < 4; v++)
		fill(vectors[v], CHANNELS, 4 + v);
	start_fours(fours, type);
	CHECK_FOURS(convert, fours, type, ALL, .from = fours->left, .to = fours->to, .scale = 0.3f, .adds = adds);
	CHECK_FOURS(add, fours, type, ALL, .left = fours->left, .right = fours->right, .to = fours->to, .slope = 0.1f,
		    .is_rectified = adds);
	for (int o = 0; o < 2; o++)
		CHECK_FOURS(affine, fours, type, ALL, .from = fours->left, .to = fours->to, .channel = o ? first : last,
			    .mean = vectors[0], .inverse = vectors[1], .gamma = vectors[2], .beta = vectors[3],
			    .slope = 0.1f, .is_rectified = true, .adds = adds);
	CHECK_FOURS(function, fours, type, ALL, .from = fours->left, .to = fours->to, .kind = PSD_GPU_TANH);
	CHECK_FOURS(function_back, fours, type, ALL, .known = fours->left, .diff = fours->right, .to = fours->to,
		    .kind = PSD_GPU_RELU, .alpha = 0.2f, .adds = adds);
}

/* Windows of 3 by 3 at a stride of 2 around 4 by 6 places with a margin of 1: 2 by 3 of them. */
static void check_windows(struct fours *fours, enum psd_gpu_type type, bool is_max)
{
	enum { OUT_HEIGHT = 2, OUT_WIDTH = 3, OUTPUTS = SAMPLES * CHANNELS * OUT_HEIGHT * OUT_WIDTH };
	const struct psd_gpu_window window = {.in = {CHANNELS, HEIGHT, WIDTH, true},
					      .out = {CHANNELS, OUT_HEIGHT, OUT_WIDTH, true},
					      .kernel_height = 3,
					      .kernel_width = 3,
					      .stride_height = 2,
					      .stride_width = 2,
					      .pad_height = 1,
					      .pad_width = 1,
					      .is_max = is_max};

	start_fours(fours, type);
	memset(fours->places, 0, sizeof(fours->places));
	CHECK_FOURS(pool, fours, type, OUTPUTS, .from = fours->left, .to = fours->to, .window = window,
		    .positions = fours->places);
	CHECK_FOURS(pool_back, fours, type, ALL, .diff = fours->left, .to = fours->to, .window = window,
		    .positions = fours->places, .adds = is_max);
}

Test(cuda_fours, four_at_once_are_as_one_by_one)
{
	const enum psd_gpu_type types[] = {PSD_GPU_FLOAT, PSD_GPU_HALF, PSD_GPU_BFLOAT};
	static struct fours fours;

	for (unsigned t = 0; t < 3; t++)
		for (int other = 0; other < 2; other++) {
			check_elements(&fours, types[t], other);
			check_windows(&fours, types[t], other);
		}
}
