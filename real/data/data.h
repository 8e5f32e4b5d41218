/* Samples and labels of one data set of any format: synthetic, CIFAR-10, IDX (MNIST), packed JPEGs, text or tokens. A
 * sample depends on the seed, the epoch and its number only, so every worker can read every sample. Refuses to make
 * threads. One thread at a time calls an open data set; several may be open. */
#ifndef PSD_REAL_DATA_H
#define PSD_REAL_DATA_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "engine/scenario/train.h"

enum psd_data_part { PSD_DATA_TRAINING, PSD_DATA_TEST };

struct psd_data_options {
	struct psd_data_source source; /* files or parameters of the data; paths are borrowed during psd_data_open() */
	struct psd_shape shape;	       /* shape of the network's input */
	uint32_t classes;	       /* number of classes of the network's output */
	uint64_t labels;	       /* number of labels in a sample, >= 1: one for each output position */
	uint32_t vocabulary;	       /* vocabulary of the embedding that is the first layer; 0: there is none */
	uint64_t seed;
};

struct psd_data;

/* Opens a data set for a network. Checks every length, label and token in its files. A JPEG is checked when it is read,
 * and so is each token of a file above 256 MiB. *data is owned by the caller until psd_data_close(). PSD_EINVAL: the
 * files are malformed ("PATH: at byte N: ...") or do not fit the network; PSD_EFILE: one cannot be read; PSD_ENOMEM. */
enum psd_status psd_data_open(struct psd_data **data, const struct psd_data_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Opens a second reader of the files of `data`, for another thread. Close it before `data`. Any thread. Statuses as
 * psd_data_open(). */
enum psd_status psd_data_view(struct psd_data **view, struct psd_data *data, struct psd_error *err) PSD_MUST_CHECK;
void psd_data_close(struct psd_data *data); /* closes a data set; NULL is allowed */

/* Number of samples in that part. Training: at least 1. Test: may be 0. */
uint64_t psd_data_samples(const struct psd_data *data, enum psd_data_part part);

/* Hash of all bytes of the files. In files above 256 MiB it covers evenly spread pieces, and the checksum inside a
 * packed file. PSD_ERUN: a file was shortened. */
enum psd_status psd_data_hash(struct psd_data *data, uint64_t *hash, struct psd_error *err) PSD_MUST_CHECK;

/* Reads one sample (below psd_data_samples()) for the network: image gets (channels, height, width) floats, labels gets
 * options.labels classes. epoch: training epoch, which decides crop and mirror of packed images.
 *   synthetic  patterns within -1 and 1, plus noise
 *   cifar10    red, green, blue plane; 0 to 255 minus the mean of the training samples, as Caffe's cifar10 networks
 *   idx        0 to 255/256, as Caffe's LeNet expects
 *   packed     red, green, blue plane; 0 to 255 minus their mean colour; test samples are cropped in the middle
 *   text       sample s of T = height width bytes: the bytes from number s T on; a byte's label is the next byte
 *   tokens     the same with numbers of 16 bits
 * For a network with a vocabulary:
 *   synthetic  tokens, each followed by its successor or, with probability `noise_ratio`, by any
 * A network with one label for all positions gets the label of the last position.
 * PSD_EINVAL: a packed image is damaged, or a token is outside the network's vocabulary; PSD_ERUN: a file was shortened
 * since it was opened. */
enum psd_status psd_data_read(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
			      float *image, int32_t *labels, struct psd_error *err) PSD_MUST_CHECK;

/* Reads `batch` samples into images and labels, without gaps. Training: samples at the global positions from `first`
 * (psd_sampler_first()), in the order of seed and epoch. Test: samples from number `first` on. Statuses as
 * psd_data_read(). */
enum psd_status psd_data_read_batch(struct psd_data *data, enum psd_data_part part, uint64_t first, uint32_t batch,
				    float *images, int32_t *labels, struct psd_error *err) PSD_MUST_CHECK;

#endif
