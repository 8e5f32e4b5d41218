/* The seam between the data set and its formats. Private to data*.c, the packer and the fuzz target. */
#ifndef PSD_REAL_DATA_PARTS_H
#define PSD_REAL_DATA_PARTS_H

#include "real/data/data.h"
#include "real/data/mapping.h"
#include "real/data/sampler.h"

enum { PSD_DATA_MAX_FILES = 6 };

/* All zero is a valid empty list. */
struct psd_data_files {
	struct psd_mapping files[PSD_DATA_MAX_FILES];
	unsigned n_files;
};

struct psd_data {
	const struct psd_data_reader *reader;
	struct psd_data_options options;
	struct psd_data_files files;
	uint64_t n_samples[2]; /* by psd_data_part */
	struct psd_sampler sampler;
	void *state; /* the reader's own */
};

/* One for each psd_data_kind. Every slot is called from the thread that calls the data set. */
struct psd_data_reader {
	bool has_images, has_tokens; /* what networks it is for; synthetic is for both */
	/* Maps the data set's files; NULL: it has none. On failure what is mapped already stays in *files. */
	enum psd_status (*map)(struct psd_data_files *files, const struct psd_data_source *source,
			       struct psd_error *err);
	/* Checks the files (reader, options, files are set), sets n_samples and state. If it fails close is called. */
	enum psd_status (*open)(struct psd_data *data, struct psd_error *err);
	/* As psd_data_read(). */
	enum psd_status (*read)(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				float *image, int32_t *labels, struct psd_error *err);
	/* Releases what state owns; state may be NULL and is freed by the caller. NULL: nothing to do. */
	void (*close)(struct psd_data *data);
};

extern const struct psd_data_reader psd_data_synthetic, psd_data_cifar, psd_data_idx, psd_data_packed, psd_data_tokens;

/* Maps folder/name behind the others. */
enum psd_status psd_data_map(struct psd_data_files *files, const char *folder, const char *name,
			     struct psd_error *err) PSD_MUST_CHECK;
/* psd_data_reader.map of a file of training samples and, if the source has one, another of test samples. */
enum psd_status psd_data_map_pair(struct psd_data_files *files, const struct psd_data_source *source,
				  struct psd_error *err) PSD_MUST_CHECK;
/* psd_data_open() on files that are mapped already; takes them over, also when it fails. */
enum psd_status psd_data_open_mapped(struct psd_data **data, const struct psd_data_options *options,
				     struct psd_data_files *files, struct psd_error *err) PSD_MUST_CHECK;
/* Complains, naming file, unless the network takes samples of this shape. */
enum psd_status psd_data_check_shape(const struct psd_data *data, const struct psd_mapping *file,
				     struct psd_shape shape, struct psd_error *err) PSD_MUST_CHECK;
/* Complains, naming file, unless the network has this many classes. */
enum psd_status psd_data_check_classes(const struct psd_data *data, const struct psd_mapping *file, uint32_t classes,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Height times width of the network's input. Pure. */
uint64_t psd_data_places(const struct psd_data *data);
/* state_bytes of zeros as data->state. */
enum psd_status psd_data_take_state(struct psd_data *data, size_t state_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
