/* Samples and labels of one data set: synthetic, CIFAR-10, IDX (MNIST), packed JPEGs, text or tokens. A sample depends
 * only on the seed, the epoch and its number, so every worker can read every sample. Starts no threads. Only one thread
 * at a time may use an open data set. Several data sets may be open at the same time. */
#ifndef PSD_REAL_DATA_H
#define PSD_REAL_DATA_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "engine/scenario/train.h"

/* Part of a data set: training samples or test samples. */
enum psd_data_part { PSD_DATA_TRAINING, PSD_DATA_TEST };

struct psd_data_options {
	/* files of the data set, or parameters of synthetic data; its paths must stay valid during psd_data_open() */
	struct psd_data_source source;
	struct psd_shape shape; /* shape of the network's input */
	uint32_t classes;	/* number of classes between which the network's output decides */
	uint64_t labels;	/* number of labels of a sample, >= 1: one for each position of the network's output */
	/* number of different tokens that the network's embedding accepts; 0: the first layer is not an embedding */
	uint32_t vocabulary;
	uint64_t seed; /* seed of the order of samples, of synthetic data, and of the random crops of images */
};

struct psd_data;

/* Returns the options with which the data set of a training job is opened. The shapes of samples and labels are those
 * of the network. */
struct psd_data_options psd_data_options_of(const struct psd_graph *graph, const struct psd_train *train);
/* Opens a data set for a network, and checks the lengths, labels and tokens of all its files. JPEGs are checked only
 * when they are read, and so are tokens of files above 256 MiB. *data is owned by the caller until psd_data_close().
 * PSD_EINVAL: the files are malformed ("PATH: at byte N: ...") or do not fit the network; PSD_EFILE: a file cannot be
 * read; PSD_ENOMEM. */
enum psd_status psd_data_open(struct psd_data **data, const struct psd_data_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Opens *view, a second reader of the data set `data`, for use by another thread. Both share the mapped files. The
 * caller closes *view before `data`. Any thread. Statuses as psd_data_open(). */
enum psd_status psd_data_view(struct psd_data **view, struct psd_data *data, struct psd_error *err) PSD_MUST_CHECK;
void psd_data_close(struct psd_data *data); /* closes a data set; NULL is allowed */

/* Returns the number of samples in a part: at least 1 for training, 0 or more for test. */
uint64_t psd_data_samples(const struct psd_data *data, enum psd_data_part part);

/* Sets *hash to a hash of the bytes of all files. If a file is above 256 MiB, only its length and 1024 evenly spread
 * pieces of 128 bytes are hashed. The first piece includes the checksum at the beginning of a packed file. PSD_ERUN: a
 * file was shortened since it was opened. */
enum psd_status psd_data_hash(struct psd_data *data, uint64_t *hash, struct psd_error *err) PSD_MUST_CHECK;

/* Reads sample number `sample` (below psd_data_samples()). image becomes floats of shape (channels, height, width);
 * labels becomes options.labels class numbers. epoch: training epoch, which decides crop and mirror of packed images.
 * Values by kind of data set:
 *   synthetic  a pattern of the sample's class, with values from -1 to 1, plus noise
 *   cifar10    red, green and blue plane; 0 to 255, minus the mean of the same pixel over all training samples
 *   idx        0 to 255/256, as Caffe's LeNet expects
 *   packed     red, green and blue plane; 0 to 255, minus the mean colour; test samples are cropped in the middle
 *   text       T = height * width bytes, beginning at byte number sample * T; the label of a byte is the next byte
 *   tokens     as text, with numbers of 16 bits in place of bytes
 * For a network that begins with an embedding (options.vocabulary > 0):
 *   synthetic  tokens; each token is followed by its successor or, with probability noise_ratio, by a random token
 * A network with one label per sample gets the label of the last position.
 * PSD_EINVAL: a packed image is damaged, or a token is outside the network's vocabulary; PSD_ERUN: a file was shortened
 * since it was opened. */
enum psd_status psd_data_read(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
			      float *image, int32_t *labels, struct psd_error *err) PSD_MUST_CHECK;

/* Reads `batch` samples into images and labels, without gaps. Training: the samples at positions `first` to first +
 * batch - 1 in the order in which training draws samples; see psd_sampler_first(). Test: samples number `first` to
 * first + batch - 1. Statuses as psd_data_read(). */
enum psd_status psd_data_read_batch(struct psd_data *data, enum psd_data_part part, uint64_t first, uint32_t batch,
				    float *images, int32_t *labels, struct psd_error *err) PSD_MUST_CHECK;

#endif
