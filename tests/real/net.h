/* A network with random parameters, images and labels, loaded into the CPU; used by the suites of real/device. */
#ifndef PSD_TESTS_REAL_NET_H
#define PSD_TESTS_REAL_NET_H

#include <stdint.h>

#include "engine/model/graph.h"
#include "real/device/device.h"

#define NET_SEED 20160716u

struct net {
	struct psd_graph *graph;
	struct psd_device_options device_options;
	struct psd_network_options options;
	struct psd_batch batch;
	struct psd_device *device;
	float **parameters, **gradients;
	float *images;
	int32_t *labels;
};

/* From a model file's text; aborts the test if it is refused. */
struct net net_make(const char *text, uint32_t batch);
/* Convolutions of 16 channels in a row, for 4 samples. */
struct net net_make_chain(unsigned n_convs);
/* The same as net_make(), not loaded into the CPU: for another device. */
struct net net_make_apart(const char *text, uint32_t batch);
/* As net_make() for a sealed graph, which the net owns then. */
struct net net_make_graph(struct psd_graph graph, uint32_t batch);
/* Opens device again, after a change of options. */
void net_open(struct net *net);
void net_release(struct net *net);
uint64_t net_image_elements(const struct net *net);
/* All forwards; the loss. */
double net_run_forward(struct net *net);
/* All forwards and backwards; the loss. */
double net_run(struct net *net);

/* Gradient and input of the last backward of a linear layer; the next backward frees them. */
struct psd_factors net_take_factors(const struct net *net, unsigned layer);
void net_free_factors(struct psd_factors factors);

/* |left - right| / |right|, Euclidean norms. */
double net_distance(const float *left, const double *right, uint64_t count);
/* Owned copies in double, of an array and of every parameter. */
double *net_widen(const float *values, uint64_t count);
double **net_widen_parameters(const struct net *net);
void net_free_wide(const struct net *net, double **wide);

/* A test with a pointer to the network that is made of the text. */
#define NET_TEST(suite, claim, ...)                                                                                    \
	static void check_##claim(struct net *net);                                                                    \
	Test(suite, claim)                                                                                             \
	{                                                                                                              \
		struct net made = __VA_ARGS__;                                                                         \
                                                                                                                       \
		check_##claim(&made);                                                                                  \
		net_release(&made);                                                                                    \
	}                                                                                                              \
	static void check_##claim(struct net *net)

#endif
