"""What is allowed: the strict reader, the trusted formats, their loader, and the order of authority.

Everything here takes bytes and returns values; only ``prespawn`` opens files.
"""
