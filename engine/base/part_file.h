/* A file that replaces another only when it is complete: until then it is PATH.part. What is no plain file (a device, a
 * pipe) is written directly. */
#ifndef PSD_PART_FILE_H
#define PSD_PART_FILE_H

#include <stdio.h>

#include "engine/base/error.h"

struct psd_part_file {
	FILE *out;
	char *path;	 /* owned */
	char *part_path; /* owned; NULL: written directly */
};

/* PSD_EFILE when it cannot be written, PSD_ENOMEM. *file is filled on success and ended by one of the next two. */
enum psd_status psd_part_file_open(struct psd_part_file *file, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Puts the file in its place. PSD_ERUN when something could not be written; then it is discarded. */
enum psd_status psd_part_file_commit(struct psd_part_file *file, struct psd_error *err) PSD_MUST_CHECK;
void psd_part_file_discard(struct psd_part_file *file);

#endif
