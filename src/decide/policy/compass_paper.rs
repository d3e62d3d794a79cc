//! COMPASS as printed: algorithm 1 of COMPASS-ABS (arXiv 2606.09200, §4.3), pass by pass.
//!
//! Kept to compare with: it leaves up to three avoidable partial nodes where theorem 1 promises two.

use crate::anchor::Variant;

pub(super) const VARIANT: Variant = Variant::Paper;
