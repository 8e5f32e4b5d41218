/* Samples and labels of one data set, whatever it is kept in: synthetic, CIFAR-10, IDX (MNIST), packed JPEGs, text or
 * tokens. What a sample looks like depends on the seed, the epoch and its number only, so every worker may read every
 * sample. Refuses to make threads. All calls for one open data set come from one thread at a time; several may be
 * open. */
#ifndef PSD_REAL_DATA_H
#define PSD_REAL_DATA_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "engine/scenario/train.h"

enum psd_data_part { PSD_DATA_TRAINING, PSD_DATA_TEST };

struct psd_data_options {
	struct psd_data_source source; /* paths borrowed while psd_data_open() runs */
	struct psd_shape shape;	       /* of the network's input */
	uint32_t classes;	       /* of the network's output */
	uint64_t labels;	       /* of a sample, >= 1: one for each place of the network's output */
	uint32_t vocabulary;	       /* of the network's input, where that is numbers of tokens; 0: it is not */
	uint64_t seed;
};

struct psd_data;

/* Opens a data set for a network. Every length, label and token in its files is checked here; of packed images the
 * index, each JPEG when it is read, as is each token of a file above 256 MiB. *data is owned by the caller until
 * psd_data_close(). PSD_EINVAL: the files are not what they should be ("PATH: at byte N: ...") or do not fit the
 * network; PSD_EFILE: one cannot be read; PSD_ENOMEM. */
enum psd_status psd_data_open(struct psd_data **data, const struct psd_data_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
/* *view reads the files that data has open, for a thread of its own. data stays open as long, and may be read beside
 * it. Any thread. As psd_data_open() says of what is in the files. */
enum psd_status psd_data_view(struct psd_data **view, struct psd_data *data, struct psd_error *err) PSD_MUST_CHECK;
void psd_data_close(struct psd_data *data); /* NULL is allowed */

/* Training: at least 1. Test: 0 when there are none. */
uint64_t psd_data_samples(const struct psd_data *data, enum psd_data_part part);

/* Of all bytes of its files; of one above 256 MiB of bytes all over it, a packed file's checksum among them.
 * PSD_ERUN: a file was shortened. */
enum psd_status psd_data_hash(struct psd_data *data, uint64_t *hash, struct psd_error *err) PSD_MUST_CHECK;

/* Reads one sample (below psd_data_samples()) as the network takes it: image gets (channels, height, width) floats,
 * labels as many classes as the options say. epoch: of training, chooses the crop and mirror of packed images, counts
 * nothing elsewhere.
 *   synthetic  patterns within -1 and 1, plus noise
 *   cifar10    red, green, blue plane; 0 to 255 less the training samples' mean image, as Caffe's cifar10 networks
 *   idx        0 to 255/256, as Caffe's LeNet takes it
 *   packed     red, green, blue plane; 0 to 255 less their mean colour; test samples cut from the middle
 *   text       sample s of T = height width bytes: the bytes from number s T on; the label of each is the byte after it
 *   tokens     the same of numbers of 16 bits
 * and, of a network with a vocabulary, which takes no images:
 *   synthetic  numbers, each followed by its successor or, by a chance of `noise_ratio`, by any
 * A network with one label for all places has that of the last.
 * PSD_EINVAL: a packed image is damaged, or a token is beyond the network's; PSD_ERUN: a file was shortened since it
 * was opened. */
enum psd_status psd_data_read(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
			      float *image, int32_t *labels, struct psd_error *err) PSD_MUST_CHECK;

/* Reads `batch` samples behind each other into images, and their labels behind each other into labels. Training: those
 * drawn at the global positions from `first` (psd_sampler_first()), in the order of seed and epoch. Test: from `first`
 * on. As psd_data_read(). */
enum psd_status psd_data_read_batch(struct psd_data *data, enum psd_data_part part, uint64_t first, uint32_t batch,
				    float *images, int32_t *labels, struct psd_error *err) PSD_MUST_CHECK;

#endif
