"""Why a file cannot go in."""


class UnreadableFileError(Exception):
    """A file that is not what goes in; the text goes on from the file's name."""
