# Turns an SVG of gnuplot into an element of an HTML page. Removes its XML declaration, name spaces, and gnuplot's curve
# names, which a browser would show. Puts PSD_PLOT_PREFIX before identifiers, so that those of several plots differ.
# PSD_PLOT_LABEL, already escaped, describes the plot.

BEGIN { prefix = ENVIRON["PSD_PLOT_PREFIX"] }

/^<\?xml / || /^<title>Gnuplot/ || /^<desc>/ || /^[ \t]*$/ { next }

!/^[ \t]*<text>/ {
	sub(/<title>.*<\/title>/, "")
	gsub(/ *xmlns(:xlink)?="[^"]*"/, "")
	gsub(/ id=["']|xlink:href=["']#|url\(#/, "&" prefix)
	sub(/^<svg/, "<svg role=\"img\" aria-label=\"" ENVIRON["PSD_PLOT_LABEL"] "\"")
}

{ print }
