/* Files of data sets: functions for the readers of all formats. */
#include <assert.h>
#include <stdlib.h>

#include "real/data/data_parts.h"

enum psd_status psd_data_map(struct psd_data_files *files, const char *folder, const char *name, struct psd_error *err)
{
	assert(files->n_files < PSD_DATA_MAX_FILES);
	PSD_TRY(psd_mapping_open(&files->files[files->n_files], folder, name, err));
	files->n_files++;
	return PSD_OK;
}

enum psd_status psd_data_map_pair(struct psd_data_files *files, const struct psd_data_source *source,
				  struct psd_error *err)
{
	const enum psd_status status = psd_data_map(files, NULL, source->path, err);

	return status || !source->test_path ? status : psd_data_map(files, NULL, source->test_path, err);
}

enum psd_status psd_data_check_shape(const struct psd_data *data, const struct psd_mapping *file,
				     struct psd_shape shape, struct psd_error *err)
{
	const struct psd_shape wanted = data->options.shape;

	if (wanted.channels == shape.channels && wanted.height == shape.height && wanted.width == shape.width)
		return PSD_OK;
	return psd_error_set(
		err, PSD_EINVAL, (struct psd_place){.path = file->path},
		"the data has samples of %u x %u x %u, the network expects %u x %u x %u (channels, height, width)",
		shape.channels, shape.height, shape.width, wanted.channels, wanted.height, wanted.width);
}

enum psd_status psd_data_check_classes(const struct psd_data *data, const struct psd_mapping *file, uint32_t classes,
				       struct psd_error *err)
{
	if (data->options.classes == classes)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = file->path},
			     "the data has %u classes, the network has %u", classes, data->options.classes);
}

uint64_t psd_data_positions(const struct psd_data *data)
{
	return (uint64_t)data->options.shape.height * data->options.shape.width;
}

enum psd_status psd_data_take_state(struct psd_data *data, size_t state_bytes, struct psd_error *err)
{
	data->state = calloc(1, state_bytes);
	return data->state ? PSD_OK : psd_out_of_memory(err);
}
