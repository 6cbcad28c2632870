"""Pictures of traces: in a terminal, as SVG and PNG, in a notebook, and as one page."""
