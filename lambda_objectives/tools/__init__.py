"""Tools around the objectives: data sets to try them on, planning, plots and reports."""
