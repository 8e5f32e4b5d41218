/* Compressed gradients on the CUDA device against packing.c, bit for bit but for which NaN a NaN becomes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/cuda_net.h"

enum { MOST_TENSORS = 100, GUARD = 8 };

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

enum draws { DRAWS_FINITE, DRAWS_ALL };

/* Zeros of both signs, equal magnitudes, subnormal numbers and many exponents; once in 2000 no finite number. */
static float draw_value(uint32_t *state, enum draws draws)
{
	const float sign = draw(state) % 2 ? 1.0f : -1.0f, magnitude = (float)draw(state) * 0x1p-24f;

	if (draws == DRAWS_ALL && draw(state) % 2000 == 0)
		return draw(state) % 2 ? NAN : sign * INFINITY;
	switch (draw(state) % 8) {
	case 0: return sign * 0.0f;
	case 1: return sign * 0.75f;
	case 2: return sign * magnitude * 0x1p-130f;
	case 3: return sign * ldexpf(magnitude, (int)(draw(state) % 60) - 30);
	}
	return sign * magnitude;
}

static float *make(uint64_t count, uint32_t seed, enum draws draws)
{
	float *values = malloc(count * sizeof(*values));
	uint32_t state = seed;

	cr_assert(values);
	for (uint64_t i = 0; i < count; i++)
		values[i] = draw_value(&state, draws);
	return values;
}

/* ---- the same in the host's memory and the device's, each block of memory with some values behind it ---- */

struct sides {
	struct psd_device *device;
	struct psd_packing_tensor here[MOST_TENSORS], there[MOST_TENSORS];
	struct psd_packing host, own;
	uint64_t elements, n_blocks;
};

static uint64_t packed_bytes(const struct sides *sides)
{
	return sides->n_blocks * sides->host.compression->bytes(&sides->host.block);
}

static void open_tensors(struct sides *sides, const uint64_t sizes[], unsigned n_tensors)
{
	for (unsigned t = 0; t < n_tensors; t++) {
		float *gradient = make(sizes[t] + GUARD, 100 + t, DRAWS_FINITE);
		const float *weight = make(sizes[t] + GUARD, 200 + t, DRAWS_FINITE);

		sides->here[t] = (struct psd_packing_tensor){gradient, weight, sizes[t], 0.25f / (float)(t + 1)};
		sides->there[t] = (struct psd_packing_tensor){cuda_net_take(sides->device, gradient, sizes[t] + GUARD),
							      cuda_net_take(sides->device, weight, sizes[t] + GUARD),
							      sizes[t], sides->here[t].weight_decay};
		sides->elements += sizes[t];
		sides->n_blocks += psd_block_count(&sides->host.block, sizes[t]);
	}
}

static struct sides *open_sides(const struct psd_compression *compression, struct psd_block block,
				const uint64_t sizes[], unsigned n_tensors)
{
	const struct psd_device_options options = {.n_threads = 1, .arithmetic = PSD_LAYERS_FP32};
	struct sides *sides = calloc(1, sizeof(*sides));
	struct psd_error err = {0};

	cr_assert(sides && n_tensors <= MOST_TENSORS);
	cr_assert_eq(psd_device_cuda.open(&sides->device, &options, &err), PSD_OK, "%s", err.text);
	sides->host = (struct psd_packing){
		.compression = compression, .block = block, .tensors = sides->here, .n_tensors = n_tensors};
	open_tensors(sides, sizes, n_tensors);
	sides->host.residual = make(sides->elements + GUARD, 7, DRAWS_FINITE);
	sides->host.packed = make(packed_bytes(sides) / sizeof(float) + GUARD, 8, DRAWS_FINITE);
	sides->own = sides->host;
	sides->own.tensors = sides->there;
	sides->own.residual = cuda_net_take(sides->device, sides->host.residual, sides->elements + GUARD);
	sides->own.packed =
		cuda_net_take(sides->device, sides->host.packed, packed_bytes(sides) / sizeof(float) + GUARD);
	return sides;
}

/* From here on gradients gather momentum before they travel. */
static void add_velocity(struct sides *sides, bool is_nesterov)
{
	sides->host.velocity = make(sides->elements + GUARD, 9, DRAWS_FINITE);
	sides->own.velocity = cuda_net_take(sides->device, sides->host.velocity, sides->elements + GUARD);
	sides->host.momentum = sides->own.momentum = 0.9f;
	sides->host.is_nesterov = sides->own.is_nesterov = is_nesterov;
}

static void free_tensor(struct psd_packing_tensor *tensor)
{
	free(tensor->gradient);
	free((float *)(uintptr_t)tensor->weight); /* is ours */
}

static void close_sides(struct sides *sides)
{
	psd_device_cuda.close(sides->device);
	for (unsigned t = 0; t < sides->host.n_tensors; t++)
		free_tensor(&sides->here[t]);
	free(sides->host.velocity);
	free(sides->host.residual);
	free(sides->host.packed);
	free(sides);
}

static void draw_gradients(struct sides *sides, uint32_t seed, enum draws draws)
{
	for (unsigned t = 0; t < sides->host.n_tensors; t++) {
		const uint64_t n = sides->here[t].elements + GUARD;

		free(sides->here[t].gradient);
		sides->here[t].gradient = make(n, seed * 1000 + t, draws);
		cuda_net_put(sides->device, sides->there[t].gradient, sides->here[t].gradient, n * sizeof(float));
	}
}

/* A GPU knows one NaN alone. */
static void forget_nans(float *values, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		values[i] = isnan(values[i]) ? NAN : values[i];
}

static void check_values(struct sides *sides, const float *own, float *host, uint64_t elements, const char *what)
{
	const uint64_t bytes = (elements + GUARD) * sizeof(float);
	float *got = malloc(bytes);

	cr_assert(got);
	cuda_net_get(sides->device, got, own, bytes);
	forget_nans(got, elements);
	forget_nans(host, elements);
	cr_expect_arr_eq(got, host, bytes, "%s of blocks of %u, %u kept: %s", sides->host.compression->name,
			 sides->host.block.elements, sides->host.block.kept, what);
	free(got);
}

/* Floats at the beginning of a block: its means, its step, or the values that are kept. */
static uint32_t packed_floats(const struct sides *sides)
{
	return sides->host.compression == &psd_compression_top_k  ? sides->host.block.kept
	       : sides->host.compression == &psd_compression_int8 ? 1
								  : 2;
}

static float *packed_block(const struct sides *sides, void *packed, uint64_t block)
{
	return (float *)packed + block * (sides->host.compression->bytes(&sides->host.block) / sizeof(float));
}

static void forget_packed_nans(const struct sides *sides, void *packed)
{
	for (uint64_t b = 0; b < sides->n_blocks; b++)
		forget_nans(packed_block(sides, packed, b), packed_floats(sides));
}

static void check_packed(struct sides *sides)
{
	const uint64_t bytes = packed_bytes(sides) + GUARD * sizeof(float);
	void *got = malloc(bytes);

	cr_assert(got);
	cuda_net_get(sides->device, got, sides->own.packed, bytes);
	forget_packed_nans(sides, got);
	forget_packed_nans(sides, sides->host.packed);
	cr_expect_arr_eq(got, sides->host.packed, bytes, "%s of blocks of %u, %u kept: packed",
			 sides->host.compression->name, sides->host.block.elements, sides->host.block.kept);
	free(got);
}

static void check_gradients(struct sides *sides, const char *what)
{
	for (unsigned t = 0; t < sides->host.n_tensors; t++)
		check_values(sides, sides->there[t].gradient, sides->here[t].gradient, sides->here[t].elements, what);
}

static void check_pack(struct sides *sides)
{
	struct psd_error err = {0};

	psd_packing_pack(&sides->host);
	cr_assert_eq(psd_device_cuda.kernels->pack(sides->device, &sides->own, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(sides->device, PSD_STREAM_COMPUTE);
	check_packed(sides);
	check_values(sides, sides->own.residual, sides->host.residual, sides->elements, "residual");
	if (sides->host.velocity)
		check_values(sides, sides->own.velocity, sides->host.velocity, sides->elements, "velocity");
	check_gradients(sides, "gradient that was packed");
}

static void check_unpack(struct sides *sides)
{
	struct psd_error err = {0};

	psd_packing_unpack(&sides->host);
	cr_assert_eq(psd_device_cuda.kernels->unpack(sides->device, &sides->own, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(sides->device, PSD_STREAM_COMPUTE);
	check_packed(sides);
	check_values(sides, sides->own.residual, sides->host.residual, sides->elements, "residual after unpacking");
	check_gradients(sides, "gradient");
}

/* ---- blocks from pack() ---- */

static void pack_and_unpack(struct sides *sides, enum draws draws, unsigned n_packs)
{
	for (unsigned pack = 1; pack <= n_packs; pack++) {
		draw_gradients(sides, pack, draws);
		check_pack(sides);
		check_unpack(sides);
	}
}

static void check_blocks(const struct psd_compression *compression, struct psd_block block, const uint64_t sizes[],
			 unsigned n_tensors, enum draws draws, unsigned n_packs)
{
	struct sides *sides = open_sides(compression, block, sizes, n_tensors);

	pack_and_unpack(sides, draws, n_packs);
	close_sides(sides);
}

/* Lanes, units and blocks that are whole, or lack a value, or have one alone; and a tensor without values. */
static const uint64_t sizes_around[] = {1,    31,   32,	  33,	0,     1023,  1024,
					1025, 2048, 5000, 6151, 32767, 32768, 2 * 32768 + 1055};

enum { N_AROUND = sizeof(sizes_around) / sizeof(sizes_around[0]) };

static void check_around(const struct psd_compression *compression, struct psd_block block)
{
	check_blocks(compression, block, sizes_around, N_AROUND, DRAWS_FINITE, 3);
	check_blocks(compression, block, sizes_around, N_AROUND, DRAWS_ALL, 3);
}

Test(cuda_packing, one_bit_is_the_hosts)
{
	check_around(&psd_compression_one_bit, (struct psd_block){1024, 1});
	check_around(&psd_compression_one_bit, (struct psd_block){2048, 1});
	check_around(&psd_compression_one_bit, (struct psd_block){3072, 1});
	check_around(&psd_compression_one_bit, (struct psd_block){32768, 1});
}

/* One value, an odd number, a hundredth, most of them, all. */
Test(cuda_packing, top_k_is_the_hosts)
{
	check_around(&psd_compression_top_k, (struct psd_block){1024, 1});
	check_around(&psd_compression_top_k, (struct psd_block){1024, 11});
	check_around(&psd_compression_top_k, (struct psd_block){1024, 1024});
	check_around(&psd_compression_top_k, (struct psd_block){2048, 20});
	check_around(&psd_compression_top_k, (struct psd_block){3072, 2047});
	check_around(&psd_compression_top_k, (struct psd_block){32768, 327});
	check_around(&psd_compression_top_k, (struct psd_block){32768, 32768});
}

Test(cuda_packing, int8_is_the_hosts)
{
	check_around(&psd_compression_int8, (struct psd_block){1024, 1});
	check_around(&psd_compression_int8, (struct psd_block){3072, 1});
	check_around(&psd_compression_int8, (struct psd_block){32768, 1});
}

/* ---- more than one launch takes ---- */

static void check_launches(const uint64_t sizes[], unsigned n_tensors)
{
	check_blocks(&psd_compression_one_bit, (struct psd_block){1024, 1}, sizes, n_tensors, DRAWS_FINITE, 1);
	check_blocks(&psd_compression_top_k, (struct psd_block){1024, 5}, sizes, n_tensors, DRAWS_FINITE, 1);
	check_blocks(&psd_compression_int8, (struct psd_block){1024, 1}, sizes, n_tensors, DRAWS_FINITE, 1);
}

/* A launch has 4096 blocks, or what 40 tensors have. */
Test(cuda_packing, several_launches_pack_as_on_the_host)
{
	uint64_t sizes[MOST_TENSORS];

	for (unsigned t = 0; t < MOST_TENSORS; t++)
		sizes[t] = t % 7 == 3 ? 0 : 700 + 29 * t;
	check_launches(sizes, MOST_TENSORS);
	check_launches((const uint64_t[]){1, 4097 * 1024 - 7, 3000}, 3);
	check_launches((const uint64_t[]){4096 * 1024, 1025}, 2);
}

/* ---- with momentum ---- */

static void check_velocity(const struct psd_compression *compression, const uint64_t sizes[], unsigned n_tensors,
			   bool is_nesterov)
{
	struct sides *sides = open_sides(compression, (struct psd_block){1024, 5}, sizes, n_tensors);

	add_velocity(sides, is_nesterov);
	pack_and_unpack(sides, DRAWS_FINITE, 3);
	close_sides(sides);
}

Test(cuda_packing, a_velocity_is_the_hosts)
{
	static const uint64_t several[] = {1, 4097 * 1024 - 7, 3000};

	for (unsigned c = 0; psd_compression_names[c]; c++) {
		check_velocity(psd_compressions[c], sizes_around, N_AROUND, false);
		check_velocity(psd_compressions[c], sizes_around, N_AROUND, true);
		check_velocity(psd_compressions[c], several, 3, false);
	}
}

/* ---- other blocks ---- */

/* Positions differ within a block: then it does not matter which is added first. */
static void draw_block(const struct sides *sides, float *packed, uint64_t number, uint32_t *state)
{
	const uint32_t n_floats = packed_floats(sides);
	const bool has_places = sides->host.compression == &psd_compression_top_k;
	uint16_t *shorts = (uint16_t *)(void *)(packed + n_floats);
	const uint32_t n_shorts = sides->host.compression->bytes(&sides->host.block) / 2 - n_floats * 2;

	for (uint32_t i = 0; i < n_floats; i++)
		packed[i] = draw_value(state, DRAWS_ALL);
	for (uint32_t i = 0; i < n_shorts; i++)
		shorts[i] = (uint16_t)(has_places ? i * 40503u + number : draw(state));
}

static void check_drawn(const struct psd_compression *compression, struct psd_block block)
{
	struct sides *sides = open_sides(compression, block, sizes_around, N_AROUND);
	uint32_t state = 3;

	for (uint64_t b = 0; b < sides->n_blocks; b++)
		draw_block(sides, packed_block(sides, sides->host.packed, b), b, &state);
	cuda_net_put(sides->device, sides->own.packed, sides->host.packed, packed_bytes(sides));
	check_unpack(sides);
	close_sides(sides);
}

Test(cuda_packing, any_bytes_are_unpacked_as_on_the_host)
{
	check_drawn(&psd_compression_one_bit, (struct psd_block){1024, 1});
	check_drawn(&psd_compression_one_bit, (struct psd_block){32768, 1});
	check_drawn(&psd_compression_int8, (struct psd_block){2048, 1});
	check_drawn(&psd_compression_top_k, (struct psd_block){1024, 1001});
	check_drawn(&psd_compression_top_k, (struct psd_block){32768, 30000});
}
