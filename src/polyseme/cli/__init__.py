"""The command line `polyseme`. Only this package prints and reads arguments."""
