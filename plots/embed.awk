# An SVG of gnuplot as an element of a page: without its XML declaration and name spaces, which HTML does not need, and with PSD_PLOT_PREFIX before its
# identifiers, so that several of them have their own. PSD_PLOT_LABEL, escaped already, says what it shows.

BEGIN { prefix = ENVIRON["PSD_PLOT_PREFIX"] }

/^<\?xml / || /^<title>Gnuplot/ || /^<desc>/ { next }

{
	gsub(/ *xmlns(:xlink)?="[^"]*"/, "")
	gsub(/ id="/, "&" prefix)
	gsub(/ id='/, "&" prefix)
	gsub(/xlink:href='#/, "&" prefix)
	gsub(/xlink:href="#/, "&" prefix)
	gsub(/url\(#/, "&" prefix)
	sub(/^<svg/, "<svg role=\"img\" aria-label=\"" ENVIRON["PSD_PLOT_LABEL"] "\"")
	if ($0 !~ /^[ \t]*$/)
		print
}
