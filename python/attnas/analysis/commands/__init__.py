"""A module a command: its docstring is its help, main(arguments) reads its command line and returns
its exit code.
"""
