"""Reading, comparing and drawing searches.

Conventions of the whole package: every objective and every score is minimised; a set of points is
an (n, m) array with one point per row; hypervolumes are over whatever scale the caller chose.
"""
