"""What decides: declaration, policy and facts go in, a verdict comes out. No I/O, no clock, no environment."""
