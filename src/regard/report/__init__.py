"""Pages and pictures for people: HTML and SVG written by hand, in files that need nothing else."""
