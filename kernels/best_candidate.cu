// The best candidate of every job: the least rank key, the first of equals.
