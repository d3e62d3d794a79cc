//! COMPASS: Place and Remove inside the Anchor-Based Space, then whatever moves restore the invariant.
//!
//! COMPASS-ABS (arXiv 2606.09200, §4) with one change: its printed Compact does not keep its theorem 1, so after every
//! event the invariant is restored that the theorem needs. The operators are those of the module `anchor`.

use crate::anchor::Variant;

pub(super) const VARIANT: Variant = Variant::Invariant;
