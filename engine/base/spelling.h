/* Names as people write them: case and separators (blank, - _ . /) do not matter where the names stay apart. A wrong
 * name gets the nearest right one. Pure, any thread. */
#ifndef PSD_SPELLING_H
#define PSD_SPELLING_H

#include <stdbool.h>

/* Tells whether two names are equal without case and separators. */
bool psd_spelling_is_same(const char *one, const char *other);
/* Sets *index to the index of the name that `text` spells: the equal one, else the only one that is equal without case
 * and separators. names: NULL-terminated. Returns false, with *index unchanged, if there is none. */
bool psd_spelling_find(const char *text, const char *const names[], unsigned *index);
/* Returns the nearest name. If `text` is another program's word, it is the name of the same thing ("allreduce": ring).
 * Otherwise it is the only name that begins with `text`, of three characters or more ("async": asynchronous). Otherwise
 * it is the name that the fewest edits make of `text`: at most two edits or a third of the name's length, and never
 * more than half of it. If there is none, it is the longest name of three characters or more that `text` contains.
 * NULL: no name is near. */
const char *psd_spelling_nearest(const char *text, const char *const names[]);
/* True if the list, NULL-terminated, has the text itself. */
bool psd_spelling_is_one_of(const char *text, const char *const list[]);

#endif
