/* A recursive descent over tokens. Knows no schema: the reader of the tree decides about types and repeated fields. */
#include "engine/document/text_format.h"

#include <ctype.h>
#include <string.h>

#include "engine/base/file.h"

#define DEPTH_MAX  32
#define FIELDS_MAX (1u << 20)

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_SIGN };

/* A name, number, string or one punctuation character. */
struct token {
	enum token_kind kind;
	const char *text; /* a decoded and terminated string in the arena; otherwise a part of the file */
	size_t length;
	struct psd_place at;
};

struct parser {
	struct psd_arena *arena;
	const char *at;
	const char *end;
	struct psd_place place; /* line and column at *at */
	struct token token;	/* the next one, not consumed yet */
	unsigned depth;
	unsigned n_fields;
	struct psd_error *err;
};

static enum psd_status out_of_memory(const struct parser *parser)
{
	return psd_error_set(parser->err, PSD_ENOMEM, (struct psd_place){.path = parser->place.path}, "out of memory");
}

/* ---- tokens ---- */

static void step(struct parser *parser)
{
	const unsigned char byte = (unsigned char)*parser->at++;

	if (byte == '\n') {
		parser->place.line++;
		parser->place.column = 1;
	} else if ((byte & 0xc0) != 0x80) { /* columns count characters, not bytes */
		parser->place.column++;
	}
}

static void skip_blanks(struct parser *parser)
{
	while (parser->at < parser->end && (isspace((unsigned char)*parser->at) || *parser->at == '#')) {
		if (*parser->at == '#')
			while (parser->at < parser->end && *parser->at != '\n')
				step(parser);
		else
			step(parser);
	}
}

static bool is_word_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '.' || byte == '+' || byte == '-';
}

static char unescape(char escaped)
{
	static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
	const char *found = escaped ? strchr(from, escaped) : NULL;

	return found ? to[found - from] : escaped; /* quotes and the backslash mean themselves */
}

/* Reads the string whose opening quote is at parser->at. */
static enum psd_status read_string(struct parser *parser)
{
	const char quote = *parser->at;
	const char *stop = parser->at + 1;
	size_t length = 0;

	while (stop < parser->end && *stop != quote && *stop != '\n')
		stop += *stop == '\\' && stop + 1 < parser->end ? 2 : 1;
	if (stop >= parser->end || *stop != quote)
		return psd_error_set(parser->err, PSD_EINVAL, parser->place, "this string has no end on its line");
	char *text = psd_arena_take(parser->arena, (size_t)(stop - parser->at));
	if (!text)
		return out_of_memory(parser);
	step(parser);
	while (parser->at < stop) {
		const bool is_escape = *parser->at == '\\';

		if (is_escape)
			step(parser);
		if (is_escape && isdigit((unsigned char)*parser->at))
			return psd_error_set(parser->err, PSD_EINVAL, parser->place,
					     "numeric escapes are not accepted");
		text[length++] = is_escape ? unescape(*parser->at) : *parser->at;
		step(parser);
	}
	step(parser);
	parser->token.text = text;
	parser->token.length = length;
	return PSD_OK;
}

static enum psd_status next_token(struct parser *parser)
{
	struct token *token = &parser->token;

	skip_blanks(parser);
	*token = (struct token){.text = parser->at, .at = parser->place};
	if (parser->at == parser->end)
		return PSD_OK;
	if (!*parser->at)
		return psd_error_set(parser->err, PSD_EINVAL, parser->place, "the file contains a zero byte");
	if (*parser->at == '"' || *parser->at == '\'') {
		token->kind = TOKEN_STRING;
		return read_string(parser);
	}
	token->kind = is_word_byte(*parser->at) ? TOKEN_WORD : TOKEN_SIGN;
	do
		step(parser);
	while (token->kind == TOKEN_WORD && parser->at < parser->end && is_word_byte(*parser->at));
	token->length = (size_t)(parser->at - token->text);
	return PSD_OK;
}

static bool is_sign(const struct parser *parser, char sign)
{
	return parser->token.kind == TOKEN_SIGN && *parser->token.text == sign;
}

static enum psd_status skip_sign(struct parser *parser, char sign, bool *was_there)
{
	*was_there = is_sign(parser, sign);
	return *was_there ? next_token(parser) : PSD_OK;
}

static enum psd_status unexpected(const struct parser *parser, const char *accepted)
{
	const int length = parser->token.length > 80 ? 80 : (int)parser->token.length;

	if (parser->token.kind == TOKEN_END)
		return psd_error_set(parser->err, PSD_EINVAL, parser->token.at, "the file ends, must continue with %s",
				     accepted);
	return psd_error_set(parser->err, PSD_EINVAL, parser->token.at, "found '%.*s', must be %s", length,
			     parser->token.text, accepted);
}

/* ---- fields ---- */

/* The message being filled and its newest field. */
struct message {
	struct psd_node *node;
	struct psd_node *last;
};

static enum psd_status parse_fields(struct parser *parser, struct psd_node *node, char closing);

static enum psd_status add_field(struct parser *parser, struct message *message, const char *key,
				 struct psd_place key_at, struct psd_node **added)
{
	struct psd_node *node;

	if (++parser->n_fields > FIELDS_MAX)
		return psd_error_set(parser->err, PSD_EINVAL, key_at, "the file has more than %u fields", FIELDS_MAX);
	node = psd_arena_take(parser->arena, sizeof(*node));
	if (!node)
		return out_of_memory(parser);
	*node = (struct psd_node){.at = parser->token.at, .key = key, .key_at = key_at};
	psd_node_hang(message->node, &message->last, node);
	*added = node;
	return PSD_OK;
}

static bool is_word(const struct token *token, const char *word)
{
	return token->length == strlen(word) && !memcmp(token->text, word, token->length);
}

/* Copies a word into the arena. Protocol buffers also write numbers as ".5", "5." and "5f", which become "0.5", "5.0"
 * and "5", and flags as "True" and "False", which become lower case. */
static const char *copy_word(const struct parser *parser)
{
	const char *word = parser->token.text;
	const size_t length = parser->token.length;
	const bool is_number = isdigit((unsigned char)*word) || strchr("+-.", *word);
	char *copy = psd_arena_take(parser->arena, 3 * length + 1);
	size_t n = 0;

	for (size_t i = 0; copy && i < length; i++) {
		const bool is_dot = is_number && word[i] == '.', is_last = i + 1 == length;

		if (is_dot && (i == 0 || !isdigit((unsigned char)word[i - 1])))
			copy[n++] = '0';
		if (!is_number || !is_last || i == 0 || (word[i] != 'f' && word[i] != 'F'))
			copy[n++] = word[i];
		if (is_dot && (is_last || !isdigit((unsigned char)word[i + 1])))
			copy[n++] = '0';
	}
	if (copy && (is_word(&parser->token, "True") || is_word(&parser->token, "False")))
		*copy = (char)tolower((unsigned char)*copy);
	return copy;
}

static enum psd_status parse_scalar(struct parser *parser, struct psd_node *node)
{
	const bool is_string = parser->token.kind == TOKEN_STRING;

	if (!is_string && parser->token.kind != TOKEN_WORD)
		return unexpected(parser, "a value");
	node->kind = PSD_NODE_SCALAR;
	node->text = is_string ? parser->token.text : copy_word(parser);
	if (!node->text)
		return out_of_memory(parser);
	PSD_TRY(next_token(parser));
	if (is_string && parser->token.kind == TOKEN_STRING)
		return psd_error_set(parser->err, PSD_EINVAL, parser->token.at,
				     "a string in pieces is not accepted, write it in one");
	return PSD_OK;
}

static enum psd_status parse_value(struct parser *parser, struct psd_node *node)
{
	const char closing = is_sign(parser, '<') ? '>' : '}';

	if (!is_sign(parser, '{') && !is_sign(parser, '<'))
		return parse_scalar(parser, node);
	if (parser->depth == DEPTH_MAX)
		return psd_error_set(parser->err, PSD_EINVAL, parser->token.at,
				     "the value is nested deeper than %d levels", DEPTH_MAX);
	node->kind = PSD_NODE_MAPPING;
	PSD_TRY(next_token(parser));
	parser->depth++;
	const enum psd_status status = parse_fields(parser, node, closing);
	parser->depth--;
	return status ? status : next_token(parser);
}

/* "[1, 2]" means two fields of that name. The opening bracket is consumed. */
static enum psd_status parse_list(struct parser *parser, struct message *message, const char *key,
				  struct psd_place key_at)
{
	bool goes_on = !is_sign(parser, ']');

	while (goes_on) {
		struct psd_node *node = NULL;

		PSD_TRY(add_field(parser, message, key, key_at, &node));
		PSD_TRY(parse_value(parser, node));
		PSD_TRY(skip_sign(parser, ',', &goes_on));
	}
	if (!is_sign(parser, ']'))
		return unexpected(parser, "',' or ']'");
	return next_token(parser);
}

static enum psd_status parse_field(struct parser *parser, struct message *message)
{
	const struct psd_place key_at = parser->token.at;
	struct psd_node *node = NULL;
	bool has_colon, is_list = false;

	if (parser->token.kind != TOKEN_WORD)
		return unexpected(parser, "the name of a field");
	const char *key = psd_arena_copy(parser->arena, parser->token.text, parser->token.length);
	if (!key)
		return out_of_memory(parser);
	PSD_TRY(next_token(parser));
	PSD_TRY(skip_sign(parser, ':', &has_colon));
	if (has_colon)
		PSD_TRY(skip_sign(parser, '[', &is_list));
	if (is_list)
		return parse_list(parser, message, key, key_at);
	if (!has_colon && !is_sign(parser, '{') && !is_sign(parser, '<'))
		return unexpected(parser, "':' or '{'");
	PSD_TRY(add_field(parser, message, key, key_at, &node));
	return parse_value(parser, node);
}

/* Parses up to the closing sign, which is not consumed; closing 0: up to the end of the file. */
static enum psd_status parse_fields(struct parser *parser, struct psd_node *node, char closing)
{
	struct message message = {.node = node};

	while (closing ? !is_sign(parser, closing) : parser->token.kind != TOKEN_END) {
		enum psd_status status = parse_field(parser, &message);
		bool separator;

		if (!status)
			status = skip_sign(parser, ',', &separator);
		if (!status && !separator)
			status = skip_sign(parser, ';', &separator);
		if (status)
			return status;
	}
	return PSD_OK;
}

enum psd_status psd_text_format_parse(const struct psd_node **root, struct psd_arena *arena, const char *path,
				      const char *text, size_t length, struct psd_error *err)
{
	struct parser parser = {
		.arena = arena,
		.at = text,
		.end = text + length,
		.place = {.path = psd_arena_copy(arena, path, strlen(path)), .line = 1, .column = 1},
		.err = err,
	};
	struct psd_node *node = psd_arena_take(arena, sizeof(*node));

	if (!parser.place.path || !node)
		return psd_error_set(err, PSD_ENOMEM, (struct psd_place){.path = path}, "out of memory");
	if (length > PSD_FILE_BYTES_MAX)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "is longer than 16 MiB, too long for an input file");
	*node = (struct psd_node){.kind = PSD_NODE_MAPPING, .at = parser.place};
	PSD_TRY(next_token(&parser));
	PSD_TRY(parse_fields(&parser, node, 0));
	*root = node;
	return PSD_OK;
}
