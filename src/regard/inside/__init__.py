"""One question about one loaded run, answered whole: what the service and other front doors ask of looking inside."""
