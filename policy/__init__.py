"""What is allowed: the strict reader, the trusted formats, their loader, and the order of authority.

Everything here takes bytes and returns values; only ``prespawn`` opens files.
"""

own_process = False
"""Whether no other code than this program's runs here: set by the installed command, by nobody else."""
