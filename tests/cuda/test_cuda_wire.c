/* Conversions to what travels and back: the kernels' bodies as host code and the CUDA device's slots against the
 * processor's conversions, bit for bit but for which NaN a NaN becomes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/base/values.h"
#include "real/device/gpu/bodies_layers.h"
#include "real/device/gpu/bodies_parameters.h"
#include "tests/cuda/cuda_net.h"

static const struct psd_encoding *const encodings[] = {&psd_encoding_fp16, &psd_encoding_bf16};

static enum psd_gpu_type type_of(const struct psd_encoding *encoding)
{
	return encoding == &psd_encoding_fp16 ? PSD_GPU_HALF : PSD_GPU_BFLOAT;
}

static bool is_nan(const struct psd_encoding *encoding, uint16_t bits)
{
	return isnan(encoding->decode(bits));
}

/* ---- bodies ---- */

static void check_encoded(const struct psd_encoding *encoding, float value, float ratio)
{
	uint16_t own, expected;
	const struct psd_gpu_convert convert = {{&value, PSD_GPU_FLOAT}, {&own, type_of(encoding)}, ratio, false};

	psd_convert_at(0, &convert);
	psd_values_encode(encoding, &expected, &value, ratio, 1);
	cr_assert(own == expected || (is_nan(encoding, own) && is_nan(encoding, expected)), "%s: %a * %a is %x, not %x",
		  encoding->name, (double)value, (double)ratio, own, expected);
}

/* Every 4099th of all floats, so that all low bits come up; those beside each tie are in cuda_kernels. */
Test(cuda_wire, floats_are_encoded_as_on_the_processor)
{
	for (unsigned e = 0; e < 2; e++)
		for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099) {
			check_encoded(encodings[e], psd_of_bits((uint32_t)bits), 1.0f);
			check_encoded(encodings[e], psd_of_bits((uint32_t)bits), 0x1p15f);
		}
}

Test(cuda_wire, every_encoded_value_is_decoded_as_on_the_processor)
{
	static const float ratios[] = {1.0f, 0x1p-15f, 1.0f / 3.0f};

	for (unsigned c = 0; c < 6; c++)
		for (uint32_t i = 0; i <= UINT16_MAX; i++) {
			const struct psd_encoding *encoding = encodings[c / 3];
			uint16_t bits = (uint16_t)i;
			float own, expected;
			const struct psd_gpu_convert convert = {
				{&bits, type_of(encoding)}, {&own, PSD_GPU_FLOAT}, ratios[c % 3], false};

			psd_convert_at(0, &convert);
			psd_values_decode(encoding, &expected, &bits, ratios[c % 3], 1);
			cr_assert(psd_bits(own) == psd_bits(expected) || (isnan(own) && isnan(expected)), "%s: %x",
				  encoding->name, i);
		}
}

Test(cuda_wire, a_part_finds_infinities_and_nans_and_nothing_else)
{
	for (unsigned e = 0; e < 2; e++)
		for (uint32_t i = 0; i <= UINT16_MAX; i++) {
			const uint16_t values[] = {0x1234, (uint16_t)i, 0x3c00};
			uint32_t found[2], one;
			const struct psd_gpu_look look = {values, 3, encodings[e]->encode(INFINITY), 2, found};
			const struct psd_gpu_look_reduce reduce = {found, 2, 1, &one};

			psd_look_at(0, &look);
			psd_look_at(1, &look);
			psd_look_reduce_at(0, &reduce);
			cr_assert_eq(found[0], 0);
			cr_assert_eq(one, !psd_values_are_finite(encodings[e], values, 3), "%s: %x", encodings[e]->name,
				     i);
		}
}

/* ---- the device ---- */

static struct psd_device *open_device(void)
{
	const struct psd_device_options options = {.n_threads = 1};
	struct psd_device *device;
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.open(&device, &options, &err), PSD_OK, "%s", err.text);
	return device;
}

static void *take(struct psd_device *device, uint64_t bytes)
{
	struct psd_error err = {0};
	void *block;

	cr_assert_eq(psd_device_cuda.take(device, bytes, &block, &err), PSD_OK, "%s", err.text);
	return block;
}

enum { MOST = 300000 };

/* There, back, as floats; the host's beside it. */
static void check_there_and_back(struct psd_device *device, const struct psd_encoding *encoding, uint64_t n)
{
	float *values = malloc(n * sizeof(*values)), *got = malloc(n * sizeof(*got));
	uint16_t *encoded = malloc(n * sizeof(*encoded));
	void *floats = take(device, n * sizeof(*values)), *wire = take(device, n * sizeof(*encoded));
	const struct psd_conversion out = {encoding, wire, floats, n, 64.0f, false},
				    in = {encoding, floats, wire, n, 1.0f / 64.0f, true};
	struct psd_error err = {0};

	cr_assert(values && got && encoded);
	for (uint64_t i = 0; i < n; i++)
		values[i] = sinf((float)i) * 0.25f;
	cuda_net_put(device, floats, values, n * sizeof(*values));
	cr_assert_eq(psd_device_cuda.kernels->convert(device, &out, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cuda.kernels->convert(device, &in, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	cuda_net_get(device, got, floats, n * sizeof(*got));
	psd_values_encode(encoding, encoded, values, 64.0f, n);
	psd_values_decode(encoding, values, encoded, 1.0f / 64.0f, n);
	cr_expect_arr_eq(got, values, n * sizeof(*got), "%s, %llu values", encoding->name, (unsigned long long)n);
	free(values);
	free(got);
	free(encoded);
}

Test(cuda_wire, values_go_there_and_back_as_on_the_processor)
{
	struct psd_device *device = open_device();

	for (unsigned e = 0; e < 2; e++) {
		check_there_and_back(device, encodings[e], 1);
		check_there_and_back(device, encodings[e], 1001);
		check_there_and_back(device, encodings[e], MOST);
	}
	psd_device_cuda.close(device);
}

/* bad: which of n values is an infinity; n: none. Returns whether all came back as NaNs, none as one otherwise. */
static bool is_spoilt(struct psd_device *device, uint64_t n, uint64_t bad, bool is_forced)
{
	static uint16_t values[MOST];
	uint16_t *there = take(device, n * sizeof(*there));
	struct psd_error err = {0};
	uint64_t n_nans = 0;

	for (uint64_t i = 0; i < n; i++)
		values[i] = i == bad ? 0xfc00 : 0x7bff; /* -infinity, the largest */
	cuda_net_put(device, there, values, n * sizeof(*values));
	cr_assert_eq(psd_device_cuda.kernels->spoil(device,
						    &(struct psd_spoil){&psd_encoding_fp16, there, n, is_forced}, &err),
		     PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COMPUTE);
	cuda_net_get(device, values, there, n * sizeof(*values));
	for (uint64_t i = 0; i < n; i++)
		n_nans += is_nan(&psd_encoding_fp16, values[i]);
	cr_assert(n_nans == 0 || n_nans == n, "%llu of %llu", (unsigned long long)n_nans, (unsigned long long)n);
	return n_nans > 0;
}

Test(cuda_wire, one_value_beyond_the_range_spoils_all)
{
	static const uint64_t counts[] = {1, 7, 129, 20000, MOST};
	struct psd_device *device = open_device();

	for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		const uint64_t n = counts[c];

		cr_expect(!is_spoilt(device, n, n, false));
		cr_expect(is_spoilt(device, n, n, true));
		cr_expect(is_spoilt(device, n, 0, false) && is_spoilt(device, n, n - 1, false) &&
			  is_spoilt(device, n, n / 2, false));
	}
	psd_device_cuda.close(device);
}
