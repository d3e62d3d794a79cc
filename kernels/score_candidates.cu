// Scores every candidate of a batch on the resident nodes.
