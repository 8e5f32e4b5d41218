/* Interface between psd_data and the readers of its formats. Private to real/data/data*.c, the packer and a fuzz
 * target. */
#ifndef PSD_REAL_DATA_PARTS_H
#define PSD_REAL_DATA_PARTS_H

#include "real/data/data.h"
#include "real/data/mapping.h"
#include "real/data/sampler.h"

enum { PSD_DATA_MAX_FILES = 6 }; /* largest number of files of a data set */

/* Memory-mapped files of a data set. All zeros: no files. */
struct psd_data_files {
	struct psd_mapping files[PSD_DATA_MAX_FILES];
	unsigned n_files;
};

struct psd_data {
	const struct psd_data_reader *reader; /* functions for the format of the data */
	struct psd_data_options options;
	struct psd_data_files files;
	uint64_t n_samples[2];	    /* number of training samples and of test samples, indexed by enum psd_data_part */
	struct psd_sampler sampler; /* order of the training samples */
	void *state;		    /* state of the reader, whose type depends on the format; owned */
};

/* Functions that read one data format. There is one such table for each psd_data_kind. They are called by the one
 * thread that uses the data set. */
struct psd_data_reader {
	/* The format can feed networks whose input is images (has_images), or tokens (has_tokens). Both are true for
	 * synthetic data. */
	bool has_images, has_tokens;
	/* Maps the data set's files into memory; NULL: the format has no files. On failure, the files that were mapped
	 * before stay in *files, and the caller unmaps them. */
	enum psd_status (*map)(struct psd_data_files *files, const struct psd_data_source *source,
			       struct psd_error *err);
	/* Checks the files, and sets data->n_samples and data->state. The caller has set `reader`, `options` and
	 * `files` before. After a failure close() is called as well. */
	enum psd_status (*open)(struct psd_data *data, struct psd_error *err);
	/* Reads one sample; arguments and result as psd_data_read(). */
	enum psd_status (*read)(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				float *image, int32_t *labels, struct psd_error *err);
	/* Releases all objects to which data->state has pointers. data->state may be NULL; the caller frees the memory
	 * of data->state itself. NULL: there are no such objects. */
	void (*close)(struct psd_data *data);
};

extern const struct psd_data_reader psd_data_synthetic, psd_data_cifar, psd_data_idx, psd_data_packed, psd_data_tokens;

/* Maps the file folder/name into memory and appends it to *files. */
enum psd_status psd_data_map(struct psd_data_files *files, const char *folder, const char *name,
			     struct psd_error *err) PSD_MUST_CHECK;
/* Maps the file of training samples and, if the source has one, the file of test samples. Used as
 * psd_data_reader.map. */
enum psd_status psd_data_map_pair(struct psd_data_files *files, const struct psd_data_source *source,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Opens a data set whose files are mapped already, otherwise as psd_data_open(). The data set owns *files from now on,
 * even after a failure. */
enum psd_status psd_data_open_mapped(struct psd_data **data, const struct psd_data_options *options,
				     struct psd_data_files *files, struct psd_error *err) PSD_MUST_CHECK;
/* Compares the shape of the network's input with `shape`, the shape of the samples in `file`. PSD_EINVAL: they differ;
 * the text names the file. */
enum psd_status psd_data_check_shape(const struct psd_data *data, const struct psd_mapping *file,
				     struct psd_shape shape, struct psd_error *err) PSD_MUST_CHECK;
/* Compares the number of classes of the network with `classes`, the number in `file`. PSD_EINVAL: they differ; the text
 * names the file. */
enum psd_status psd_data_check_classes(const struct psd_data *data, const struct psd_mapping *file, uint32_t classes,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Returns the number of positions of the network's input: height times width. Pure. */
uint64_t psd_data_positions(const struct psd_data *data);
/* Allocates state_bytes bytes of zeros and stores their address in data->state. PSD_ENOMEM. */
enum psd_status psd_data_take_state(struct psd_data *data, size_t state_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
