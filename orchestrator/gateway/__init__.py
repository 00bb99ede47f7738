"""The model gateway: its own process between a cell's CLI and an endpoint. `client.Gateway` starts and
steers it.
"""
