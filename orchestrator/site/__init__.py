"""The static site of results: pages from templates, data files, assets. Nothing here needs a server."""
