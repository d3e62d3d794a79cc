// Counts the nodes.
