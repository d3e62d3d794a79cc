//! One pass of the suite over clusters that change.

use super::super::abi::NodeEdit;
use super::super::backend::{Backend, EvalError};
use super::super::batch::Batch;
use super::super::census::Census;
use super::super::kernels::Kernel;
use super::super::node_rows::NodeRows;
use super::super::query::NodeQuery;
use super::super::synthetic;
use super::super::twin::Reference;
use super::clusters::{Kind, come_back, depart, turn};
use super::queries::{WANTED, query};
use super::{Check, Extent, batches, compare, scores};
use crate::cluster::{Cluster, Edit};

/// A backend and the twins, asked the same.
pub(super) struct Run<'a> {
    backend: &'a mut dyn Backend,
    reference: Reference,
    seed: u64,
    extent: Extent,
    /// The cluster, and what has happened to it.
    scene: String,
    checks: Vec<Check>,
}

impl<'a> Run<'a> {
    pub(super) fn new(backend: &'a mut dyn Backend, seed: u64, extent: Extent) -> Self {
        Self { backend, reference: Reference::new(), seed, extent, scene: String::new(), checks: Vec::new() }
    }

    pub(super) fn into_checks(self) -> Vec<Check> {
        self.checks
    }

    /// A cluster, asked everything; edits, and everything again; then edits upon edits.
    pub(super) fn on_cluster(&mut self, kind: Kind, number: usize) -> Result<(), EvalError> {
        let mut cluster = kind.cluster(self.seed)?;
        let name = kind.name();
        self.load(&cluster, &name)?;
        self.everything(&cluster, number)?;
        let mut departed = depart(&mut cluster, 4, usize::MAX, self.seed);
        departed.extend(turn(&mut cluster, 4, self.seed));
        self.apply(&cluster, &departed, &format!("{name}, departures"))?;
        self.everything(&cluster, number + 1)?;
        let back = come_back(&mut cluster, &departed);
        self.apply(&cluster, &back, &format!("{name}, departures, returns"))?;
        // Nothing, one node, every node.
        self.apply(&cluster, &[], &format!("{name}, no edit"))?;
        let one = depart(&mut cluster, 1, 1, self.seed);
        self.apply(&cluster, &one, &format!("{name}, one edit"))?;
        let rest = depart(&mut cluster, 1, usize::MAX, self.seed);
        self.apply(&cluster, &rest, &format!("{name}, all gone"))
    }

    /// What takes more than one piece: many touches, and many classes.
    pub(super) fn at_length(&mut self) -> Result<(), EvalError> {
        let cluster = Kind::Uniform(12_500).cluster(self.seed)?;
        self.load(&cluster, "uniform 12500")?;
        self.scores("9,000,000 touches", &synthetic::batch(&cluster, 9_000_000, 4, 8, self.seed)?)?;
        self.scores("2,000,000 candidates", &synthetic::batch(&cluster, 2_000_000, 1, 0, self.seed)?)?;
        let cluster = Kind::Mixed(1000).cluster(self.seed)?;
        self.load(&cluster, "mixed 1000")?;
        self.rank_ahead("4,096 classes", &query(&cluster, 4096, 1024, self.seed))
    }

    fn load(&mut self, cluster: &Cluster, scene: &str) -> Result<(), EvalError> {
        scene.clone_into(&mut self.scene);
        let nodes = NodeRows::of(cluster)?;
        self.backend.load(&nodes)?;
        self.reference.load(&nodes)
    }

    /// Applies what was done to the cluster. What is resident afterwards must be what a fresh load gives.
    fn apply(&mut self, cluster: &Cluster, edits: &[Edit], scene: &str) -> Result<(), EvalError> {
        scene.clone_into(&mut self.scene);
        let edits = NodeEdit::after(cluster, edits);
        let nodes = NodeRows::of(cluster)?;
        let query = query(cluster, 1, WANTED[3].min(nodes.len()), self.seed);
        // A question that is on its way when edits come is answered for the nodes as they are afterwards.
        self.backend.begin_ranking(&query)?;
        self.backend.apply(&edits)?;
        self.reference.load(&nodes)?;
        self.rank_as(Kernel::apply_edits, "every node ranked", &query)?;
        self.census(Kernel::apply_edits)?;
        let batch = batches::resident(&nodes)?;
        let [rows, _] = scores(self.backend, &mut self.reference, &batch)?;
        self.push("every node", Check { kernel: Kernel::apply_edits, ..rows });
        Ok(())
    }

    fn everything(&mut self, cluster: &Cluster, number: usize) -> Result<(), EvalError> {
        let nodes = NodeRows::of(cluster)?;
        let k = WANTED[number % WANTED.len()];
        // Nothing that is asked meanwhile is answered by this, nor this by it.
        self.backend.begin_ranking(&query(cluster, 1, k, self.seed))?;
        for (case, batch) in batches::usual(cluster, &nodes, self.seed.wrapping_add(number as u64))? {
            self.scores(&case, &batch)?;
        }
        // The edges are a matter of the batch; the clusters need not all see them.
        if number % 6 == 4 {
            for (case, batch) in batches::edges(&nodes, self.extent)? {
                self.scores(&case, &batch)?;
            }
        }
        self.rank(&format!("{k} nodes a class"), &query(cluster, 1, k, self.seed))?;
        self.rank_ahead(&format!("{k} nodes a class"), &query(cluster, 1, k, self.seed))?;
        self.rank_ahead("no node wanted", &query(cluster, 1, 0, self.seed))?;
        self.rank_ahead("no class", &query(cluster, 0, k, self.seed))?;
        if nodes.len() < 300 && self.extent > Extent::Quick {
            self.rank_ahead("300 classes", &query(cluster, 300, 7, self.seed))?;
        }
        self.census(Kernel::census)
    }

    fn scores(&mut self, case: &str, batch: &Batch) -> Result<(), EvalError> {
        for check in scores(self.backend, &mut self.reference, batch)? {
            self.push(case, check);
        }
        Ok(())
    }

    fn rank(&mut self, case: &str, query: &NodeQuery) -> Result<(), EvalError> {
        self.rank_as(Kernel::rank_nodes, case, query)
    }

    /// Puts the question on its way before it wants the answer.
    fn rank_ahead(&mut self, case: &str, query: &NodeQuery) -> Result<(), EvalError> {
        self.backend.begin_ranking(query)?;
        self.rank(&format!("{case}, asked ahead"), query)
    }

    fn rank_as(&mut self, kernel: Kernel, case: &str, query: &NodeQuery) -> Result<(), EvalError> {
        let (mut found, mut expected) = (vec![7; query.width() + 3], Vec::new());
        self.backend.rank_nodes(query, &mut found)?;
        self.reference.rank_nodes(query, &mut expected)?;
        self.push(case, compare(kernel, self.nodes(), &found, &expected));
        Ok(())
    }

    fn census(&mut self, kernel: Kernel) -> Result<(), EvalError> {
        let (mut found, mut expected) = (Census::default(), Census::default());
        // Poison: counts of other pools.
        found.reset(3);
        found.pools.iter_mut().for_each(|pool| pool.nodes = 7);
        self.backend.census(&mut found)?;
        self.reference.census(&mut expected)?;
        let pools = compare(kernel, self.nodes(), &found.pools, &expected.pools);
        let compositions = compare(kernel, self.nodes(), &found.compositions, &expected.compositions);
        let values = pools.values + compositions.values;
        self.push("counts", Check { values, mismatch: pools.mismatch.or(compositions.mismatch), ..pools });
        Ok(())
    }

    fn nodes(&self) -> usize {
        self.reference.nodes().len()
    }

    fn push(&mut self, case: &str, check: Check) {
        let case = format!("{}, {case}", self.scene);
        self.checks.push(Check { case, ..check });
    }
}
