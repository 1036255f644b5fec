"""What translates: an approved plan goes in, one runtime's invocation comes out.

No limit, list or decision lives here.
"""
