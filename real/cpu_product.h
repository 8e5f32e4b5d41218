/* The two products of an inner product layer in which every sample stands for itself: its outputs, and the gradient by its inputs. Each sample's
 * bits depend on that sample and the weight alone: neither on the batch it comes in nor on the threads, so that however many workers
 * share a batch, all see the same activations. Private to real/cpu*.c. */
#ifndef PSD_REAL_CPU_PRODUCT_H
#define PSD_REAL_CPU_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* weight (columns, rows): one row of it for each output, as everywhere. */
struct psd_cpu_product {
	const float *weight;
	uint32_t samples, rows, columns;
	unsigned n_threads;
};

/* Floats of scratch that psd_cpu_product_backward() needs for each thread. */
enum { PSD_CPU_PRODUCT_SCRATCH = 128 * 1024 };

/* This processor can do them (x86 with AVX2 and FMA). Any thread. */
bool psd_cpu_product_is_possible(void);
/* top (samples, columns) = bottom (samples, rows) weight^T + bias, which may be NULL. */
void psd_cpu_product_forward(const struct psd_cpu_product *product, const float *bottom, const float *bias, float *top);
/* dbottom (samples, rows) = dtop (samples, columns) weight; scratch: aligned to 64 bytes. */
void psd_cpu_product_backward(const struct psd_cpu_product *product, const float *dtop, float *scratch, float *dbottom);

#endif
