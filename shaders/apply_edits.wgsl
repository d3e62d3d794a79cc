// Replaces the rows of edited nodes.
