/* A file's bytes mapped into memory, and its error messages. Writes nothing. For readers of data files. */
#ifndef PSD_REAL_MAPPING_H
#define PSD_REAL_MAPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_mapping {
	char *path; /* for messages; owned */
	const uint8_t *bytes;
	uint64_t n_bytes;
	bool is_mapped;		   /* false: bytes belong to another object */
	struct psd_mapping *owner; /* mapping whose bytes these are; NULL: its own */
	atomic_bool is_shortened;  /* set by a guarded read; with an owner the owner's flag counts */
};

/* "folder/name", or "name" if folder is NULL; to be freed. NULL when memory runs out. */
char *psd_mapping_path(const char *folder, const char *name);
/* Maps all of folder/name (of name alone if folder is NULL). *mapping is filled on success, psd_mapping_close()
 * releases it. PSD_EFILE: it cannot be opened or must be a regular file; PSD_ENOMEM. */
enum psd_status psd_mapping_open(struct psd_mapping *mapping, const char *folder, const char *name,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Wraps bytes in memory, borrowed until psd_mapping_close(). PSD_ENOMEM. */
enum psd_status psd_mapping_borrow(struct psd_mapping *mapping, const char *path, const uint8_t *bytes,
				   uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Shares the bytes of `owner`, which must be closed later. Both learn if the file is shortened. PSD_ENOMEM. */
enum psd_status psd_mapping_share(struct psd_mapping *mapping, struct psd_mapping *owner,
				  struct psd_error *err) PSD_MUST_CHECK;
typedef enum psd_status psd_mapping_read_fn(void *context, struct psd_error *err);
/* Calls `read`, during which these files may turn out to be shorter than when they were mapped (SIGBUS). Missing bytes
 * read as zeros; this and every later call returns PSD_ERUN with the file's name. Must not be nested. Any thread. */
enum psd_status psd_mapping_guard(struct psd_mapping files[], unsigned n_files, psd_mapping_read_fn *read,
				  void *context, struct psd_error *err) PSD_MUST_CHECK;

/* All zero is allowed. */
void psd_mapping_close(struct psd_mapping *mapping);

/* Sets "PATH: at byte OFFSET: message" and returns PSD_EINVAL. */
enum psd_status psd_mapping_refuse(const struct psd_mapping *mapping, uint64_t offset, struct psd_error *err,
				   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Integers at any alignment. The caller has checked that the bytes exist. */
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
