/* The packed record format: a whole set of labelled JPEGs of one size in one file, which is read without unpacking. All
 * integers are little-endian and unsigned. Offset, length in bytes and content of each field:
 *
 *   header, 72 bytes
 *      0   8  magic bytes 89 'P' 'S' 'D' 'P' 'K' 0d 0a (a transfer as text changes line ends, which these bytes show)
 *      8   4  version, 1
 *     12   4  number of classes, 1 or more
 *     16   8  number of samples, 1 or more
 *     24   4  height of every image in pixels, 1 to 4096
 *     28   4  width of every image in pixels, equal to the height
 *     32  12  mean of red, green and blue over all pixels, each 0 to 255, in units of 1/65536
 *     44   4  zero
 *     48   8  number of bytes of the whole file
 *     56   8  checksum of the class names, each with its terminating zero byte, in the order of the class numbers
 *     64   8  checksum of bytes 0 to 63 and of the index
 *   index, 24 bytes for each sample
 *      0   8  offset of its JPEG in the file: the end of the previous JPEG, or of the index
 *      8   4  length of its JPEG in bytes, 1 or more
 *     12   4  label: number of its class, below the number of classes
 *     16   8  checksum of its JPEG
 *   JPEGs, without gaps; the file ends with the last one
 *
 * A checksum is FNV-1a with 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv). It finds damage, not malice, so values
 * are checked even if their checksum is right. Private to the packer, the reader and their tests. */
#ifndef PSD_REAL_PACK_FORMAT_H
#define PSD_REAL_PACK_FORMAT_H

#include <stdint.h>

#include "engine/base/error.h"
#include "real/data/mapping.h"

enum {
	PSD_PACK_HEADER_BYTES = 72, /* length of the header, bytes */
	PSD_PACK_ENTRY_BYTES = 24,  /* length of an index entry, bytes */
	PSD_PACK_MAX_SIDE = 4096,   /* largest height and width of an image, pixels */
	PSD_PACK_MAX_CLASSES = 1000000
};

/* Header of a packed file. */
struct psd_pack {
	const struct psd_mapping *file; /* file that contains the records, borrowed */
	uint64_t n_samples;
	uint32_t classes;
	uint32_t height, width;
	/* mean of red, green and blue over all pixels, in units of 1/65536; colour values are from 0 to 255 */
	uint32_t mean[3];
	uint64_t names_checksum; /* checksum of the class names */
};

/* One sample of a packed file. */
struct psd_pack_record {
	const uint8_t *jpeg; /* bytes of the JPEG, borrowed from the file */
	uint64_t offset;     /* offset of the JPEG in the file, bytes */
	uint32_t n_bytes;    /* length of the JPEG, bytes */
	uint32_t label;	     /* number of the sample's class, from 0 */
};

/* Checks header and index of a mapped file, and fills *pack, which is valid until the mapping is closed. PSD_EINVAL:
 * header or index are damaged; the text has the byte offset. */
enum psd_status psd_pack_open(struct psd_pack *pack, const struct psd_mapping *file,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Sets *record to sample number `sample` (below n_samples), and verifies the checksum of its JPEG. PSD_EINVAL: the
 * checksum differs; the text has the byte offset. */
enum psd_status psd_pack_find(const struct psd_pack *pack, uint64_t sample, struct psd_pack_record *record,
			      struct psd_error *err) PSD_MUST_CHECK;

/* Writes the header of a file of n_file_bytes bytes to `header`, PSD_PACK_HEADER_BYTES long. The index of the file must
 * follow the header in memory, because the header contains a checksum of it. pack->file is not used. */
void psd_pack_write_header(uint8_t *header, const struct psd_pack *pack, uint64_t n_file_bytes);
/* Writes the index entry of a record, with the checksum of its JPEG. */
void psd_pack_write_entry(uint8_t entry[PSD_PACK_ENTRY_BYTES], const struct psd_pack_record *record);

#endif
