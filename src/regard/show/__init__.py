"""Pictures and pages: painters for the terminal, SVG and PNG."""
