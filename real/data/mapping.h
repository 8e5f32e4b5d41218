/* Mapping: the contents of a file, mapped read-only into memory. This module also makes error messages about positions
 * in the file. It is used by readers of data files. */
#ifndef PSD_REAL_MAPPING_H
#define PSD_REAL_MAPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_mapping {
	char *path;	      /* path of the file, for error messages; owned */
	const uint8_t *bytes; /* contents of the file */
	uint64_t n_bytes;
	bool is_mapped;		   /* psd_mapping_close() unmaps the bytes; false: they belong to another object */
	struct psd_mapping *owner; /* mapping from which this one borrows the bytes; NULL: none */
	/* psd_mapping_guard() has found that the file was shortened. If `owner` is not NULL, the owner's is_shortened
	 * is used in place of this one. */
	atomic_bool is_shortened;
};

/* Returns the path "folder/name", or "name" if folder is NULL; the caller frees it. Returns NULL if memory runs out. */
char *psd_mapping_path(const char *folder, const char *name);
/* Maps the whole file "folder/name" ("name" if folder is NULL). On success fills *mapping, which psd_mapping_close()
 * releases. PSD_EFILE: the file cannot be opened, or is not a regular file; PSD_ENOMEM. */
enum psd_status psd_mapping_open(struct psd_mapping *mapping, const char *folder, const char *name,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Makes a mapping of n_bytes bytes that are in memory already. They must stay valid until psd_mapping_close(). path:
 * name for error messages, copied. PSD_ENOMEM. */
enum psd_status psd_mapping_borrow(struct psd_mapping *mapping, const char *path, const uint8_t *bytes,
				   uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Makes a second mapping of the bytes of `owner`. It must be closed before `owner`. If one of the two finds that the
 * file was shortened, the other one knows it, too. PSD_ENOMEM. */
enum psd_status psd_mapping_share(struct psd_mapping *mapping, struct psd_mapping *owner,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Function that reads mapped files. psd_mapping_guard() calls it. */
typedef enum psd_status psd_mapping_read_fn(void *context, struct psd_error *err);
/* Calls read(context, err) and returns its status. If another process has shortened one of the files, reading its
 * missing bytes would end this process (SIGBUS). In this function the missing bytes read as zeros instead; then this
 * call and every later one returns PSD_ERUN with the file's name. `read` must not call psd_mapping_guard(). Any
 * thread. */
enum psd_status psd_mapping_guard(struct psd_mapping files[], unsigned n_files, psd_mapping_read_fn *read,
				  void *context, struct psd_error *err) PSD_MUST_CHECK;

/* Releases a mapping. A mapping of all zeros is allowed. */
void psd_mapping_close(struct psd_mapping *mapping);

/* Fills err with "PATH: at byte OFFSET: MESSAGE", where MESSAGE is made from format, and returns PSD_EINVAL. */
enum psd_status psd_mapping_refuse(const struct psd_mapping *mapping, uint64_t offset, struct psd_error *err,
				   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Read an unsigned integer from an address of any alignment: big-endian (psd_big_) or little-endian (psd_little_), of
 * 16, 32 or 64 bits. */
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
