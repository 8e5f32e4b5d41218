/* Products whose order of summation is written down here. Forward sums 8 interleaved parts of a block of each row and joins them pair by pair,
 * block after block; backward adds output after output. Both follow the weight, which is read once, while a block of all samples stays
 * in the second-level cache. */
#include "real/cpu_product.h"

#include <string.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define WITH_AVX2   __attribute__((target("avx2,fma")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2,fma")))

enum {
	LANES = 8,
	BLOCK_ROWS = 1024, /* of a sum in forward, of the results in backward; the best of 512 to 4096 */
	TILE_OUTPUTS = 3,  /* times TILE_SAMPLES sums and what they are made from: as many as there are registers */
	TILE_SAMPLES = 4,
	PACKED_COLUMNS = 128,
	PANEL = 2 * LANES, /* results side by side in backward */
	PANEL_SAMPLES = 6,
	FEW_SAMPLES = 12, /* up to here packing the weight costs more than it saves */
	FEW_COLUMNS = 4,
	AHEAD_COLUMNS = 4, /* fetched while one is packed */
};

_Static_assert(PSD_CPU_PRODUCT_SCRATCH == BLOCK_ROWS * PACKED_COLUMNS, "a packed block of the weight");

static uint32_t lesser(uint32_t left, uint32_t right)
{
	return left < right ? left : right;
}

bool psd_cpu_product_is_possible(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* ---- forward ---- */

/* A block of some outputs' sums. Rows of bottom and of weight are both `stride` apart, samples of top `columns`. */
struct dots {
	const float *bottom, *weight;
	float *top;
	size_t stride, columns;
	uint32_t length, samples;
};

/* The sums of each one's 8 lanes. */
INLINE_AVX2 __m128 join_lanes(const __m256 sums[TILE_SAMPLES])
{
	const __m256 quarters = _mm256_hadd_ps(_mm256_hadd_ps(sums[0], sums[1]), _mm256_hadd_ps(sums[2], sums[3]));

	return _mm_add_ps(_mm256_castps256_ps128(quarters), _mm256_extractf128_ps(quarters, 1));
}

/* Adds one output's joined sums, and what is left of a length that is no multiple of 8. */
INLINE_AVX2 void add_joined(const struct dots *dots, uint32_t sample, unsigned output, const __m256 sums[TILE_SAMPLES],
			    const unsigned n_samples)
{
	float joined[TILE_SAMPLES];

	_mm_storeu_ps(joined, join_lanes(sums));
	for (unsigned s = 0; s < n_samples; s++) {
		const float *bottom = dots->bottom + (sample + s) * dots->stride;

		for (uint32_t k = dots->length - dots->length % LANES; k < dots->length; k++)
			joined[s] += dots->weight[output * dots->stride + k] * bottom[k];
		dots->top[(sample + s) * dots->columns + output] += joined[s];
	}
}

/* The first samples fetch the rows of the outputs that come next. */
INLINE_AVX2 void add_tile(const struct dots *dots, uint32_t sample, const unsigned n_samples, const unsigned n_outputs)
{
	const float *bottom = dots->bottom + sample * dots->stride;
	const size_t stride = dots->stride;
	__m256 sums[TILE_OUTPUTS][TILE_SAMPLES], factors[TILE_OUTPUTS];

#pragma GCC unroll 3
	for (unsigned o = 0; o < n_outputs; o++)
#pragma GCC unroll 4
		for (unsigned s = 0; s < TILE_SAMPLES; s++)
			sums[o][s] = _mm256_setzero_ps();
	for (uint32_t k = 0; k + LANES <= dots->length; k += LANES) {
#pragma GCC unroll 3
		for (unsigned o = 0; o < n_outputs; o++) {
			factors[o] = _mm256_loadu_ps(dots->weight + o * stride + k);
			if (sample == 0)
				__builtin_prefetch(dots->weight + (o + n_outputs) * stride + k);
		}
#pragma GCC unroll 4
		for (unsigned s = 0; s < n_samples; s++) {
			const __m256 value = _mm256_loadu_ps(bottom + s * stride + k);

#pragma GCC unroll 3
			for (unsigned o = 0; o < n_outputs; o++)
				sums[o][s] = _mm256_fmadd_ps(factors[o], value, sums[o][s]);
		}
	}
#pragma GCC unroll 3
	for (unsigned o = 0; o < n_outputs; o++)
		add_joined(dots, sample, o, sums[o], n_samples);
}

INLINE_AVX2 void add_outputs(const struct dots *dots, const unsigned n_outputs)
{
	uint32_t sample = 0;

	for (; sample + TILE_SAMPLES <= dots->samples; sample += TILE_SAMPLES)
		add_tile(dots, sample, TILE_SAMPLES, n_outputs);
	for (; sample + 2 <= dots->samples; sample += 2)
		add_tile(dots, sample, 2, n_outputs);
	if (sample < dots->samples)
		add_tile(dots, sample, 1, n_outputs);
}

WITH_AVX2 static void add_outputs_of_tile(const struct dots *dots)
{
	add_outputs(dots, TILE_OUTPUTS);
}

WITH_AVX2 static void add_output(const struct dots *dots)
{
	add_outputs(dots, 1);
}

/* Outputs first to end - 1 of all samples, a block of the sums after the other. */
static void multiply_outputs(const struct psd_cpu_product *product, const float *bottom, float *top, uint32_t first, uint32_t end)
{
	struct dots dots = {.stride = product->rows, .columns = product->columns, .samples = product->samples};

	for (uint32_t row = 0; row < product->rows; row += BLOCK_ROWS) {
		uint32_t column = first;

		dots.bottom = bottom + row;
		dots.length = lesser(BLOCK_ROWS, product->rows - row);
		while (column < end) {
			const bool is_tile = end - column >= TILE_OUTPUTS;

			dots.weight = product->weight + (size_t)column * product->rows + row;
			dots.top = top + column;
			(is_tile ? add_outputs_of_tile : add_output)(&dots);
			column += is_tile ? TILE_OUTPUTS : 1;
		}
	}
}

/* Where share `number` of the threads begins, in multiples of unit. */
static uint32_t share_of(uint32_t whole, uint32_t unit, unsigned number, unsigned n_threads)
{
	const uint64_t n_units = (whole + unit - 1) / unit;

	return lesser((uint32_t)(n_units * number / n_threads) * unit, whole);
}

void psd_cpu_product_forward(const struct psd_cpu_product *product, const float *bottom, const float *bias, float *top)
{
	const unsigned n_threads = product->n_threads;

	for (uint32_t s = 0; s < product->samples; s++)
		for (uint32_t c = 0; c < product->columns; c++)
			top[(size_t)s * product->columns + c] = bias ? bias[c] : 0.0f;
#pragma omp parallel for num_threads(n_threads) if (n_threads > 1)
	for (unsigned t = 0; t < n_threads; t++)
		multiply_outputs(product, bottom, top, share_of(product->columns, TILE_OUTPUTS, t, n_threads),
				 share_of(product->columns, TILE_OUTPUTS, t + 1, n_threads));
}

/* ---- backward: results are a sample's gradients by its inputs ---- */

/* Products of n_columns of dtop with as many rows of weight, which lie `weight_stride` apart. */
struct panel {
	const float *dtop, *weight;
	float *dbottom;
	size_t dtop_stride, weight_stride, dbottom_stride;
	uint32_t n_columns, samples;
};

/* The block's whole panels one after the other: of each row PANEL values. */
static void pack(const struct psd_cpu_product *product, uint32_t column, uint32_t n_columns, uint32_t row, uint32_t n_rows,
		 float *packed)
{
	for (uint32_t c = 0; c < n_columns; c++) {
		const float *from = product->weight + (size_t)(column + c) * product->rows + row;

		for (uint32_t r = 0; r + PANEL <= n_rows; r += PANEL) {
			__builtin_prefetch(from + (size_t)AHEAD_COLUMNS * product->rows + r);
			memcpy(packed + (size_t)r * PACKED_COLUMNS + c * PANEL, from + r, PANEL * sizeof(*packed));
		}
	}
}

/* Adds the panel's products to PANEL results of some samples. */
INLINE_AVX2 void add_panel(const struct panel *panel, uint32_t sample, const unsigned n_samples)
{
	const float *dtop = panel->dtop + sample * panel->dtop_stride;
	float *dbottom = panel->dbottom + sample * panel->dbottom_stride;
	__m256 sums[PANEL_SAMPLES][2];

#pragma GCC unroll 6
	for (unsigned s = 0; s < n_samples; s++) {
		sums[s][0] = _mm256_loadu_ps(dbottom + s * panel->dbottom_stride);
		sums[s][1] = _mm256_loadu_ps(dbottom + s * panel->dbottom_stride + LANES);
	}
	for (uint32_t c = 0; c < panel->n_columns; c++) {
		const __m256 low = _mm256_loadu_ps(panel->weight + c * panel->weight_stride);
		const __m256 high = _mm256_loadu_ps(panel->weight + c * panel->weight_stride + LANES);

#pragma GCC unroll 6
		for (unsigned s = 0; s < n_samples; s++) {
			const __m256 factor = _mm256_broadcast_ss(dtop + s * panel->dtop_stride + c);

			sums[s][0] = _mm256_fmadd_ps(factor, low, sums[s][0]);
			sums[s][1] = _mm256_fmadd_ps(factor, high, sums[s][1]);
		}
	}
#pragma GCC unroll 6
	for (unsigned s = 0; s < n_samples; s++) {
		_mm256_storeu_ps(dbottom + s * panel->dbottom_stride, sums[s][0]);
		_mm256_storeu_ps(dbottom + s * panel->dbottom_stride + LANES, sums[s][1]);
	}
}

WITH_AVX2 static void add_panel_of_all(const struct panel *panel)
{
	uint32_t sample = 0;

	for (; sample + PANEL_SAMPLES <= panel->samples; sample += PANEL_SAMPLES)
		add_panel(panel, sample, PANEL_SAMPLES);
	for (; sample + 2 <= panel->samples; sample += 2)
		add_panel(panel, sample, 2);
	if (sample < panel->samples)
		add_panel(panel, sample, 1);
}

/* Adds a few columns' products, with the weight where it lies, to n_rows results of all samples; whole panels of them. */
INLINE_AVX2 void add_few_columns(const struct panel *panel, uint32_t n_rows, uint32_t column, const unsigned n_columns)
{
	const float *weight = panel->weight + column * panel->weight_stride;
	__m256 factors[FEW_COLUMNS][2];

	for (uint32_t r = 0; r + PANEL <= n_rows; r += PANEL) {
#pragma GCC unroll 4
		for (unsigned c = 0; c < n_columns; c++) {
			factors[c][0] = _mm256_loadu_ps(weight + c * panel->weight_stride + r);
			factors[c][1] = _mm256_loadu_ps(weight + c * panel->weight_stride + r + LANES);
		}
		for (uint32_t s = 0; s < panel->samples; s++) {
			const float *dtop = panel->dtop + s * panel->dtop_stride + column;
			float *dbottom = panel->dbottom + s * panel->dbottom_stride + r;
			__m256 low = _mm256_loadu_ps(dbottom), high = _mm256_loadu_ps(dbottom + LANES);

#pragma GCC unroll 4
			for (unsigned c = 0; c < n_columns; c++) {
				low = _mm256_fmadd_ps(_mm256_broadcast_ss(dtop + c), factors[c][0], low);
				high = _mm256_fmadd_ps(_mm256_broadcast_ss(dtop + c), factors[c][1], high);
			}
			_mm256_storeu_ps(dbottom, low);
			_mm256_storeu_ps(dbottom + LANES, high);
		}
	}
}

WITH_AVX2 static void add_columns(const struct panel *panel, uint32_t n_rows)
{
	uint32_t column = 0;

	for (; column + FEW_COLUMNS <= panel->n_columns; column += FEW_COLUMNS)
		add_few_columns(panel, n_rows, column, FEW_COLUMNS);
	for (; column < panel->n_columns; column++)
		add_few_columns(panel, n_rows, column, 1);
}

/* Results that fill no panel, in the same order of summation. */
WITH_AVX2 static void add_singly(const struct panel *panel, uint32_t n_rows)
{
	for (uint32_t s = 0; s < panel->samples; s++)
		for (uint32_t r = n_rows - n_rows % PANEL; r < n_rows; r++) {
			const float *dtop = panel->dtop + s * panel->dtop_stride;
			float *dbottom = panel->dbottom + s * panel->dbottom_stride + r;

			for (uint32_t c = 0; c < panel->n_columns; c++)
				*dbottom = __builtin_fmaf(dtop[c], panel->weight[c * panel->weight_stride + r], *dbottom);
		}
}

/* Adds the block's products, a part of the weight packed after the other. */
static void add_block(const struct psd_cpu_product *product, const struct panel *block, uint32_t row, uint32_t n_rows,
		      float *packed)
{
	for (uint32_t column = 0; column < product->columns; column += PACKED_COLUMNS) {
		struct panel panel = *block;

		panel.dtop += column;
		panel.n_columns = lesser(PACKED_COLUMNS, product->columns - column);
		panel.weight_stride = PANEL;
		pack(product, column, panel.n_columns, row, n_rows, packed);
		for (uint32_t r = 0; r + PANEL <= n_rows; r += PANEL) {
			panel.weight = packed + (size_t)r * PACKED_COLUMNS;
			panel.dbottom = block->dbottom + r;
			add_panel_of_all(&panel);
		}
	}
}

/* Results first to end - 1 of all samples. */
static void multiply_results(const struct psd_cpu_product *product, const float *dtop, float *packed, float *dbottom,
			     uint32_t first, uint32_t end)
{
	for (uint32_t row = first; row < end; row += BLOCK_ROWS) {
		const uint32_t n_rows = lesser(BLOCK_ROWS, end - row);
		const struct panel block = {.dtop = dtop,
					    .weight = product->weight + row,
					    .dbottom = dbottom + row,
					    .dtop_stride = product->columns,
					    .weight_stride = product->rows,
					    .dbottom_stride = product->rows,
					    .n_columns = product->columns,
					    .samples = product->samples};

		for (uint32_t s = 0; s < product->samples; s++)
			memset(dbottom + (size_t)s * product->rows + row, 0, n_rows * sizeof(*dbottom));
		if (product->samples <= FEW_SAMPLES)
			add_columns(&block, n_rows);
		else
			add_block(product, &block, row, n_rows, packed);
		add_singly(&block, n_rows);
	}
}

void psd_cpu_product_backward(const struct psd_cpu_product *product, const float *dtop, float *scratch, float *dbottom)
{
	const unsigned n_threads = product->n_threads;

#pragma omp parallel for num_threads(n_threads) if (n_threads > 1)
	for (unsigned t = 0; t < n_threads; t++)
		multiply_results(product, dtop, scratch + (size_t)t * PSD_CPU_PRODUCT_SCRATCH, dbottom,
				 share_of(product->rows, PANEL, t, n_threads), share_of(product->rows, PANEL, t + 1, n_threads));
}

#else

bool psd_cpu_product_is_possible(void)
{
	return false;
}

void psd_cpu_product_forward(const struct psd_cpu_product *product, const float *bottom, const float *bias, float *top)
{
	(void)product, (void)bottom, (void)bias, (void)top;
}

void psd_cpu_product_backward(const struct psd_cpu_product *product, const float *dtop, float *scratch, float *dbottom)
{
	(void)product, (void)dtop, (void)scratch, (void)dbottom;
}

#endif
