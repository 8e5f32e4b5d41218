/* YAML as a tree with line and column: its values, the refused files, and the text of each error. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/document/document.h"
#include "tests/test_with.h"

static struct psd_document *parse(const char *text)
{
	struct psd_document *document = NULL;
	struct psd_error err;

	cr_assert_eq(psd_document_parse(&document, "a.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	return document;
}

static void assert_refused(const char *text, size_t length, const char *message)
{
	struct psd_document *document = NULL;
	struct psd_error err = {0};

	cr_assert_eq(psd_document_parse(&document, "a.yaml", text, length, &err), PSD_EINVAL);
	cr_assert_eq(err.status, PSD_EINVAL);
	cr_assert_str_eq(err.text, message);
	cr_assert_null(document);
}

static void refuses(const char *text, const char *message)
{
	assert_refused(text, strlen(text), message);
}

Test(document, nodes_know_their_keys_texts_and_places)
{
	struct psd_document *document = parse("a: 1\nlist:\n  - {x: hello, y: ''}\n  - two\n");
	const struct psd_node *root = psd_document_root(document);
	const struct psd_node *list = psd_node_child(root, "list");
	const struct psd_node *x = psd_node_child(list->first, "x");

	cr_assert_eq(root->n_children, 2);
	cr_assert_str_eq(root->first->text, "1");
	cr_assert_eq(list->kind, PSD_NODE_SEQUENCE);
	cr_assert_eq(list->key_at.line, 2);
	cr_assert_str_eq(x->text, "hello");
	cr_assert_eq(x->at.line, 3);
	cr_assert_eq(x->at.column, 9); /* after "  - {x: " */
	cr_assert_eq(x->key_at.column, 6);
	cr_assert_str_eq(x->next->text, "");
	cr_assert_str_eq(list->first->next->text, "two");
	cr_assert_null(list->first->next->key);
	cr_assert_null(psd_node_child(root, "b"));
	cr_assert_null(psd_node_child(list, "x"));
	cr_assert_null(psd_node_child(NULL, "x"));
	psd_document_free(document);
}

Test(document, decorations_that_hide_content_are_refused)
{
	refuses("a: &x 1\nb: 2\n", "a.yaml:1:4: anchors ('&x') are not accepted");
	refuses("b: *x\n", "a.yaml:1:4: aliases ('*x') are not accepted");
	refuses("a: !!int 1\n", "a.yaml:1:4: tags ('tag:yaml.org,2002:int') are not accepted");
	refuses("%TAG ! x\n---\na: 1\n", "a.yaml:1:1: directives (lines that begin with '%') are not accepted");
	refuses("a: 1\n%YAML 1.1\n", "a.yaml:2:1: directives (lines that begin with '%') are not accepted");
	refuses("? [a]\n: 1\n", "a.yaml:1:3: a key must be plain text, not a list or mapping");
	refuses("a: 1\n---\nb: 1\n", "a.yaml:2:1: a second document begins here, a file must have one");
}

TEST_ROW(document, a_second_key_names_the_first_ones_line,
	 refuses("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", "a.yaml:5:3: key 'c' is already in line 3"))

Test(document, text_that_is_no_utf8_is_refused_where_it_is)
{
	refuses("a: 1\nb: \xff\n", "a.yaml:2:4: not UTF-8 text: invalid leading UTF-8 octet");
	refuses("a: \"x\\0y\"\n", "a.yaml:1:4: text contains a zero byte");
}

TEST_ROW(document, a_percent_sign_inside_a_line_is_text, psd_document_free(parse("ratio: 15%\n# %\n  # 100 %\n")))
TEST_ROW(document, columns_count_characters,
	 refuses("{\xc3\xa4: 1, \xc3\xa4: 2}", "a.yaml:1:8: key '\xc3\xa4' is already in line 1"))

Test(document, broken_yaml_and_empty_files_are_refused)
{
	refuses("a: [1, 2\n", "a.yaml:2:1: not valid YAML: did not find expected ',' or ']'");
	refuses("", "a.yaml: the file is empty");
	refuses("# nothing\n", "a.yaml: the file is empty");
}

Test(document, nesting_of_32_is_accepted_and_33_is_not)
{
	char text[2 * 33 + 1] = {0};

	memset(text, '[', 33);
	memset(text + 33, ']', 33);
	refuses(text, "a.yaml:1:33: the value is nested deeper than 32 levels");
	text[65] = '\0'; /* one bracket less at either end */
	psd_document_free(parse(text + 1));
}

Test(document, a_file_over_16_mib_is_refused)
{
	const size_t length = (size_t)16 * 1024 * 1024 + 1;
	char *text = malloc(length);

	memset(text, ' ', length);
	assert_refused(text, length, "a.yaml: is longer than 16 MiB, too long for an input file");
	free(text);
}

Test(document, a_missing_file_says_so)
{
	struct psd_document *document = NULL;
	struct psd_error err;

	cr_assert_eq(psd_document_load(&document, "tests/data/none.yaml", &err), PSD_EFILE);
	cr_assert_str_eq(err.text, "tests/data/none.yaml: cannot be opened: No such file or directory");
	cr_assert_eq(psd_document_load(&document, "tests/data", &err), PSD_EFILE);
	cr_assert_str_eq(err.text, "tests/data: cannot be read: Is a directory");
}

Test(document, an_unknown_key_suggests_the_nearest)
{
	static const char *const known[] = {"bandwidth", "latency", NULL};
	struct psd_document *document = parse("network:\n  bandwith: 40Gbps\n");
	const struct psd_node *network = psd_node_child(psd_document_root(document), "network");
	struct psd_error err;

	cr_assert_eq(psd_node_check_keys(network, "network", known, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:2:3: unknown key 'bandwith' in 'network', did you mean 'bandwidth'?");
	psd_document_free(document);
}

Test(document, an_unknown_key_far_from_all_lists_them)
{
	static const char *const known[] = {"bandwidth", "latency", NULL};
	struct psd_document *document = parse("{colour: red}");
	struct psd_error err;

	cr_assert_eq(psd_node_check_keys(psd_document_root(document), "network", known, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:2: unknown key 'colour' in 'network', known are bandwidth, latency");
	psd_document_free(document);
}

Test(document, keys_are_asked_of_mappings_only)
{
	static const char *const known[] = {"a", NULL};
	struct psd_document *document = parse("a: [1]\n");
	struct psd_error err;

	cr_assert_eq(psd_node_check_keys(psd_document_root(document), "top", known, &err), PSD_OK);
	cr_assert_eq(psd_node_check_keys(psd_document_root(document)->first, "a", known, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'a' is a list, must be a mapping of keys: a");
	psd_document_free(document);
}

/* One document with a value of each type, read by the case below. */
static const char typed[] = "rate: 40Gbps\nsize: 2MB\ntime: 30us\nratio: 15%\ncount: 12\nnumber: -1.5\n"
			    "flag: true\nchoice: ring\ntext: hello\n";

Test(document, typed_readers_read)
{
	static const char *const names[] = {"ps", "ring", NULL};
	struct psd_document *document = parse(typed);
	const struct psd_node *root = psd_document_root(document);
	double rate, sec, ratio, number;
	uint64_t bytes, count;
	unsigned index;
	bool flag;
	const char *text;

	cr_assert_eq(psd_node_rate(psd_node_child(root, "rate"), &rate, NULL), PSD_OK);
	cr_assert_eq(psd_node_bytes(psd_node_child(root, "size"), &bytes, NULL), PSD_OK);
	cr_assert_eq(psd_node_seconds(psd_node_child(root, "time"), 0, &sec, NULL), PSD_OK);
	cr_assert_eq(psd_node_ratio(psd_node_child(root, "ratio"), 0.0, 1.0, &ratio, NULL), PSD_OK);
	cr_assert_eq(psd_node_count(psd_node_child(root, "count"), 1, 12, &count, NULL), PSD_OK);
	cr_assert_eq(psd_node_number(psd_node_child(root, "number"), -2.0, 0.0, &number, NULL), PSD_OK);
	cr_assert_eq(psd_node_bool(psd_node_child(root, "flag"), &flag, NULL), PSD_OK);
	cr_assert_eq(psd_node_choice(psd_node_child(root, "choice"), names, &index, NULL), PSD_OK);
	cr_assert_eq(psd_node_text(psd_node_child(root, "text"), &text, NULL), PSD_OK);
	cr_assert_eq(rate, 40e9);
	cr_assert_eq(bytes, 2000000);
	cr_assert_eq(sec, 30e-6);
	cr_assert_eq(ratio, 0.15);
	cr_assert_eq(count, 12);
	cr_assert_eq(number, -1.5);
	cr_assert(flag);
	cr_assert_eq(index, 1);
	cr_assert_str_eq(text, "hello");
	psd_document_free(document);
}

Test(document, typed_readers_say_what_is_accepted)
{
	static const char *const names[] = {"ps", "ring", NULL};
	struct psd_document *document = parse("v: 40\nlist: [1]\nempty:\nzero: 0bps\n");
	const struct psd_node *v = psd_node_child(psd_document_root(document), "v");
	const struct psd_node *list = psd_node_child(psd_document_root(document), "list");
	const struct psd_node *empty = psd_node_child(psd_document_root(document), "empty");
	double real = 17.0;
	uint64_t count = 17;
	unsigned index = 17;
	bool flag;
	const char *text;
	struct psd_error err;

	cr_assert_eq(psd_node_rate(v, &real, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be a rate such as 40Gbps or 2.3GBps");
	cr_assert_eq(psd_node_rate(psd_node_child(psd_document_root(document), "zero"), &real, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text,
			 "a.yaml:4:7: 'zero' is '0bps', must be a rate such as 40Gbps or 2.3GBps, more than 0");
	cr_assert_eq(psd_node_bytes(v, &count, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be a size such as 256KiB or 2MB");
	cr_assert_eq(psd_node_seconds(v, 0, &real, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be a time such as 30us or 1.5ms");
	cr_assert_eq(psd_node_ratio(v, 0.0, 1.0, &real, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be a ratio such as 0.15 or 15% from 0 to 1");
	cr_assert_eq(psd_node_count(v, 1, 39, &count, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be a whole number from 1 to 39");
	cr_assert_eq(psd_node_number(v, 41, 50, &real, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be a number from 41 to 50");
	cr_assert_eq(psd_node_bool(v, &flag, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be true or false");
	cr_assert_eq(psd_node_choice(v, names, &index, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:4: 'v' is '40', must be one of: ps, ring");
	cr_assert_eq(psd_node_count(list, 1, 2, &count, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:2:7: 'list' is a list, must be a whole number from 1 to 2");
	cr_assert_eq(psd_node_text(empty, &text, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:3:7: 'empty' is empty, must be a text");
	cr_assert_eq(real, 17.0);
	cr_assert_eq(count, 17);
	cr_assert_eq(index, 17);
	psd_document_free(document);
}

Test(document, messages_are_one_clean_line)
{
	struct psd_error err;

	cr_assert_eq(psd_error_set(&err, PSD_ERUN, PSD_NOWHERE, "a\nb\x1b[2J"), PSD_ERUN);
	cr_assert_str_eq(err.text, "a?b?[2J");
	cr_assert_eq(psd_error_set(&err, PSD_EINVAL, (struct psd_place){.path = "p", .line = 3}, "%02000d", 7),
		     PSD_EINVAL);
	cr_assert_eq(strlen(err.text), sizeof(err.text) - 1);
	cr_assert_eq(strncmp(err.text, "p:3: 000", 8), 0);
	cr_assert_eq(psd_error_set(NULL, PSD_EFILE, PSD_NOWHERE, "x"), PSD_EFILE);
}

Test(document, a_quantity_below_its_bound_is_told_the_bound)
{
	struct psd_document *document = parse("none: 0\nless: -1ms\nempty: 0B\n");
	const struct psd_node *none = psd_node_child(psd_document_root(document), "none");
	const struct psd_node *less = psd_node_child(psd_document_root(document), "less");
	const struct psd_node *empty = psd_node_child(psd_document_root(document), "empty");
	uint64_t bytes;
	double real;
	struct psd_error err;

	cr_assert_eq(psd_node_bytes(none, &bytes, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:1:7: 'none' is '0', must be a size such as 256KiB or 2MB, more than 0");
	cr_assert_eq(psd_node_bytes(empty, &bytes, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:3:8: 'empty' is '0B', must be a size such as 256KiB or 2MB, more than 0");
	cr_assert_eq(psd_node_seconds(less, 0, &real, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "a.yaml:2:7: 'less' is '-1ms', must be a time such as 30us or 1.5ms, 0s or more");
	psd_document_free(document);
}
