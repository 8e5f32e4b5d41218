/* Header and index of packed files, read and written. Refuses to look inside JPEGs. */
#include "real/data/pack_format.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/hash.h"

static const uint8_t magic[8] = {0x89, 'P', 'S', 'D', 'P', 'K', '\r', '\n'};

enum { VERSION = 1, CHECKED_HEADER_BYTES = 64 };

/* ---- reading ---- */

/* Returns the checksum of header and index. */
static uint64_t front_checksum(const uint8_t *front, uint64_t n_samples)
{
	const uint64_t checksum = psd_hash_bytes(PSD_HASH_START, front, CHECKED_HEADER_BYTES);

	return psd_hash_bytes(checksum, front + PSD_PACK_HEADER_BYTES, n_samples * PSD_PACK_ENTRY_BYTES);
}

/* Checks magic number, version and length. */
static enum psd_status check_identity(const struct psd_mapping *file, struct psd_error *err)
{
	const uint8_t *header = file->bytes;

	if (file->n_bytes < PSD_PACK_HEADER_BYTES)
		return psd_mapping_refuse(file, file->n_bytes, err, "the file is shorter than its header of %d bytes",
					  PSD_PACK_HEADER_BYTES);
	if (memcmp(header, magic, sizeof(magic)) != 0)
		return psd_mapping_refuse(file, 0, err, "not a packed file: its magic number differs");
	if (psd_little_u32(header + 8) != VERSION)
		return psd_mapping_refuse(file, 8, err, "version is %" PRIu32 ", must be %d",
					  psd_little_u32(header + 8), VERSION);
	if (psd_little_u64(header + 48) > file->n_bytes)
		return psd_mapping_refuse(file, file->n_bytes, err,
					  "the file is cut short, its header says %" PRIu64 " bytes",
					  psd_little_u64(header + 48));
	if (psd_little_u64(header + 48) < file->n_bytes)
		return psd_mapping_refuse(file, psd_little_u64(header + 48), err,
					  "the file has more bytes than its header says, %" PRIu64 " in all",
					  file->n_bytes);
	return PSD_OK;
}

static enum psd_status check_counts(const struct psd_pack *pack, struct psd_error *err)
{
	const uint64_t room = (pack->file->n_bytes - PSD_PACK_HEADER_BYTES) / PSD_PACK_ENTRY_BYTES;

	if (pack->classes < 1 || pack->classes > PSD_PACK_MAX_CLASSES)
		return psd_mapping_refuse(pack->file, 12, err, "number of classes is %" PRIu32 ", must be 1 to %d",
					  pack->classes, PSD_PACK_MAX_CLASSES);
	if (pack->n_samples < 1 || pack->n_samples > room)
		return psd_mapping_refuse(pack->file, 16, err,
					  "number of samples is %" PRIu64 ", must be 1 to %" PRIu64
					  " in a file of this length",
					  pack->n_samples, room);
	return PSD_OK;
}

static enum psd_status check_images(const struct psd_pack *pack, struct psd_error *err)
{
	const uint32_t sides[] = {pack->height, pack->width};

	for (unsigned i = 0; i < 2; i++)
		if (sides[i] < 1 || sides[i] > PSD_PACK_MAX_SIDE)
			return psd_mapping_refuse(pack->file, 24 + 4 * i, err, "%s is %" PRIu32 ", must be 1 to %d",
						  i ? "width" : "height", sides[i], PSD_PACK_MAX_SIDE);
	for (unsigned i = 0; i < 3; i++)
		if (pack->mean[i] > UINT32_C(255) << 16)
			return psd_mapping_refuse(pack->file, 32 + 4 * i, err,
						  "mean is %" PRIu32 "/65536, must be at most 255", pack->mean[i]);
	if (psd_little_u32(pack->file->bytes + 44) != 0)
		return psd_mapping_refuse(pack->file, 44, err, "these bytes must be zero in version %d", VERSION);
	return PSD_OK;
}

/* Checks that each JPEG begins where the previous one ends, and that the last one ends the file. */
static enum psd_status check_index(const struct psd_pack *pack, struct psd_error *err)
{
	const struct psd_mapping *file = pack->file;
	uint64_t expected = PSD_PACK_HEADER_BYTES + pack->n_samples * PSD_PACK_ENTRY_BYTES;

	for (uint64_t i = 0; i < pack->n_samples; i++) {
		const uint64_t at = PSD_PACK_HEADER_BYTES + i * PSD_PACK_ENTRY_BYTES;
		const uint64_t offset = psd_little_u64(file->bytes + at);
		const uint32_t n_bytes = psd_little_u32(file->bytes + at + 8),
			       label = psd_little_u32(file->bytes + at + 12);

		if (offset != expected)
			return psd_mapping_refuse(file, at, err,
						  "sample %" PRIu64 " begins at %" PRIu64 ", must begin at %" PRIu64, i,
						  offset, expected);
		if (n_bytes < 1 || n_bytes > file->n_bytes - expected)
			return psd_mapping_refuse(file, at + 8, err,
						  "sample %" PRIu64 " has %" PRIu32 " bytes, must have 1 to %" PRIu64,
						  i, n_bytes, file->n_bytes - expected);
		if (label >= pack->classes)
			return psd_mapping_refuse(file, at + 12, err, "label is %" PRIu32 ", must be below %" PRIu32,
						  label, pack->classes);
		expected += n_bytes;
	}
	if (expected != file->n_bytes)
		return psd_mapping_refuse(file, expected, err, "the file has bytes behind its last sample");
	return PSD_OK;
}

enum psd_status psd_pack_open(struct psd_pack *pack, const struct psd_mapping *file, struct psd_error *err)
{
	const uint8_t *header = file->bytes;

	PSD_TRY(check_identity(file, err));
	struct psd_pack fresh = {
		.file = file,
		.classes = psd_little_u32(header + 12),
		.n_samples = psd_little_u64(header + 16),
		.height = psd_little_u32(header + 24),
		.width = psd_little_u32(header + 28),
		.mean = {psd_little_u32(header + 32), psd_little_u32(header + 36), psd_little_u32(header + 40)},
		.names_checksum = psd_little_u64(header + 56),
	};
	PSD_TRY(check_counts(&fresh, err));
	if (front_checksum(header, fresh.n_samples) != psd_little_u64(header + 64))
		return psd_mapping_refuse(file, 64, err, "header or index is damaged: their checksum differs");
	PSD_TRY(check_images(&fresh, err));
	PSD_TRY(check_index(&fresh, err));
	*pack = fresh;
	return PSD_OK;
}

enum psd_status psd_pack_find(const struct psd_pack *pack, uint64_t sample, struct psd_pack_record *record,
			      struct psd_error *err)
{
	const uint8_t *entry = pack->file->bytes + PSD_PACK_HEADER_BYTES + sample * PSD_PACK_ENTRY_BYTES;
	const struct psd_pack_record found = {
		.offset = psd_little_u64(entry),
		.n_bytes = psd_little_u32(entry + 8),
		.label = psd_little_u32(entry + 12),
		.jpeg = pack->file->bytes + psd_little_u64(entry),
	};

	/* the file may have changed since its index was checked */
	if (found.offset > pack->file->n_bytes || found.n_bytes > pack->file->n_bytes - found.offset ||
	    found.label >= pack->classes)
		return psd_mapping_refuse(pack->file, (uint64_t)(entry - pack->file->bytes), err,
					  "the entry of sample %" PRIu64 " is damaged", sample);
	if (psd_hash_bytes(PSD_HASH_START, found.jpeg, found.n_bytes) != psd_little_u64(entry + 16))
		return psd_mapping_refuse(pack->file, found.offset, err,
					  "sample %" PRIu64 " is damaged: its checksum differs", sample);
	*record = found;
	return PSD_OK;
}

/* ---- writing ---- */

static void write_u32(uint8_t *bytes, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static void write_u64(uint8_t *bytes, uint64_t value)
{
	write_u32(bytes, (uint32_t)value);
	write_u32(bytes + 4, (uint32_t)(value >> 32));
}

void psd_pack_write_header(uint8_t *header, const struct psd_pack *pack, uint64_t n_file_bytes)
{
	memcpy(header, magic, sizeof(magic));
	write_u32(header + 8, VERSION);
	write_u32(header + 12, pack->classes);
	write_u64(header + 16, pack->n_samples);
	write_u32(header + 24, pack->height);
	write_u32(header + 28, pack->width);
	for (unsigned i = 0; i < 3; i++)
		write_u32(header + 32 + 4 * i, pack->mean[i]);
	write_u32(header + 44, 0);
	write_u64(header + 48, n_file_bytes);
	write_u64(header + 56, pack->names_checksum);
	write_u64(header + 64, front_checksum(header, pack->n_samples));
}

void psd_pack_write_entry(uint8_t entry[PSD_PACK_ENTRY_BYTES], const struct psd_pack_record *record)
{
	write_u64(entry, record->offset);
	write_u32(entry + 8, record->n_bytes);
	write_u32(entry + 12, record->label);
	write_u64(entry + 16, psd_hash_bytes(PSD_HASH_START, record->jpeg, record->n_bytes));
}
