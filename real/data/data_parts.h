/* Interface between the data set and its formats. Private to data*.c, the packer and the fuzz target. */
#ifndef PSD_REAL_DATA_PARTS_H
#define PSD_REAL_DATA_PARTS_H

#include "real/data/data.h"
#include "real/data/mapping.h"
#include "real/data/sampler.h"

enum { PSD_DATA_MAX_FILES = 6 };

/* Mapped files of a data set. All zeros: no files. */
struct psd_data_files {
	struct psd_mapping files[PSD_DATA_MAX_FILES];
	unsigned n_files;
};

struct psd_data {
	const struct psd_data_reader *reader;
	struct psd_data_options options;
	struct psd_data_files files;
	uint64_t n_samples[2]; /* number of samples in each part, by enum psd_data_part */
	struct psd_sampler sampler;
	void *state; /* state of the reader, in its own type; owned */
};

/* Reader of one data format, one for each psd_data_kind. The data set's thread calls every function. */
struct psd_data_reader {
	bool has_images, has_tokens; /* kinds of networks that it can feed; synthetic data feeds both */
	/* Maps the data set's files; NULL if it has none. On failure files mapped so far stay in *files. */
	enum psd_status (*map)(struct psd_data_files *files, const struct psd_data_source *source,
			       struct psd_error *err);
	/* Checks the files (reader, options, files are set), sets n_samples and state. close is called also if it
	 * fails. */
	enum psd_status (*open)(struct psd_data *data, struct psd_error *err);
	/* Reads one sample, as psd_data_read(). */
	enum psd_status (*read)(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				float *image, int32_t *labels, struct psd_error *err);
	/* Releases the contents of state, which may be NULL; the caller frees state. NULL: state has no contents. */
	void (*close)(struct psd_data *data);
};

extern const struct psd_data_reader psd_data_synthetic, psd_data_cifar, psd_data_idx, psd_data_packed, psd_data_tokens;

/* Maps the file folder/name and appends it to the files. */
enum psd_status psd_data_map(struct psd_data_files *files, const char *folder, const char *name,
			     struct psd_error *err) PSD_MUST_CHECK;
/* Maps a file of training samples and, if the source names one, a file of test samples; for psd_data_reader.map. */
enum psd_status psd_data_map_pair(struct psd_data_files *files, const struct psd_data_source *source,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Opens a data set with mapped files, which it owns from now on, also on failure; see psd_data_open(). */
enum psd_status psd_data_open_mapped(struct psd_data **data, const struct psd_data_options *options,
				     struct psd_data_files *files, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the network's input has this shape. PSD_EINVAL, naming the file: it has another. */
enum psd_status psd_data_check_shape(const struct psd_data *data, const struct psd_mapping *file,
				     struct psd_shape shape, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the network has this number of classes. PSD_EINVAL, naming the file: it has another. */
enum psd_status psd_data_check_classes(const struct psd_data *data, const struct psd_mapping *file, uint32_t classes,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Number of positions of the network's input: height times width. Pure. */
uint64_t psd_data_positions(const struct psd_data *data);
/* Allocates data->state, state_bytes of zeros. */
enum psd_status psd_data_take_state(struct psd_data *data, size_t state_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
