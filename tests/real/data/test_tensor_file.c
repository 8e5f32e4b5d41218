/* Tensor files: written as the format is published, and read back, also those of other programs. Malformed files are
 * refused with their position. Whatever happens to the writer, the older file stays whole. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real/data/mapping.h"
#include "real/data/tensor_file.h"
#include "tests/scratch_folder.h"

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof((array)[0])))

/* ---- files, byte by byte ---- */

/* A header with its length before it, and behind it n_data_bytes that count from 0. */
static void write_raw(const struct scratch_folder *folder, const char *header, unsigned n_data_bytes)
{
	const size_t length = strlen(header), n_bytes = 8 + length + n_data_bytes;
	uint8_t *bytes = calloc(1, n_bytes);

	cr_assert_not_null(bytes);
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)((uint64_t)length >> 8 * i);
	memcpy(bytes + 8, header, length);
	for (unsigned i = 0; i < n_data_bytes; i++)
		bytes[8 + length + i] = (uint8_t)i;
	scratch_folder_write(folder, "t", bytes, n_bytes);
	free(bytes);
}

static struct psd_tensor_file *open_file(const struct scratch_folder *folder, const char *name)
{
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *file;

	cr_assert_eq(psd_tensor_file_open(&file, scratch_folder_path(folder, name).text, &err), PSD_OK, "%s", err.text);
	return file;
}

/* expected: the message behind "FOLDER/t:". */
static void expect_refused(const struct scratch_folder *folder, enum psd_status expected_status, const char *expected)
{
	struct psd_error err = {.text = "accepted"};
	struct psd_tensor_file *file = NULL;
	char text[1024];

	snprintf(text, sizeof(text), "%s/t:%s", folder->path, expected);
	cr_expect_eq(psd_tensor_file_open(&file, scratch_folder_path(folder, "t").text, &err), expected_status);
	cr_expect_str_eq(err.text, text);
	psd_tensor_file_close(file);
}

static void read_values(struct psd_tensor_file *file, const char *name, uint64_t first_byte, uint64_t n_bytes, void *to)
{
	const struct psd_file_tensor *tensor = psd_tensor_file_find(file, name);
	struct psd_error err = {.text = ""};

	cr_assert_not_null(tensor, "%s", name);
	cr_assert_eq(psd_tensor_file_read(file, tensor, first_byte, n_bytes, to, &err), PSD_OK, "%s", err.text);
}

/* ---- writing ---- */

static struct psd_tensor_writer *open_writer(const struct scratch_folder *folder, const char *name,
					     const struct psd_file_tensor tensors[], unsigned n_tensors,
					     const struct psd_file_note notes[], unsigned n_notes)
{
	struct psd_error err = {.text = ""};
	struct psd_tensor_writer *writer;

	cr_assert_eq(psd_tensor_writer_open(&writer, scratch_folder_path(folder, name).text, tensors, n_tensors, notes,
					    n_notes, &err),
		     PSD_OK, "%s", err.text);
	return writer;
}

static void add(struct psd_tensor_writer *writer, const void *values, uint64_t n_bytes)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_tensor_writer_add(writer, values, n_bytes, &err), PSD_OK, "%s", err.text);
}

static void finish(struct psd_tensor_writer *writer)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_tensor_writer_finish(writer, &err), PSD_OK, "%s", err.text);
	psd_tensor_writer_close(writer);
}

static void expect_bytes(const struct scratch_folder *folder, const char *name, const void *expected, size_t n_bytes)
{
	FILE *in = fopen(scratch_folder_path(folder, name).text, "rb");
	char found[1024];

	cr_assert_not_null(in);
	cr_expect_eq(fread(found, 1, sizeof(found), in), n_bytes);
	cr_expect_eq(memcmp(found, expected, n_bytes), 0, "%s", name);
	fclose(in);
}

static const struct psd_file_tensor pair = {.name = "w", .type = PSD_TENSOR_F32, .n_dims = 1, .dims = {2}};
static const char older[] = "older";

/* "out" has the text "older". */
static struct scratch_folder make_older(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "out", older, strlen(older));
	return folder;
}

static void write_pair(const struct scratch_folder *folder, const char *name)
{
	struct psd_tensor_writer *writer = open_writer(folder, name, &pair, 1, NULL, 0);

	add(writer, (const float[]){1, 2}, 8);
	finish(writer);
}

/* The header has 133 bytes and 3 blanks; 1.0f is 3f800000, 2.0f is 40000000. Checksums here are those of an
 * implementation of XXH64 in Python. */
static const char pair_bytes[] =
	"\x88\0\0\0\0\0\0\0"
	"{\"__metadata__\":{\"psd_checksums\":\"psd_xxh64 adf080539b487c68 c86e535c30403d76\"},"
	"\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   "
	"\0\0\x80\x3f\0\0\0\x40";

FOLDER_TEST(tensor_file, is_written_as_the_format_is_published, scratch_folder_make())
{
	static const struct psd_file_tensor tensors[] = {
		{.name = "bytes", .type = PSD_TENSOR_U8, .n_dims = 1, .dims = {3}},
		{.name = "a \"b\"\n", .type = PSD_TENSOR_I32, .n_dims = 2, .dims = {1, 2}},
		{.name = "none", .type = PSD_TENSOR_F32, .n_dims = 2, .dims = {0, 5}},
		{.name = "one", .type = PSD_TENSOR_I64},
	};
	static const struct psd_file_note notes[] = {{"format", "pt"}, {"path", "a\\b"}};
	/* in the order of tensors[]; the file has the wide ones first */
	static const uint8_t values[] = {7, 8, 9, /**/ 4, 3, 2, 1, 0xff, 0xff, 0xff, 0xff, /**/ 1, 2, 3, 4, 5, 6, 7, 8};
	static const char expected[] = /* 399 bytes and a blank */
		"\x90\x01\0\0\0\0\0\0"
		"{\"__metadata__\":{\"format\":\"pt\",\"path\":\"a\\\\b\",\"psd_checksums\":"
		"\"psd_xxh64 664ba6bd169433f5 814c43eb29646e14 1b3d17ae97b8b6de ef46db3751d8e999 c295f2d4426a5667\"},"
		"\"one\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
		"\"a \\\"b\\\"\\u000a\":{\"dtype\":\"I32\",\"shape\":[1,2],\"data_offsets\":[8,16]},"
		"\"none\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[16,16]},"
		"\"bytes\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}"
		" "
		"\1\2\3\4\5\6\7\x8\4\3\2\1\xff\xff\xff\xff\7\x8\x9";
	struct psd_tensor_writer *writer = open_writer(&folder, "t", tensors, COUNT(tensors), notes, COUNT(notes));

	add(writer, values, 5); /* a piece over two tensors */
	add(writer, values + 5, 0);
	add(writer, values + 5, sizeof(values) - 5);
	finish(writer);
	expect_bytes(&folder, "t", expected, sizeof(expected) - 1);
}

FOLDER_TEST(tensor_file, without_tensors_is_a_file, scratch_folder_make())
{
	struct psd_tensor_file *file;

	finish(open_writer(&folder, "t", NULL, 0, NULL, 0));
	expect_bytes(&folder, "t",
		     "\x40\0\0\0\0\0\0\0{\"__metadata__\":{\"psd_checksums\":\"psd_xxh64 1ae2ead119190808\"}} ", 72);
	file = open_file(&folder, "t");
	cr_expect_null(psd_tensor_file_at(file, 0));
	cr_expect_null(psd_tensor_file_note(file, "format"));
	psd_tensor_file_close(file);
}

/* Writes a tensor of every type with 0 to 4 dimensions, in pieces of n_piece_bytes. */
static void expect_same_again(unsigned n_piece_bytes)
{
	static const uint64_t dims[] = {3, 1, 5, 2};
	const struct scratch_folder folder = scratch_folder_make();
	struct psd_file_tensor tensors[PSD_TENSOR_TYPES];
	uint8_t values[8 * 30 * PSD_TENSOR_TYPES], back[8 * 30];
	struct psd_tensor_writer *writer;
	struct psd_tensor_file *file;
	uint64_t n_bytes, at = 0;

	for (unsigned i = 0; i < PSD_TENSOR_TYPES; i++) {
		tensors[i] = (struct psd_file_tensor){
			.name = psd_tensor_type_name((enum psd_tensor_type)i),
			.type = (enum psd_tensor_type)i,
			.n_dims = i % 5,
		};
		memcpy(tensors[i].dims, dims, tensors[i].n_dims * sizeof(dims[0]));
		cr_assert(psd_file_tensor_bytes(&tensors[i], &n_bytes));
		for (uint64_t b = 0; b < n_bytes; b++, at++)
			values[at] = (uint8_t)(at * 7 + i);
	}
	writer = open_writer(&folder, "t", tensors, COUNT(tensors), NULL, 0);
	for (uint64_t done = 0; done < at; done += n_piece_bytes)
		add(writer, values + done, done + n_piece_bytes < at ? n_piece_bytes : at - done);
	finish(writer);
	file = open_file(&folder, "t");
	at = 0;
	for (unsigned i = 0; i < COUNT(tensors); i++) {
		const struct psd_file_tensor *found = psd_tensor_file_find(file, tensors[i].name);

		cr_assert_not_null(found);
		cr_expect_str_eq(found->name, tensors[i].name);
		cr_expect_eq(found->type, tensors[i].type);
		cr_expect_eq(found->n_dims, tensors[i].n_dims);
		cr_expect_eq(memcmp(found->dims, tensors[i].dims, sizeof(found->dims)), 0);
		cr_assert(psd_file_tensor_bytes(found, &n_bytes));
		read_values(file, found->name, 0, n_bytes / 2, back);
		read_values(file, found->name, n_bytes / 2, n_bytes - n_bytes / 2, back + n_bytes / 2);
		cr_expect_eq(memcmp(back, values + at, n_bytes), 0, "%s", found->name);
		at += n_bytes;
	}
	cr_expect_not_null(psd_tensor_file_at(file, PSD_TENSOR_TYPES - 1));
	cr_expect_null(psd_tensor_file_at(file, PSD_TENSOR_TYPES));
	psd_tensor_file_close(file);
	scratch_folder_remove(&folder);
}

Test(tensor_file, of_every_type_is_read_as_it_was_written)
{
	expect_same_again(1);
	expect_same_again(13);
	expect_same_again(8 * 30 * PSD_TENSOR_TYPES);
}

FOLDER_TEST(tensor_file, finds_each_of_thousands, scratch_folder_make())
{
	enum { MANY = 5000 };
	static struct psd_file_tensor tensors[MANY];
	static char names[MANY][32];
	static uint16_t values[MANY];
	struct psd_tensor_writer *writer;
	struct psd_tensor_file *file;

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "layers.%u.weight", i);
		tensors[i] = (struct psd_file_tensor){.name = names[i], .type = PSD_TENSOR_U16};
		values[i] = (uint16_t)(3 * i);
	}
	writer = open_writer(&folder, "t", tensors, MANY, NULL, 0);
	add(writer, values, sizeof(values));
	finish(writer);
	file = open_file(&folder, "t");
	for (unsigned i = 0; i < MANY; i++) {
		uint16_t value;

		read_values(file, names[i], 0, sizeof(value), &value);
		cr_assert_eq(value, 3 * i);
		cr_assert_str_eq(psd_tensor_file_at(file, i)->name, names[i]);
	}
	cr_expect_null(psd_tensor_file_find(file, "layers.5000.weight"));
	psd_tensor_file_close(file);
}

/* ---- files of others ---- */

/* As Python's safetensors 0.8 has it of {"b": float16 (2,1), "a": int64 ()}: in the order of sizes, then of names. */
FOLDER_TEST(tensor_file, of_pytorch_is_read, scratch_folder_make())
{
	static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
				     "\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
				     "\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[8,12]}}      ";
	struct psd_tensor_file *file;
	const struct psd_file_tensor *b;
	uint8_t values[4];

	write_raw(&folder, header, 12);
	file = open_file(&folder, "t");
	cr_expect_str_eq(psd_tensor_file_note(file, "format"), "pt");
	b = psd_tensor_file_find(file, "b");
	cr_expect_eq(b, psd_tensor_file_at(file, 1));
	cr_expect_eq(b->type, PSD_TENSOR_F16);
	cr_expect_eq(b->n_dims, 2);
	cr_expect_eq(b->dims[0], 2);
	cr_expect_eq(b->dims[1], 1);
	read_values(file, "b", 1, 3, values);
	cr_expect_eq(memcmp(values, "\x9\xa\xb", 3), 0);
	psd_tensor_file_close(file);
}

/* As json.dumps() may have it: blanks, lines, escapes, keys in any order, and a header of any length. */
FOLDER_TEST(tensor_file, of_any_json_is_read, scratch_folder_make())
{
	static const char header[] = "{\n\t\"\\u00e9\\/\\ud7ff\\\"\": {\"shape\" : [ 2 ],\r\n"
				     "  \"data_offsets\": [1, 3], \"extra\": {\"x\": [null]}, \"dtype\": \"I8\"},\n"
				     "\"\xf0\x9f\x98\x80\": {\"dtype\": \"BOOL\", \"shape\": [1, 1], "
				     "\"data_offsets\": [0, 1]},\n"
				     "\"__metadata__\": {\"a\\tb\": \"c\\\\\\u007f\\n\", \"none\": \"\"}}";
	struct psd_tensor_file *file;
	uint8_t values[2];

	write_raw(&folder, header, 3);
	file = open_file(&folder, "t");
	read_values(file, "\xc3\xa9/\xed\x9f\xbf\"", 0, 2, values);
	cr_expect_eq(memcmp(values, "\1\2", 2), 0);
	read_values(file, "\xf0\x9f\x98\x80", 0, 1, values);
	cr_expect_eq(values[0], 0);
	cr_expect_str_eq(psd_tensor_file_note(file, "a\tb"), "c\\\x7f\n");
	cr_expect_str_eq(psd_tensor_file_note(file, "none"), "");
	psd_tensor_file_close(file);
}

FOLDER_TEST(tensor_file, beyond_4_gib_is_read, scratch_folder_make())
{
	static const char header[] =
		"{\"big\":{\"dtype\":\"U8\",\"shape\":[5368709120],\"data_offsets\":[0,5368709120]},"
		"\"end\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5368709120,5368709124]}}";
	const struct scratch_path path = scratch_folder_path(&folder, "t");
	const int64_t n_front_bytes = 8 + (int64_t)strlen(header), n_big_bytes = INT64_C(5) << 30;
	struct psd_tensor_file *file;
	char values[5] = "";
	FILE *out;

	write_raw(&folder, header, 0);
	out = fopen(path.text, "r+b");
	cr_assert_not_null(out);
	if (fseeko(out, n_front_bytes + n_big_bytes - 1, SEEK_SET) || fputs("ABCDE", out) < 0 || fclose(out))
		cr_skip_test("no file of 5 GiB can be made here");
	file = open_file(&folder, "t");
	read_values(file, "end", 0, 4, values);
	cr_expect_str_eq(values, "BCDE");
	read_values(file, "big", (uint64_t)n_big_bytes - 1, 1, values);
	cr_expect_eq(values[0], 'A');
	psd_tensor_file_close(file);
}

/* ---- malformed files ---- */

FOLDER_TEST(tensor_file, must_have_its_header, scratch_folder_make())
{
	static const struct {
		const char *bytes;
		size_t n_bytes;
		const char *message;
	} cases[] = {
		{"", 0, " at byte 0: the file ends before the length of its header, 8 bytes"},
		{"\x8\0\0\0\0\0\0", 7, " at byte 7: the file ends before the length of its header, 8 bytes"},
		{"\3\0\0\0\0\0\0\0{}", 10,
		 " at byte 0: not a safetensors file, or cut short: its header must have 3 bytes, 2 are there"},
		{"\377\377\377\377\377\377\377\377{}", 10,
		 " at byte 0: not a safetensors file, or cut short: its header must have 18446744073709551615 bytes, 2 "
		 "are there"},
		{"PK\3\4\24\0\10\10 archive", 16,
		 " at byte 0: not a safetensors file, or cut short: its header must have 578712638083779408 bytes, 8 "
		 "are there"},
		{"\0\0\0\0\0\0\0\0{}", 10, " at byte 8: not a safetensors file: its header must begin with '{'"},
		{"\3\0\0\0\0\0\0\0 {}", 11, " at byte 8: not a safetensors file: its header must begin with '{'"},
		{"\4\0\0\0\0\0\0\0{}  x", 13, " at byte 12: the file has bytes behind its last tensor"},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		scratch_folder_write(&folder, "t", cases[i].bytes, cases[i].n_bytes);
		expect_refused(&folder, PSD_EINVAL, cases[i].message);
	}
}

FOLDER_TEST(tensor_file, must_have_a_header_of_16_mib_at_most, scratch_folder_make())
{
	enum { TOO_MANY = (16 << 20) + 1 };
	char *header = malloc(TOO_MANY + 1);

	cr_assert_not_null(header);
	memset(header, ' ', TOO_MANY);
	memcpy(header, "{}", 2);
	header[TOO_MANY] = '\0';
	write_raw(&folder, header, 0);
	expect_refused(&folder, PSD_EINVAL, " at byte 0: the header has 16777217 bytes, must have at most 16777216");
	header[TOO_MANY - 1] = '\0';
	write_raw(&folder, header, 0);
	psd_tensor_file_close(open_file(&folder, "t"));
	free(header);
}

#define W(dtype, shape, offsets) "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define U8(name, n_bytes, offsets)                                                                                     \
	"\"" name "\":{\"dtype\":\"U8\",\"shape\":[" n_bytes "],\"data_offsets\":[" offsets "]}"

FOLDER_TEST(tensor_file, must_have_a_header_that_fits, scratch_folder_make())
{
	/* headers before 16 bytes of data; columns count from 1 */
	static const struct {
		const char *header, *message;
	} cases[] = {
		{"{\"w\":", "2:1: not valid JSON: did not find expected node content"},
		{"{\"w\"; 1}", "1:5: not valid JSON: did not find expected ',' or '}'"},
		{"{\"\xff\": 1}", "1:3: not UTF-8 text: invalid leading UTF-8 octet"},
		{"{\"\\ud83d\\ude00\": 1}", "1:5: not valid JSON: found invalid Unicode character escape code"},
		{"{\"a\\u0000b\": 1}", "1:2: text contains a zero byte"},
		{"{\"w\":5}", "1:6: tensor 'w' must be an object with 'dtype', 'shape' and 'data_offsets'"},
		{"{\"w\":[]}", "1:6: tensor 'w' must be an object with 'dtype', 'shape' and 'data_offsets'"},
		{"{\"w\":{\"shape\":[4],\"data_offsets\":[0,16]}}", "1:6: tensor 'w' has no 'dtype'"},
		{"{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,16]}}", "1:6: tensor 'w' has no 'shape'"},
		{"{\"w\":{\"dtype\":\"F32\",\"shape\":[4]}}", "1:6: tensor 'w' has no 'data_offsets'"},
		{W("\"F31\"", "[4]", "[0,16]"),
		 "1:15: 'dtype' is 'F31', must be one of: F32, F64, F16, BF16, F8_E4M3, "
		 "F8_E5M2, I8, I16, I32, I64, U8, U16, U32, U64, BOOL; did you mean F32?"},
		{W("[1]", "[4]", "[0,16]"), "1:15: 'dtype' of tensor 'w' must be a text"},
		{W("\"F32\"", "4", "[0,16]"), "1:29: 'shape' of tensor 'w' must be a list of whole numbers"},
		{W("\"F32\"", "[-4]", "[0,16]"),
		 "1:30: 'entry' is '-4', must be a whole number from 0 to 18446744073709551615"},
		{W("\"F32\"", "[4.0]", "[0,16]"),
		 "1:30: 'entry' is '4.0', must be a whole number from 0 to 18446744073709551615"},
		{W("\"F32\"", "[[4]]", "[0,16]"),
		 "1:30: 'entry' is a list, must be a whole number from 0 to 18446744073709551615"},
		{W("\"F32\"", "[18446744073709551616]", "[0,16]"),
		 "1:30: 'entry' is '18446744073709551616', must be a whole number from 0 to 18446744073709551615"},
		{W("\"F32\"", "[1,1,1,1,1,1,1,1,4]", "[0,16]"),
		 "1:29: tensor 'w' has 9 dimensions, must have at most 8"},
		{W("\"F32\"", "[4294967296,4294967296]", "[0,0]"),
		 "1:6: tensor 'w' has more values than can be counted"},
		{W("\"F32\"", "[4611686018427387904]", "[0,0]"), "1:6: tensor 'w' has more values than can be counted"},
		{W("\"F32\"", "[4294967296,4294967296,0]", "[0,0]"),
		 "1:6: tensor 'w' has more values than can be counted"},
		{W("\"F32\"", "[4]", "5"), "1:48: 'data_offsets' of tensor 'w' must be a list of whole numbers"},
		{W("\"F32\"", "[4]", "[0]"), "1:48: 'data_offsets' of tensor 'w' has 1 numbers, must have 2"},
		{W("\"F32\"", "[4]", "[0,16,16]"), "1:48: 'data_offsets' of tensor 'w' has 3 numbers, must have 2"},
		{W("\"F32\"", "[4]", "[0,17]"), "1:51: 'entry' is '17', must be a whole number from 0 to 16"},
		{W("\"F32\"", "[4]", "[17,17]"), "1:49: 'entry' is '17', must be a whole number from 0 to 16"},
		{W("\"F32\"", "[4]", "[16,0]"), "1:52: 'entry' is '0', must be a whole number from 16 to 16"},
		{W("\"F32\"", "[4]", "[0,12]"), "1:48: tensor 'w' has 12 bytes, by its type and shape it must have 16"},
		{W("\"F64\"", "[]", "[0,16]"), "1:47: tensor 'w' has 16 bytes, by its type and shape it must have 8"},
		{W("\"F32\"", "[3]", "[4,16]"),
		 "1:48: tensor 'w' begins at byte 4 of the data, must begin at 0, where the one before ends"},
		{W("\"F32\"", "[3]", "[0,12]"), " at byte 75: the file has bytes behind its last tensor"},
		{"{" U8("b", "8", "8,16") ",\n" U8("a", "9", "0,9") "}",
		 "1:47: tensor 'b' begins at byte 8 of the data, must begin at 9, where the one before ends"},
		{"{" U8("b", "8", "8,16") ",\n" U8("a", "7", "0,7") "}",
		 "1:47: tensor 'b' begins at byte 8 of the data, must begin at 7, where the one before ends"},
		{"{" U8("a", "16", "0,16") ",\n" U8("b", "16", "0,16") "}",
		 "2:47: tensor 'b' begins at byte 0 of the data, must begin at 16, where the one before ends"},
		{"{" U8("a", "8", "0,8") ",\n" U8("a", "8", "8,16") "}", "2:1: key 'a' is already in line 1"},
		{"{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "1:20: key 'dtype' is already in line 1"},
		{"{\"__metadata__\":[\"pt\"]}", "1:17: '__metadata__' must be an object of texts"},
		{"{\"__metadata__\":{\"a\":[1]}}", "1:22: 'a' in '__metadata__' must be a text"},
		{"{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", "1:26: key 'a' is already in line 1"},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		write_raw(&folder, cases[i].header, 16);
		expect_refused(&folder, PSD_EINVAL, cases[i].message);
	}
}

FOLDER_TEST(tensor_file, must_be_there, scratch_folder_make())
{
	expect_refused(&folder, PSD_EFILE, " cannot be opened: No such file or directory");
	scratch_folder_add(&folder, "t");
	expect_refused(&folder, PSD_EFILE, " must be a regular file");
}

FOLDER_TEST(tensor_file, that_is_shortened_is_an_error, scratch_folder_make())
{
	enum { VALUES = 1 << 20 };
	const struct scratch_path path = scratch_folder_path(&folder, "t");
	const struct psd_file_tensor tensor = {.name = "w", .type = PSD_TENSOR_U8, .n_dims = 1, .dims = {VALUES}};
	uint8_t *values = calloc(1, VALUES);
	struct psd_error err = {.text = ""};
	struct psd_tensor_writer *writer = open_writer(&folder, "t", &tensor, 1, NULL, 0);
	struct psd_tensor_file *file;
	char expected[512];

	cr_assert_not_null(values);
	add(writer, values, VALUES);
	finish(writer);
	file = open_file(&folder, "t");
	cr_assert_eq(truncate(path.text, 4096), 0);
	cr_expect_eq(psd_tensor_file_read(file, psd_tensor_file_at(file, 0), 0, VALUES, values, &err), PSD_ERUN);
	snprintf(expected, sizeof(expected), "%s: was shortened while it was read", path.text);
	cr_expect_str_eq(err.text, expected);
	psd_tensor_file_close(file);
	free(values);
}

/* ---- damage is found ---- */

enum { FLIPPED_VALUES = 9 };

/* A file with what a checkpoint has; returns its bytes. */
static uint8_t *make_checked(const struct scratch_folder *folder, size_t *n_bytes)
{
	static const struct psd_file_tensor tensors[] = {
		{.name = "fc1.weight", .type = PSD_TENSOR_F32, .n_dims = 2, .dims = {2, FLIPPED_VALUES}},
		{.name = "chosen", .type = PSD_TENSOR_BOOL, .n_dims = 1, .dims = {5}},
		{.name = "empty", .type = PSD_TENSOR_F32, .n_dims = 1, .dims = {0}},
		{.name = "local_sgd", .type = PSD_TENSOR_F64, .n_dims = 1, .dims = {2}},
	};
	static const struct psd_file_note notes[] = {
		{"format", "pt"}, {"iterations", "12"}, {"run", "0123456789abcdef"}};
	static const uint8_t chosen[5] = {1, 0, 1, 1, 0};
	static const double saved[2] = {2.5, -1};
	struct psd_tensor_writer *writer = open_writer(folder, "t", tensors, COUNT(tensors), notes, COUNT(notes));
	float values[2 * FLIPPED_VALUES];
	uint8_t *bytes;
	FILE *in;

	for (unsigned i = 0; i < COUNT(values); i++)
		values[i] = 0.37f * (float)i - 2;
	add(writer, values, sizeof(values));
	add(writer, chosen, sizeof(chosen));
	add(writer, saved, sizeof(saved));
	finish(writer);
	in = fopen(scratch_folder_path(folder, "t").text, "rb");
	cr_assert(in && !fseek(in, 0, SEEK_END));
	*n_bytes = (size_t)ftell(in);
	bytes = malloc(*n_bytes);
	cr_assert(bytes);
	rewind(in);
	cr_assert_eq(fread(bytes, 1, *n_bytes, in), *n_bytes);
	fclose(in);
	return bytes;
}

/* Opens and verifies a file of these bytes in memory. */
static enum psd_status verify(const uint8_t *bytes, size_t n_bytes, bool *has_checksums, struct psd_error *err)
{
	struct psd_mapping mapping;
	struct psd_tensor_file *file;
	enum psd_status status = psd_mapping_borrow(&mapping, "the-file", bytes, n_bytes, err);

	cr_assert_eq(status, PSD_OK);
	status = psd_tensor_file_open_mapped(&file, &mapping, err);
	if (status)
		return status;
	status = psd_tensor_file_verify(file, has_checksums, err);
	psd_tensor_file_close(file);
	return status;
}

/* Each bit in turn: of the header's length, of names, shapes and metadata, of the checksums themselves, of the blanks
 * behind the header, of every value. */
Test(tensor_file, every_changed_bit_is_found)
{
	const struct scratch_folder folder = scratch_folder_make();
	size_t n_bytes;
	uint8_t *bytes = make_checked(&folder, &n_bytes);
	struct psd_error err = {.text = ""};
	bool has_checksums = false;

	cr_assert_eq(verify(bytes, n_bytes, &has_checksums, &err), PSD_OK, "%s", err.text);
	cr_assert(has_checksums);
	for (size_t bit = 0; bit < 8 * n_bytes; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		err.text[0] = '\0';
		cr_expect_eq(verify(bytes, n_bytes, &has_checksums, &err), PSD_EINVAL, "bit %zu", bit);
		cr_expect_not_null(strstr(err.text, "the-file"), "bit %zu: %s", bit, err.text);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	free(bytes);
	scratch_folder_remove(&folder);
}

Test(tensor_file, damage_is_named)
{
	const struct scratch_folder folder = scratch_folder_make();
	size_t n_bytes;
	uint8_t *bytes = make_checked(&folder, &n_bytes);
	uint8_t *weight = bytes + n_bytes - 5 - sizeof(float) * 2 * FLIPPED_VALUES; /* behind the wide one */
	struct psd_error err = {.text = ""};
	bool has_checksums;

	bytes[n_bytes - 1] ^= 1;
	cr_expect_eq(verify(bytes, n_bytes, &has_checksums, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "the-file: chosen is damaged: its checksum differs");
	bytes[n_bytes - 1] ^= 1;
	weight[3] ^= 1;
	cr_expect_eq(verify(bytes, n_bytes, &has_checksums, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "the-file: fc1.weight is damaged: its checksum differs");
	memcpy(weight + 3 * sizeof(float), "\0\0\x80\x7f", sizeof(float));
	cr_expect_eq(verify(bytes, n_bytes, &has_checksums, &err), PSD_EINVAL);
	cr_expect_str_eq(
		err.text,
		"the-file: fc1.weight has a value that is not a finite number (element 3), and is damaged: its "
		"checksum differs");
	free(bytes);
	scratch_folder_remove(&folder);
}

Test(tensor_file, of_others_has_no_checksums_and_is_accepted)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct psd_error err = {.text = ""};
	bool has_checksums = true;
	struct psd_tensor_file *file;

	write_raw(&folder, "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
	file = open_file(&folder, "t");
	cr_expect_eq(psd_tensor_file_verify(file, &has_checksums, &err), PSD_OK);
	cr_expect_not(has_checksums);
	psd_tensor_file_close(file);
	scratch_folder_remove(&folder);
}

/* Bits of infinity, of a number that is none, and of the largest ones. */
Test(tensor_file, values_that_are_no_numbers_are_found_in_each_type)
{
	static const struct {
		enum psd_tensor_type type;
		uint64_t infinite, none, largest;
	} cases[] = {
		{PSD_TENSOR_F16, 0xfc00, 0x7c01, 0x7bff},
		{PSD_TENSOR_BF16, 0x7f80, 0xffc0, 0xff7f},
		{PSD_TENSOR_F32, 0x7f800000, 0xffc00000, 0xff7fffff},
		{PSD_TENSOR_F64, UINT64_C(0xfff0000000000000), UINT64_C(0x7ff0000000000001),
		 UINT64_C(0x7fefffffffffffff)},
	};
	uint8_t values[8 * 40];
	uint64_t element;

	for (unsigned c = 0; c < COUNT(cases); c++) {
		const unsigned width = psd_tensor_type_bytes(cases[c].type);

		for (unsigned i = 0; i < 40; i++)
			memcpy(values + (size_t)i * width, &cases[c].largest, width);
		cr_expect_not(psd_find_odd(cases[c].type, values, 40, &element));
		memcpy(values + (size_t)37 * width, &cases[c].none, width);
		cr_expect_not(psd_find_odd(cases[c].type, values, 37, &element));
		cr_expect(psd_find_odd(cases[c].type, values, 40, &element));
		cr_expect_eq(element, 37);
		memcpy(values + (size_t)2 * width, &cases[c].infinite, width);
		cr_expect(psd_find_odd(cases[c].type, values, 40, &element));
		cr_expect_eq(element, 2);
	}
	memset(values, 0xff, sizeof(values));
	cr_expect_not(psd_find_odd(PSD_TENSOR_U64, values, 40, &element));
}

/* ---- the writer refuses contents that the reader would refuse ---- */

/* expected: the message behind "FOLDER/out:". */
static void expect_no_writer(const struct scratch_folder *folder, const struct psd_file_tensor tensors[],
			     unsigned n_tensors, const char *expected)
{
	struct psd_error err = {.text = "accepted"};
	struct psd_tensor_writer *writer;
	char text[1024];

	snprintf(text, sizeof(text), "%s/out:%s", folder->path, expected);
	cr_assert_eq(psd_tensor_writer_open(&writer, scratch_folder_path(folder, "out").text, tensors, n_tensors, NULL,
					    0, &err),
		     PSD_EINVAL);
	cr_expect_str_eq(err.text, text);
	expect_bytes(folder, "out", older, strlen(older));
	cr_expect_eq(scratch_folder_count(folder), 1);
}

FOLDER_TEST(tensor_file, is_not_written_where_it_could_not_be_read, make_older())
{
	const struct psd_file_tensor twice[] = {pair, pair};
	struct psd_file_tensor odd = pair;
	char name[1100];

	expect_no_writer(&folder, twice, 2, "1:151: key 'w' is already in line 1");
	odd.name = "__metadata__";
	expect_no_writer(&folder, &odd, 1, "1:81: key '__metadata__' is already in line 1");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	odd.name = name;
	expect_no_writer(&folder, &odd, 1, "1:1182: not valid JSON: did not find expected ',' or '}'");
	odd = pair;
	odd.dims[0] = UINT64_C(1) << 62;
	expect_no_writer(&folder, &odd, 1, " tensor 'w' has more values than can be counted");
	odd.dims[0] = UINT64_C(1) << 61;
	expect_no_writer(&folder, &odd, 1, " the tensors have more bytes together than a file can have");
}

/* ---- whole or not at all ---- */

FOLDER_TEST(tensor_file, replaces_the_older_one_when_it_is_finished, make_older())
{
	struct psd_tensor_writer *writer = open_writer(&folder, "out", &pair, 1, NULL, 0);

	add(writer, (const float[]){1, 2}, 8);
	expect_bytes(&folder, "out", older, strlen(older));
	finish(writer);
	expect_bytes(&folder, "out", pair_bytes, sizeof(pair_bytes) - 1);
	cr_expect_eq(scratch_folder_count(&folder), 1);
}

FOLDER_TEST(tensor_file, that_is_not_finished_is_taken_away, make_older())
{
	struct psd_tensor_writer *writer = open_writer(&folder, "out", &pair, 1, NULL, 0);

	add(writer, (const float[]){1}, 4);
	cr_expect_eq(scratch_folder_count(&folder), 2);
	psd_tensor_writer_close(writer);
	expect_bytes(&folder, "out", older, strlen(older));
	cr_expect_eq(scratch_folder_count(&folder), 1);
	psd_tensor_writer_close(NULL);
}

FOLDER_TEST(tensor_file, takes_the_place_of_what_a_killed_process_left, make_older())
{
	char rest[2 * sizeof(pair_bytes)];

	memset(rest, 'x', sizeof(rest));
	scratch_folder_write(&folder, "out.part", rest, sizeof(rest));
	write_pair(&folder, "out");
	expect_bytes(&folder, "out", pair_bytes, sizeof(pair_bytes) - 1);
	cr_expect_eq(scratch_folder_count(&folder), 1);
}

/* The second one neither writes into the first one's file nor takes it away. */
FOLDER_TEST(tensor_file, has_one_writer_at_a_time, make_older())
{
	const struct scratch_path path = scratch_folder_path(&folder, "out");
	struct psd_tensor_writer *first = open_writer(&folder, "out", &pair, 1, NULL, 0), *second;
	struct psd_error err = {.text = "accepted"};
	char expected[512];

	cr_expect_eq(psd_tensor_writer_open(&second, path.text, &pair, 1, NULL, 0, &err), PSD_EFILE);
	snprintf(expected, sizeof(expected), "%s: is being written by another run", path.text);
	cr_expect_str_eq(err.text, expected);
	add(first, (const float[]){1, 2}, 8);
	finish(first);
	expect_bytes(&folder, "out", pair_bytes, sizeof(pair_bytes) - 1);
	write_pair(&folder, "out");
}

/* The next one's file has the name that the last one's had. */
FOLDER_TEST(tensor_file, is_left_alone_by_the_last_writer, make_older())
{
	struct psd_tensor_writer *last = open_writer(&folder, "out", &pair, 1, NULL, 0), *next;
	struct psd_error err = {.text = ""};

	add(last, (const float[]){3, 4}, 8);
	cr_assert_eq(psd_tensor_writer_finish(last, &err), PSD_OK, "%s", err.text);
	next = open_writer(&folder, "out", &pair, 1, NULL, 0);
	psd_tensor_writer_close(last);
	add(next, (const float[]){1, 2}, 8);
	finish(next);
	expect_bytes(&folder, "out", pair_bytes, sizeof(pair_bytes) - 1);
}

FOLDER_TEST(tensor_file, keeps_mode_and_link_of_the_older_one, make_older())
{
	const struct scratch_path path = scratch_folder_path(&folder, "out"), link = scratch_folder_path(&folder, "l");
	struct stat facts;

	cr_assert_eq(chmod(path.text, 0640), 0);
	cr_assert_eq(symlink("out", link.text), 0);
	write_pair(&folder, "l");
	expect_bytes(&folder, "out", pair_bytes, sizeof(pair_bytes) - 1);
	cr_assert_eq(lstat(link.text, &facts), 0);
	cr_expect(S_ISLNK(facts.st_mode));
	cr_assert_eq(stat(path.text, &facts), 0);
	cr_expect_eq(facts.st_mode & 0777, 0640);
	cr_expect_eq(scratch_folder_count(&folder), 2);
}

/* Whoever can write into the folder must not make another file end here. */
FOLDER_TEST(tensor_file, follows_no_link_beside_its_place, make_older())
{
	struct psd_error err = {.text = "accepted"};
	struct psd_tensor_writer *writer;

	cr_assert_eq(symlink("out", scratch_folder_path(&folder, "t.part").text), 0);
	cr_expect_eq(psd_tensor_writer_open(&writer, scratch_folder_path(&folder, "t").text, &pair, 1, NULL, 0, &err),
		     PSD_EFILE);
	cr_expect_not_null(strstr(err.text, "/t: cannot be written: Too many levels of symbolic links"), "%s",
			   err.text);
	expect_bytes(&folder, "out", older, strlen(older));
}

/* The first of two pieces fits in part: a call writes less than it is asked for. */
FOLDER_TEST(tensor_file, on_a_full_disk_leaves_the_older_one, make_older())
{
	enum { FRONT = 64 + 8, MANY = 1000 };
	static const uint8_t values[MANY];
	const struct psd_file_tensor tensor = {.name = "w", .type = PSD_TENSOR_U8, .n_dims = 1, .dims = {MANY}};
	const struct rlimit limit = {FRONT + MANY / 2, RLIM_INFINITY};
	struct psd_error err = {.text = ""};
	struct psd_tensor_writer *writer;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	writer = open_writer(&folder, "out", &tensor, 1, NULL, 0);
	cr_expect_eq(psd_tensor_writer_add(writer, values, MANY, &err), PSD_ERUN);
	cr_expect_not_null(strstr(err.text, "/out: cannot be written: File too large"), "%s", err.text);
	psd_tensor_writer_close(writer);
	expect_bytes(&folder, "out", older, strlen(older));
	cr_expect_eq(scratch_folder_count(&folder), 1);
}

Test(tensor_file, says_where_it_cannot_be_written)
{
	static const struct {
		const char *path, *message;
	} cases[] = {
		{"/nowhere/t", "/nowhere/t: cannot be written: No such file or directory"},
		{"/dev/full", "/dev/full: must be a regular file"},
		{"/tmp", "/tmp: must be a regular file"},
		{"/dev/null/t", "/dev/null/t: cannot be written: Not a directory"},
		{"/proc/t", "/proc/t: cannot be written: No such file or directory"},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct psd_error err = {.text = "accepted"};
		struct psd_tensor_writer *writer;

		cr_expect_eq(psd_tensor_writer_open(&writer, cases[i].path, &pair, 1, NULL, 0, &err), PSD_EFILE);
		cr_expect_str_eq(err.text, cases[i].message);
	}
}

FOLDER_TEST(tensor_file, may_have_no_folder_in_its_path, make_older())
{
	cr_assert_eq(chdir(folder.path), 0);
	for (unsigned round = 0; round < 2; round++) { /* anew, then over it */
		struct psd_error err = {.text = ""};
		struct psd_tensor_writer *writer;

		cr_assert_eq(psd_tensor_writer_open(&writer, "t", &pair, 1, NULL, 0, &err), PSD_OK, "%s", err.text);
		add(writer, (const float[]){1, 2}, 8);
		finish(writer);
		expect_bytes(&folder, "t", pair_bytes, sizeof(pair_bytes) - 1);
	}
	cr_assert_eq(chdir("/"), 0);
}

/* More than one system call takes. */
FOLDER_TEST(tensor_file, beyond_2_gib_is_written, scratch_folder_make())
{
	const uint64_t n_bytes = (UINT64_C(2) << 30) + 5;
	const struct psd_file_tensor tensor = {.name = "w", .type = PSD_TENSOR_U8, .n_dims = 1, .dims = {n_bytes}};
	struct psd_tensor_writer *writer;
	struct psd_tensor_file *file;
	uint8_t *values, last;

	if (!getenv("PSD_FULL_TESTS"))
		cr_skip_test("2 GiB of disk: PSD_FULL_TESTS=1 runs it");
	values = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert_neq(values, MAP_FAILED);
	values[n_bytes - 1] = 7;
	writer = open_writer(&folder, "t", &tensor, 1, NULL, 0);
	add(writer, values, n_bytes);
	finish(writer);
	munmap(values, n_bytes);
	file = open_file(&folder, "t");
	read_values(file, "w", n_bytes - 1, 1, &last);
	cr_expect_eq(last, 7);
	psd_tensor_file_close(file);
}
