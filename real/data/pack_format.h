/* The packed record format: a whole set of labelled JPEGs of one size in one file, read without unpacking. All integers
 * are little-endian and unsigned.
 *
 *   header, 72 bytes
 *      0   8  magic 89 'P' 'S' 'D' 'P' 'K' 0d 0a (a transfer as text would change it)
 *      8   4  version, 1
 *     12   4  classes, 1 or more
 *     16   8  samples, 1 or more
 *     24   4  height of every image in pixels, 1 to 4096
 *     28   4  width, the same
 *     32  12  mean of red, green, blue over all pixels, in 1/65536 of a step (0 to 255)
 *     44   4  zero
 *     48   8  bytes of the whole file
 *     56   8  checksum of the class names, each with its terminating zero byte, in the order of their numbers
 *     64   8  checksum of bytes 0 to 63 and the index
 *   index, 24 bytes for each sample
 *      0   8  offset of its JPEG in the file: where the one before ends, for the first where the index ends
 *      8   4  length of its JPEG in bytes, 1 or more
 *     12   4  label, below classes
 *     16   8  checksum of its JPEG
 *   JPEGs, one behind the other, the last one ends the file
 *
 * A checksum is FNV-1a with 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv): it finds damage, not malice, so nothing
 * is trusted because its checksum is right. Private to the packer, the reader and their tests. */
#ifndef PSD_REAL_PACK_FORMAT_H
#define PSD_REAL_PACK_FORMAT_H

#include <stdint.h>

#include "engine/base/error.h"
#include "real/data/mapping.h"

enum {
	PSD_PACK_HEADER_BYTES = 72,
	PSD_PACK_ENTRY_BYTES = 24,
	PSD_PACK_MAX_SIDE = 4096,
	PSD_PACK_MAX_CLASSES = 1000000
};

struct psd_pack {
	const struct psd_mapping *file; /* file that contains the records, borrowed */
	uint64_t n_samples;
	uint32_t classes;
	uint32_t height, width;
	uint32_t mean[3]; /* mean of red, green and blue, in 1/65536 of a step */
	uint64_t names_checksum;
};

struct psd_pack_record {
	const uint8_t *jpeg; /* bytes of the JPEG, borrowed from the file */
	uint64_t offset;
	uint32_t n_bytes;
	uint32_t label;
};

/* Checks header and index of a mapped file. *pack is valid as long as the mapping. PSD_EINVAL with the byte offset. */
enum psd_status psd_pack_open(struct psd_pack *pack, const struct psd_mapping *file,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Finds a sample (below n_samples) and verifies its JPEG's checksum. PSD_EINVAL with the byte offset. */
enum psd_status psd_pack_find(const struct psd_pack *pack, uint64_t sample, struct psd_pack_record *record,
			      struct psd_error *err) PSD_MUST_CHECK;

/* Writes the header for a file of n_file_bytes, in front of its index; ignores pack->file. */
void psd_pack_write_header(uint8_t *header, const struct psd_pack *pack, uint64_t n_file_bytes);
/* Writes an index entry; record->jpeg points to the JPEG's bytes. */
void psd_pack_write_entry(uint8_t entry[PSD_PACK_ENTRY_BYTES], const struct psd_pack_record *record);

#endif
