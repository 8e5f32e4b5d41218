/* Text on a terminal: lines that fit, notes that appear once, tables that leave out columns before they cut names. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/base/grid.h"
#include "engine/base/view.h"

static void use_terminal(int width)
{
	psd_view_set((struct psd_view){.is_terminal = true, .width = width});
}

static void expect_fitted(const char *text, const char *fitted)
{
	struct psd_text made = {.bytes = NULL};

	psd_text_add(&made, "%s", text);
	psd_view_fit(&made);
	cr_expect_str_eq(made.bytes ? made.bytes : "", fitted);
	psd_text_release(&made);
}

Test(view, a_text_elsewhere_than_on_a_terminal_stays_as_it_is)
{
	expect_fitted("note: a line that is longer than any terminal\nnote: twice\nnote: twice\n",
		      "note: a line that is longer than any terminal\nnote: twice\nnote: twice\n");
	cr_expect_eq(psd_view_width(120), 120);
}

Test(view, a_long_line_continues_with_an_indent)
{
	use_terminal(30);
	cr_expect_eq(psd_view_width(120), 30);
	cr_expect_eq(psd_view_width(20), 20);
	expect_fitted("model     one two three four five six\n", "model     one two three four\n          five six\n");
	expect_fitted("a sentence of thirty letters..\n", "a sentence of thirty letters..\n");
	expect_fitted("a sentence of thirty-one letters\n", "a sentence of thirty-one\n  letters\n");
	expect_fitted("busy for a part of time, of 55 %\n", "busy for a part of time, of\n  55 %\n");
	expect_fitted("no line's end", "no line's end\n");
}

/* 31 bytes, 16 characters: the width counts characters. */
Test(view, a_character_of_two_bytes_has_one_place)
{
	use_terminal(16);
	expect_fitted("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
		      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n",
		      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
		      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n");
}

Test(view, a_word_that_is_too_long_is_cut_into_lines)
{
	use_terminal(24);
	expect_fitted("abcdefghijklmnopqrstuvwxyzabcd\n", "abcdefghijklmnopqrstuvwx\n  yzabcd\n");
}

Test(view, a_note_appears_once_with_its_indented_lines)
{
	use_terminal(30);
	expect_fitted("note: the same\n      in two lines\nnote: the same\nnote: the same\n      in two lines\nend\n",
		      "note: the same\n      in two lines\nnote: the same\nend\n");
}

Test(view, notes_are_dim_where_styles_are_allowed)
{
	psd_view_set((struct psd_view){.is_terminal = true, .has_styles = true, .width = 30});
	expect_fitted("a line\nnote: dim\nagain\n", "a line\n\033[2mnote: dim\033[0m\nagain\n");
}

/* ---- tables ---- */

/* Columns of 6, 6, 6 and 4 characters with gaps of 2: 28 in all. */
static void expect_table(const char *expected, bool is_best)
{
	static const char *const heads[] = {"name", "first", "second", "last"};
	struct psd_grid grid = {.n_rows = 0};
	struct psd_text text = {.bytes = NULL};

	for (unsigned c = 0; c < 4; c++)
		psd_grid_add_column(&grid, "", heads[c], c == 0);
	grid.worth[1] = 2;
	grid.worth[2] = 1;
	psd_grid_add_row(&grid);
	psd_grid_set(&grid, 0, "%s", "system");
	psd_grid_set(&grid, 1, "%s", "100000");
	psd_grid_set(&grid, 2, "%s", "200000");
	psd_grid_set(&grid, 3, "%s", "3000");
	if (is_best)
		psd_grid_set_best(&grid);
	psd_grid_add(&text, &grid);
	cr_expect_str_eq(text.bytes, expected);
	psd_text_release(&text);
	psd_grid_release(&grid);
}

Test(view, a_table_that_fits_is_whole)
{
	use_terminal(28);
	expect_table("\n"
		     "name     first  second  last\n"
		     "----------------------------\n"
		     "system  100000  200000  3000\n",
		     true);
}

Test(view, a_table_leaves_out_the_column_of_least_worth_and_names_it)
{
	use_terminal(27);
	expect_table("\n"
		     "name     first  last\n"
		     "--------------------\n"
		     "system  100000  3000\n"
		     "note: left out, as the terminal is narrow (all: --wide): second\n",
		     false);
	use_terminal(19);
	expect_table("\n"
		     "name    last\n"
		     "------------\n"
		     "system  3000\n"
		     "note: left out, as the terminal is narrow (all: --wide): first, second\n",
		     false);
}

Test(view, a_table_cuts_names_when_no_column_is_left_to_go)
{
	use_terminal(11);
	expect_table("\n"
		     "name   last\n"
		     "-----------\n"
		     "sys..  3000\n"
		     "note: left out, as the terminal is narrow (all: --wide): first, second\n",
		     false);
}

Test(view, a_wide_table_is_whole_on_any_terminal)
{
	psd_view_set((struct psd_view){.is_terminal = true, .is_wide = true, .width = 11});
	expect_table("\n"
		     "name     first  second  last\n"
		     "----------------------------\n"
		     "system  100000  200000  3000\n",
		     true);
}

Test(view, the_best_row_is_bold_where_styles_are_allowed)
{
	psd_view_set((struct psd_view){.is_terminal = true, .has_styles = true, .width = 28});
	expect_table("\n"
		     "name     first  second  last\n"
		     "----------------------------\n"
		     "\033[1msystem  100000  200000  3000\033[0m\n",
		     true);
}
