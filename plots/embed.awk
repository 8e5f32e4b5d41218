# An SVG of gnuplot as an element of a page: without its XML declaration and name spaces, which HTML does not need, and
# without gnuplot's names of curves, which a browser would show; PSD_PLOT_PREFIX stands before its identifiers, so that
# several of them have their own. Text stays as it is. PSD_PLOT_LABEL, escaped already, says what it shows.

BEGIN { prefix = ENVIRON["PSD_PLOT_PREFIX"] }

/^<\?xml / || /^<title>Gnuplot/ || /^<desc>/ || /^[ \t]*$/ { next }

!/^[ \t]*<text>/ {
	sub(/<title>.*<\/title>/, "")
	gsub(/ *xmlns(:xlink)?="[^"]*"/, "")
	gsub(/ id=["']|xlink:href=["']#|url\(#/, "&" prefix)
	sub(/^<svg/, "<svg role=\"img\" aria-label=\"" ENVIRON["PSD_PLOT_LABEL"] "\"")
}

{ print }
