/* The kinds of device that the key `train.device` can choose. */
#include "real/device/device.h"

#include <stddef.h>

#ifdef PSD_HAS_CUDA
#define CUDA &psd_device_cuda
#else
#define CUDA NULL
#endif

static const struct {
	const char *name;
	const struct psd_device_kind *kind; /* NULL if this program was built without it */
	const char *built_by;
} rows[] = {
	[PSD_CHOOSE_CPU] = {"cpu", &psd_device_cpu, "make"},
	[PSD_CHOOSE_CUDA] = {"cuda", CUDA, "make CUDA=1"},
};

/* Returns the kind for `auto`: the last one in the list of which the machine has a device. The CPU is the first of the
 * list. */
static const struct psd_device_kind *find_best(void)
{
	struct psd_error why;

	for (size_t i = sizeof(rows) / sizeof(rows[0]); i-- > 1;)
		if (rows[i].kind && rows[i].kind->count(&why) > 0)
			return rows[i].kind;
	return rows[0].kind;
}

enum psd_status psd_device_choose(const struct psd_device_kind **kind, enum psd_device_choice choice,
				  struct psd_place at, struct psd_error *err)
{
	struct psd_error why;

	if (choice != PSD_CHOOSE_AUTO && !rows[choice].kind)
		return psd_error_set(err, PSD_EINVAL, at,
				     "'device' is '%s', this program was built without it: build with '%s' or "
				     "choose 'cpu'",
				     rows[choice].name, rows[choice].built_by);
	const struct psd_device_kind *found = choice == PSD_CHOOSE_AUTO ? find_best() : rows[choice].kind;
	if (found->count(&why) == 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot train on '%s': %s", found->name, why.text);
	*kind = found;
	return PSD_OK;
}
