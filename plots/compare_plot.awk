# Writes input of compare.gp to the folder PSD_PLOT_WORK: settings.gp and, for each system N and state, STATE-N.dat with
# the columns measured seconds, their least and most, predicted seconds, error in per cent, its least and most.

function state_of(p)
{
	return is_calibrated[p] ? "calibrated" : is_in_worst[p] ? "counted" : "noisy"
}

# Each axis extends a little beyond the data. Its tics are round numbers; a short axis has more of them.
function second_tics(low, high,    tics, decade, mantissa, mantissas, i, n)
{
	n = split(high / low < 8 ? "1 1.5 2 3 4 5 6 8" : high / low < 200 ? "1 2 5" : "1", mantissas, " ")
	for (decade = int(log(low) / log(10)) - 1; 10 ^ decade <= high; decade++)
		for (i = 1; i <= n; i++) {
			mantissa = mantissas[i] * 10 ^ decade
			if (mantissa >= low && mantissa <= high)
				tics = tics (tics == "" ? "" : ", ") sprintf("'%g' %.9g", mantissa, mantissa)
		}
	return tics
}

function add_to_plot(p,    state, s)
{
	widen("bps", point_bps[p])
	if (!(point_system[p] in system_number)) {
		system_number[point_system[p]] = ++n_systems
		widen("name", width_of(point_system[p]))
		printf "name[%d] = %s\n", n_systems, quoted(printable(point_system[p])) > series_file
		list["systems"] = list["systems"] " " n_systems
	}
	s = system_number[point_system[p]]
	state = state_of(p)
	has_state[state] = 1
	printf "%.9g %.9g %.9g %.9g %.6f %.6f %.6f\n", measured_figure[ITERATION, p], least_sec[p], most_sec[p],
		point_figure[ITERATION, p], 100 * point_error[p], 100 * (1 / most_ratio[p] - 1),
		100 * (1 / least_ratio[p] - 1) > (work "/" state "-" s ".dat")
	if (!((state, s) in is_listed)) {
		is_listed[state, s] = 1
		list[state] = list[state] " " s
		list["drawn"] = list["drawn"] " " state "-" s
	}
	widen("sec", least_sec[p])
	widen("sec", most_sec[p])
	widen("sec", point_figure[ITERATION, p])
	widen("error", absolute(point_error[p]))
	if (state == "noisy")
		return # its whiskers would leave no room for the others
	widen("error", absolute(1 / most_ratio[p] - 1))
	widen("error", absolute(1 / least_ratio[p] - 1))
}

END {
	if (has_failed)
		exit 2
	series_file = work "/series.gp"
	settings = work "/settings.gp"
	widen("name", length("predicted = measured"))
	widen("error", 1.6 * bar_ratio)
	printf "array name[%d]\n", n_measured > series_file
	for (i = 1; i <= n_measured; i++)
		add_to_plot(measured_point[i])
	sec_low = least["sec"] / 1.25
	sec_high = most["sec"] * 1.25
	page_title = printable(ENVIRON["PSD_PLOT_TITLE"])
	if (page_title == "")
		page_title = n_titles == 1 ? title_at(printable(shown_title[1])) : "Predicted against measured"
	printf "plot_title = %s\nn_systems = %d\n", quoted(page_title), n_systems > settings
	printf "longest_name = %d\n", most["name"] > settings
	printf "systems = '%s'\ndrawn = '%s'\n", list["systems"], list["drawn"] > settings
	printf "counted = '%s'\ncalibrated = '%s'\n", list["counted"], list["calibrated"] > settings
	printf "noisy = '%s'\n", list["noisy"] > settings
	printf "sec_low = %.9g\nsec_high = %.9g\n", sec_low, sec_high > settings
	printf "sec_tics = \"%s\"\n", second_tics(sec_low, sec_high) > settings
	printf "bar_ratio = %.9g\nerror_high = %.9g\n", bar_ratio, 112 * most["error"] > settings
}
