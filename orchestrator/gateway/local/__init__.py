"""Local models: GGUF files that llama.cpp serves on this machine's processors, for the gateway alone.

`registry.py` knows which files there are, `gguf.py` reads what a file says of itself, `server.py` starts and
ends the process that serves one (`__main__.py`).
"""
