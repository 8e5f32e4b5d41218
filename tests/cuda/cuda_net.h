/* A network of tests/real/net.h on the CUDA device beside the CPU: the same parameters, samples and options. Its
 * gradients and states come back to the host. */
#ifndef PSD_TESTS_CUDA_NET_H
#define PSD_TESTS_CUDA_NET_H

#include "real/device/device.h"
#include "tests/real/net.h"

struct cuda_net {
	struct net *net; /* borrowed */
	struct psd_device *device;
	float **parameters, **gradients; /* the device's */
	float **host_gradients;		 /* after a run */
};

/* Aborts the test if anything fails, as all here. */
struct cuda_net cuda_net_open(struct net *net, enum psd_layer_arithmetic arithmetic);
struct cuda_net cuda_net_open_with(struct net *net, const struct psd_device_options *options);
void cuda_net_close(struct cuda_net *cuda);
/* Waits until all that was begun on the stream is over. */
void cuda_net_wait(struct psd_device *device, enum psd_stream stream);
/* Copies between the device's memory and the host's, and waits. */
void cuda_net_put(struct psd_device *device, void *to, const void *from, uint64_t bytes);
void cuda_net_get(struct psd_device *device, void *to, const void *from, uint64_t bytes);
/* A block of the device's, with those values. */
float *cuda_net_take(struct psd_device *device, const float *values, uint64_t count);
/* All forwards of the net's batch; the loss. */
double cuda_net_run_forward(struct cuda_net *cuda);
/* All forwards and backwards; the loss. */
double cuda_net_run(struct cuda_net *cuda);
/* |left - right| / |right|, Euclidean norms. */
double cuda_net_distance(const float *left, const float *right, uint64_t count);

#endif
