"""Files for other programs: tables, test reports, trajectories, spans, and a directory to publish.

Same results, same bytes: cells come by sweep and by their place in it, and nothing that is written names the
time or the machine of the export. Whatever is written of a cell carries its claim and methodology version.
"""
