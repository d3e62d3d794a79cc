//! A backend with a planted fault: what never fails proves nothing.

use super::super::abi::NodeEdit;
use super::super::backend::{Backend, EvalError};
use super::super::batch::{Batch, Scores};
use super::super::census::Census;
use super::super::kernels::Kernel;
use super::super::measure::Speed;
use super::super::node_rows::NodeRows;
use super::super::query::NodeQuery;

/// A backend one kernel of which is a little wrong: one bit of its last value, or the last edit left out.
pub struct Faulty<'a> {
    /// The backend that does the work.
    pub inside: &'a mut dyn Backend,
    /// The kernel that is spoilt.
    pub kernel: Kernel,
}

impl Faulty<'_> {
    fn spoil<T>(&self, kernel: Kernel, values: &mut [T], fault: impl FnOnce(&mut T)) {
        if self.kernel == kernel
            && let Some(last) = values.last_mut()
        {
            fault(last);
        }
    }
}

impl Backend for Faulty<'_> {
    fn name(&self) -> &'static str {
        self.inside.name()
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        self.inside.load(nodes)
    }

    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        let left_out = usize::from(self.kernel == Kernel::apply_edits);
        self.inside.apply(&edits[..edits.len().saturating_sub(left_out)])
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        self.inside.evaluate(batch, out)?;
        self.spoil(Kernel::score_candidates, &mut out.rows, |row| row.residual ^= 1);
        self.spoil(Kernel::best_candidate, &mut out.best, |best| *best ^= 1);
        Ok(())
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        self.inside.rank_nodes(query, out)?;
        self.spoil(Kernel::rank_nodes, out, |node| *node ^= 1);
        Ok(())
    }

    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        self.inside.begin_ranking(query)
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        self.inside.census(out)?;
        self.spoil(Kernel::census, &mut out.pools, |pool| pool.partial ^= 1);
        Ok(())
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        self.inside.measure(batch, passes)
    }
}

impl std::fmt::Debug for Faulty<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faulty").field("inside", &self.inside.name()).field("kernel", &self.kernel).finish()
    }
}
