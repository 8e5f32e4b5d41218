/* A file's bytes mapped into memory, and the words for what is wrong in them. Writes nothing. For the readers alone. */
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
	bool is_mapped;		   /* false: bytes belong to somebody else */
	struct psd_mapping *owner; /* who has mapped what is shared; NULL: it is not */
	atomic_bool is_shortened;  /* a guarded reader met it; where bytes are shared the owner's counts */
};

/* "folder/name", or "name" if folder is NULL; to be freed. NULL: no memory. */
char *psd_mapping_path(const char *folder, const char *name);
/* Maps all of folder/name (of name alone if folder is NULL). *mapping is filled on success, psd_mapping_close()
 * releases it. PSD_EFILE: it cannot be opened or is no regular file; PSD_ENOMEM. */
enum psd_status psd_mapping_open(struct psd_mapping *mapping, const char *folder, const char *name,
				 struct psd_error *err) PSD_MUST_CHECK;
/* The same for bytes in memory, borrowed until psd_mapping_close(). PSD_ENOMEM. */
enum psd_status psd_mapping_borrow(struct psd_mapping *mapping, const char *path, const uint8_t *bytes,
				   uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* The same for what owner has mapped, which stays open as long: a file that one of them finds shortened is so for all.
 * PSD_ENOMEM. */
enum psd_status psd_mapping_share(struct psd_mapping *mapping, struct psd_mapping *owner,
				  struct psd_error *err) PSD_MUST_CHECK;
typedef enum psd_status psd_mapping_read_fn(void *context, struct psd_error *err);
/* Calls read, in which these files may turn out to have been shortened since they were mapped (the kernel says SIGBUS):
 * what is gone reads as zeros, and this and every later call returns PSD_ERUN with the file's name. Not inside another
 * call of it; any thread. */
enum psd_status psd_mapping_guard(struct psd_mapping files[], unsigned n_files, psd_mapping_read_fn *read,
				  void *context, struct psd_error *err) PSD_MUST_CHECK;

/* All zero is allowed. */
void psd_mapping_close(struct psd_mapping *mapping);

/* Always PSD_EINVAL: "PATH: at byte OFFSET: message". */
enum psd_status psd_mapping_refuse(const struct psd_mapping *mapping, uint64_t offset, struct psd_error *err,
				   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Integers of a file, from any alignment. The caller has checked that the bytes are there. */
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
