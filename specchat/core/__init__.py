"""The maths and the vocabulary: numpy only, no models, no screen, no files, no clock."""
