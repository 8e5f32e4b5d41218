/* A file's bytes mapped into memory, and its error messages. Writes nothing. For readers of data files. */
#ifndef PSD_REAL_MAPPING_H
#define PSD_REAL_MAPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_mapping {
	char *path; /* path of the file, for messages; owned */
	const uint8_t *bytes;
	uint64_t n_bytes;
	bool is_mapped;		   /* the bytes were mapped by this object; false: they belong to another */
	struct psd_mapping *owner; /* mapping to which the bytes belong; NULL: to this one */
	atomic_bool is_shortened;  /* a guarded read found the file shortened; valid in the owner, if any */
};

/* Path "folder/name", or "name" if folder is NULL; the caller frees it. NULL when memory runs out. */
char *psd_mapping_path(const char *folder, const char *name);
/* Maps all of folder/name (of name alone if folder is NULL). *mapping is filled on success, psd_mapping_close()
 * releases it. PSD_EFILE: it cannot be opened or must be a regular file; PSD_ENOMEM. */
enum psd_status psd_mapping_open(struct psd_mapping *mapping, const char *folder, const char *name,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Makes a mapping of bytes in memory, borrowed until psd_mapping_close(). PSD_ENOMEM. */
enum psd_status psd_mapping_borrow(struct psd_mapping *mapping, const char *path, const uint8_t *bytes,
				   uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Makes a mapping of the bytes of `owner`, to be closed later. Both learn of a shortened file. PSD_ENOMEM. */
enum psd_status psd_mapping_share(struct psd_mapping *mapping, struct psd_mapping *owner,
				  struct psd_error *err) PSD_MUST_CHECK;
typedef enum psd_status psd_mapping_read_fn(void *context, struct psd_error *err);
/* Calls `read`, during which these files may turn out to be shorter than when they were mapped (SIGBUS). Missing bytes
 * read as zeros; this and every later call returns PSD_ERUN with the file's name. Must not be nested. Any thread. */
enum psd_status psd_mapping_guard(struct psd_mapping files[], unsigned n_files, psd_mapping_read_fn *read,
				  void *context, struct psd_error *err) PSD_MUST_CHECK;

/* Unmaps the bytes. A mapping of all zeros is allowed. */
void psd_mapping_close(struct psd_mapping *mapping);

/* Fills err with "PATH: at byte OFFSET: message" and returns PSD_EINVAL. */
enum psd_status psd_mapping_refuse(const struct psd_mapping *mapping, uint64_t offset, struct psd_error *err,
				   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Read integers at any alignment. The caller has checked that the bytes exist. */
static inline uint32_t psd_big_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline uint32_t psd_little_u16(const uint8_t *bytes)
{
	return (uint32_t)bytes[1] << 8 | bytes[0];
}

static inline uint32_t psd_little_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static inline uint64_t psd_little_u64(const uint8_t *bytes)
{
	return (uint64_t)psd_little_u32(bytes + 4) << 32 | psd_little_u32(bytes);
}

#endif
