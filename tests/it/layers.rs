//! Which module may name which. The table is the architecture; this test keeps it true.
