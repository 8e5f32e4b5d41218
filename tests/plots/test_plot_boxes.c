/* Texts of pictures, by the boxes that they have in an SVG: at the width of a column of a paper and at that of a slide
 * no text covers another one, none crosses the edge of a plot or of the picture, and none is smaller than 6 points. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/words.h"
#include "tests/plots/plot_helper.h"
#include "tests/scratch_folder.h"

enum { MOST_BOXES = 2048, MOST_LINES = 512, TEXT_ROOM = 256 };

/* Pixels from the left and from the top. */
struct box {
	double left, top, right, bottom;
	char text[TEXT_ROOM];
};

struct picture {
	double width, height;
	struct box texts[MOST_BOXES], plots[MOST_LINES];
	unsigned n_texts, n_plots;
	double least_font; /* pixels */
};

static const char grid[] = "class=\"gridline\"  d='";

/* ---- reading ---- */

static double attribute(const char *from, const char *end, const char *name, double otherwise)
{
	const char *found = memmem(from, (size_t)(end - from), name, strlen(name));

	return found ? strtod(found + strlen(name), NULL) : otherwise;
}

/* A group with one text: <g transform="translate(X,Y) rotate(270)" ... font-size="F" text-anchor="A"><text>T</text>. A
 * text reaches three quarters of its size above the line on which it stands, and a quarter below. */
static void read_text(struct picture *picture, const char *text, const char *begin)
{
	const char *group = text, *end = strstr(text, "</text>");
	struct box *box = &picture->texts[picture->n_texts];

	while (group > begin && strncmp(group, "<g transform=\"translate(", 24) != 0)
		group--;
	const double x = strtod(group + 24, NULL), y = strtod(strchr(group, ',') + 1, NULL);
	const double size = attribute(group, text, "font-size=\"", 0);
	const bool is_upright = memmem(group, (size_t)(text - group), "rotate(", 7);
	const char *anchor = memmem(group, (size_t)(text - group), "text-anchor=\"", 13);

	text += strlen("<text>");
	if (end == text)
		return;
	snprintf(box->text, sizeof(box->text), "%.*s", (int)(end - text), text);
	const double width = psd_words_width(box->text) * size;
	const double before = !anchor || anchor[13] == 's' ? 0 : anchor[13] == 'm' ? width / 2 : width;

	box->left = is_upright ? x - 0.75 * size : x - before;
	box->right = is_upright ? x + 0.25 * size : x - before + width;
	box->top = is_upright ? y - (width - before) : y - 0.75 * size;
	box->bottom = is_upright ? y + before : y + 0.25 * size;
	picture->least_font = fmin(picture->least_font, size);
	picture->n_texts++;
	cr_assert_lt(picture->n_texts, MOST_BOXES);
}

/* Plots are where grid lines cross: a level one gives the width of a plot, an upright one that it meets the height. */
static void add_plot(struct picture *picture, const char *svg, double left, double right, double y)
{
	double x1, y1, x2, y2;

	for (const char *at = svg; (at = strstr(at, grid)); at++) {
		cr_assert_eq(sscanf(at + strlen(grid), "M%lf,%lf L%lf,%lf", &x1, &y1, &x2, &y2), 4, "%.60s", at);
		if (x1 != x2 || x1 < left - 1 || x1 > right + 1 || y < fmin(y1, y2) - 1 || y > fmax(y1, y2) + 1)
			continue;
		picture->plots[picture->n_plots++] = (struct box){left, fmin(y1, y2), right, fmax(y1, y2), ""};
		cr_assert_lt(picture->n_plots, MOST_LINES);
		return;
	}
}

static void read_line(struct picture *picture, const char *svg, const char *path)
{
	double x1 = 0, y1 = 0, x2 = 0, y2 = 0;

	cr_assert_eq(sscanf(path, "M%lf,%lf L%lf,%lf", &x1, &y1, &x2, &y2), 4, "%.60s", path);
	if (y1 == y2)
		add_plot(picture, svg, fmin(x1, x2), fmax(x1, x2), y1);
}

static void read_picture(struct picture *picture, const char *svg)
{
	const char *size = strstr(svg, "viewBox=\"0 0 ");

	*picture = (struct picture){.least_font = INFINITY};
	cr_assert_not_null(size);
	cr_assert_eq(sscanf(size, "viewBox=\"0 0 %lf %lf", &picture->width, &picture->height), 2);
	for (const char *at = svg; (at = strstr(at, "<text>")); at++)
		read_text(picture, at, svg);
	for (const char *at = svg; (at = strstr(at, grid)); at++)
		read_line(picture, svg, at + strlen(grid));
}

/* ---- judging ---- */

static bool do_touch(const struct box *one, const struct box *other, double by)
{
	return one->left + by < other->right && other->left + by < one->right && one->top + by < other->bottom &&
	       other->top + by < one->bottom;
}

static bool is_inside(const struct box *inner, const struct box *outer)
{
	return inner->left >= outer->left - 1 && inner->right <= outer->right + 1 && inner->top >= outer->top - 1 &&
	       inner->bottom <= outer->bottom + 1;
}

/* Appends a line for each fault. may_be_inside: texts may lie in plots, as values behind bars do. */
static void find_faults(const struct picture *picture, bool may_be_inside, struct psd_text *faults)
{
	const struct box edge = {0, 0, picture->width, picture->height, ""};

	for (unsigned i = 0; i < picture->n_texts; i++) {
		const struct box *text = &picture->texts[i];

		if (!is_inside(text, &edge))
			psd_text_add(faults, "'%s' is beyond the edge\n", text->text);
		for (unsigned k = i + 1; k < picture->n_texts; k++)
			if (do_touch(text, &picture->texts[k], 0.5))
				psd_text_add(faults, "'%s' covers '%s'\n", text->text, picture->texts[k].text);
		for (unsigned p = 0; p < picture->n_plots; p++)
			if (do_touch(text, &picture->plots[p], 1) && !may_be_inside)
				psd_text_add(faults, "'%s' lies in a plot\n", text->text);
	}
	if (picture->least_font < 8)
		psd_text_add(faults, "the least font has %g pixels, which are %g points\n", picture->least_font,
			     picture->least_font * 0.75);
}

/* ---- pictures ---- */

static char *read_file(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file, "%s", path);
	cr_assert_gt(getdelim(&text, &size, '\0', file), 0, "%s", path);
	fclose(file);
	return text;
}

static void expect_no_faults(const struct scratch_folder *folder, const char *arguments, const char *size,
			     bool may_be_inside)
{
	struct psd_text faults = {.bytes = NULL};
	struct picture *picture = malloc(sizeof(*picture));
	char command[1024], path[256];

	snprintf(path, sizeof(path), "%s/out.svg", folder->path);
	snprintf(command, sizeof(command), "cd %s && $PSD_PLOT %s --size %s -o out.svg 2>&1 >/dev/null", folder->path,
		 arguments, size);
	struct run run = run_command(command);

	cr_expect_eq(run.exit_status, 0, "%s: %s", arguments, run.text);
	free(run.text);
	char *svg = read_file(path);

	read_picture(picture, svg);
	cr_expect_gt(picture->n_texts, 5, "%s", arguments);
	cr_expect(picture->n_plots > 0 || may_be_inside, "%s", arguments);
	find_faults(picture, may_be_inside, &faults);
	cr_expect_eq(faults.length, 0, "%s at %s:\n%s", arguments, size, faults.bytes);
	psd_text_release(&faults);
	free(svg);
	free(picture);
}

/* Results of systems with long names, more than a panel takes. */
static void write_many(const struct scratch_folder *folder)
{
	FILE *file = fopen(scratch_folder_path(folder, "many.csv").text, "w");

	cr_assert_not_null(file);
	fprintf(file, "scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,"
		      "published_images_per_sec,published_speedup,low,high\n");
	for (unsigned s = 0; s < 20; s++)
		for (unsigned workers = 1; workers <= 1024; workers *= 4)
			fprintf(file,
				"\"A title that is long enough for two lines on a column of a paper, as some are, 10 "
				"Gbit/s\",parameter servers in sequence %u,sim-flow,%u,%u,1e10,%g,%g,%g,%g,,%g,%g\n",
				s, workers, workers, 0.1 + s * 0.01, workers / (0.1 + s * 0.01),
				workers / (1 + 0.1 * s), workers / (0.12 + s * 0.01), workers / (0.15 + s * 0.01),
				workers / (0.08 + s * 0.01));
	fclose(file);
}

static void make_inputs(const struct scratch_folder *folder)
{
	char script[8192];

	write_many(folder);
	snprintf(script, sizeof(script),
		 "here=$PWD; sim=%s; cd %s && for f in $here/tests/data/compare/*; do cp $f .; done; cp "
		 "$here/tests/golden/poseidon-atc17/vgg19-22k-40gbe.csv vgg.csv; $sim --estimate --csv "
		 "$here/scenarios/fusion.yaml >fusion.csv; $sim --estimate --csv $here/scenarios/quickstart.yaml --set "
		 "'sweep.nodes=[1, 2, 4, 8, 16]' --set 'sweep.bandwidth=[1Gbps, 10Gbps, 40Gbps]' >sweep.csv; for n in "
		 "1 2 4; do $sim --quiet --trace $n.json --set sweep.nodes=$n $here/scenarios/quickstart.yaml "
		 ">/dev/null; done; awk 'BEGIN { print \"system,epoch,test_accuracy_ratio\"; for (s = 0; s < 5; s++) "
		 "for (i = 0; i < 9; i++) print \"System \" s \",\" i \",\" i / 10 }' >log.csv",
		 path_of("psd-sim").text, folder->path);
	cr_assert_eq(system(script), 0);
}

static const struct {
	const char *arguments;
	bool may_be_inside; /* texts */
} pictures[] = {
	{"speedup vgg.csv", false},
	{"speedup vgg.csv --linear", false},
	{"speedup many.csv", false},
	{"speedup 1.json 2.json 4.json", false},
	{"efficiency sweep.csv", false},
	{"throughput sweep.csv --over bandwidth_bps", false},
	{"throughput many.csv", false},
	{"seconds fusion.csv --over fuse_bytes --panels workers", false},
	{"seconds sweep.csv --relative PS", false},
	{"seconds fusion.csv --over fuse_bytes --relative best", false},
	{"bars vgg.csv", true},
	{"bars many.csv --where workers=16", true},
	{"curve fusion.csv", false},
	{"curve log.csv", false},
	{"timeline 4.json", true},
	{"timeline measured.json --iteration 2", true},
	{"compare predicted.csv measured-1.csv measured-2.csv measured-3.csv --calibrated calibrated.csv", false},
};

Test(plot_boxes, no_text_covers_another_one_at_any_size, .timeout = 180)
{
	static const char *const sizes[] = {"85mm", "1440px", "60mm"};
	const struct scratch_folder folder = scratch_folder_make();

	make_inputs(&folder);
	for (size_t i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			expect_no_faults(&folder, pictures[i].arguments, sizes[s], pictures[i].may_be_inside);
	scratch_folder_remove(&folder);
}

#define TEXT_AT(x, y, size, text)                                                                                      \
	"<g transform=\"translate(" x "," y ")\" font-size=\"" size "\" text-anchor=\"middle\">\n<text>" text "</"     \
	"text>"
#define LINE(from, to) "<path class=\"gridline\"  d='M" from " L" to "'/>"

/* Four of five texts have a fault each, and one font is small: HHHH is 3 ems wide, so 60 pixels. */
Test(plot_boxes, faults_are_found)
{
	struct psd_text faults = {.bytes = NULL};
	struct picture *picture = malloc(sizeof(*picture));

	read_picture(picture, "<svg viewBox=\"0 0 400 300\">" LINE("100,200", "100,100") LINE("100,150", "200,150")
				      TEXT_AT("290", "250", "20", "HHHH") TEXT_AT("330", "252", "20", "HHHH")
					      TEXT_AT("150", "150", "7", "in") TEXT_AT("390", "20", "20", "HHHH")
						      TEXT_AT("290", "100", "20", "HHHH"));
	find_faults(picture, false, &faults);
	cr_expect_str_eq(faults.bytes, "'HHHH' covers 'HHHH'\n'in' lies in a plot\n'HHHH' is beyond the edge\n"
				       "the least font has 7 pixels, which are 5.25 points\n");
	psd_text_release(&faults);
	free(picture);
}
