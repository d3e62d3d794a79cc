//! `rank_nodes`: as many classes at a time as the counts of their keys have room for. The first part of a question may be
//! on its way while the host does something else.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use wgpu::SubmissionIndex;

use super::buffers::{Part, Store};
use super::device::{Device, Entry, put};
use super::nodes::Resident;
use crate::evaluate::abi::NONE;
use crate::evaluate::backend::EvalError;
use crate::evaluate::kernels::Kernel;
use crate::evaluate::query::{DemandClass, NodeQuery};

/// Nodes of a tile, as the kernel has it.
pub(super) const TILE: usize = 512;

/// All keys are below.
pub(super) const KEYS: usize = 128;

/// Classes for which a workgroup counts at once.
pub(super) const CLASSES: u64 = 16;

/// The kernel, and the buffers that it works on.
#[derive(Debug)]
pub(super) struct Ranking {
    count: Entry,
    scan: Entry,
    place: Entry,
    input: Store,
    of_key: Store,
    below: Store,
    slots: Store,
    answers: Store,
    classes: Vec<DemandClass>,
    pool_bits: Vec<u32>,
    /// The question whose first part is on its way.
    begun: Option<(NodeQuery, Flight)>,
}

/// A part of a question that is on its way.
#[derive(Debug)]
struct Flight {
    classes: Range<usize>,
    sent: SubmissionIndex,
    answers: Part,
}

impl Ranking {
    pub(super) fn new(device: &Device, text: &dyn Fn(Kernel) -> String) -> Result<Self, EvalError> {
        let kernel = Kernel::rank_nodes;
        let names = ["rank_nodes_count", "rank_nodes_scan", "rank_nodes_place"];
        let [count, scan, place] = device.compile(kernel, text(kernel), names)?;
        Ok(Self {
            count,
            scan,
            place,
            input: Store::input("classes"),
            of_key: Store::rows("counts of keys"),
            below: Store::rows("nodes of lower keys"),
            slots: Store::rows("slots"),
            answers: Store::answers("nodes"),
            classes: Vec::new(),
            pool_bits: Vec::new(),
            begun: None,
        })
    }

    /// See `Backend::begin_ranking`.
    pub(super) fn begin(&mut self, device: &Device, nodes: &Resident, query: &NodeQuery) -> Result<bool, EvalError> {
        self.begun = None;
        let Some(classes) = parts(device, nodes, query).next() else { return Ok(false) };
        let flight = self.start(device, nodes, query, classes)?;
        self.begun = Some((query.clone(), flight));
        Ok(true)
    }

    /// Forgets what was begun: the nodes change.
    pub(super) fn forget(&mut self) {
        self.begun = None;
    }

    /// See `Backend::rank_nodes`.
    pub(super) fn rank(
        &mut self,
        device: &Device,
        nodes: &Resident,
        query: &NodeQuery,
        out: &mut Vec<u32>,
    ) -> Result<(), EvalError> {
        out.clear();
        out.resize(query.width(), NONE);
        let mut begun = self.begun.take().filter(|(begun, _)| begun == query);
        for classes in parts(device, nodes, query) {
            let flight = match begun.take() {
                Some((_, flight)) => flight,
                None => self.start(device, nodes, query, classes)?,
            };
            land(device, nodes, query, &flight, out)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        device: &Device,
        nodes: &Resident,
        query: &NodeQuery,
        classes: Range<usize>,
    ) -> Result<Flight, EvalError> {
        let k = wanted(nodes, query);
        self.collect(query, classes.clone());
        let (n, tiles) = (classes.len(), nodes.nodes.div_ceil(TILE));
        let params = [nodes.nodes, tiles, n, k].map(|number| number as u32);
        let arrays = [cast_slice(&params), cast_slice(&self.classes), cast_slice(&self.pool_bits)];
        let [params, rows, pool_bits] = self.input.write(device, arrays)?;
        let words = |words: usize| (words * size_of::<u32>()) as u64;
        let of_key = self.of_key.room(device, words(n * (tiles + 1) * KEYS))?;
        let below = self.below.room(device, words(n * KEYS))?;
        let slots = self.slots.room(device, words(n * k))?;
        let answers = self.answers.room(device, words(n * k))?;
        let asking = [
            (0, &params),
            (1, &nodes.bits),
            (2, &nodes.amounts),
            (3, &nodes.attributes),
            (4, &rows),
            (5, &pool_bits),
            (6, &of_key),
        ];
        let adding = [(0, &params), (6, &of_key), (7, &below), (8, &slots)];
        let placing = [&asking[..], &adding[2..]].concat();
        let (n, tiles) = (n as u64, tiles as u64);
        let calls = [
            device.call(&self.count, &asking, n.div_ceil(CLASSES) * tiles),
            device.call(&self.scan, &adding, n),
            device.call(&self.place, &placing, n * tiles),
        ];
        let mut commands = device.commands();
        put(&calls, &mut commands);
        let bytes = words(classes.len() * k);
        commands.copy_buffer_to_buffer(slots.buffer(), 0, answers.buffer(), 0, bytes);
        let sent = device.send(commands.finish())?;
        Ok(Flight { classes, sent, answers })
    }

    /// Collects classes and their sets of pools, which then begin where they stand here.
    fn collect(&mut self, query: &NodeQuery, classes: Range<usize>) {
        self.classes.clear();
        self.pool_bits.clear();
        for class in &query.classes()[classes] {
            let mut class = *class;
            if class.pools_at != NONE {
                let at = class.pools_at as usize;
                class.pools_at = self.pool_bits.len() as u32;
                self.pool_bits.extend(&query.pool_bits()[at..at + words_of_pools(query)]);
            }
            self.classes.push(class);
        }
    }
}

/// Waits for a part of a question, and takes its answers.
fn land(
    device: &Device,
    nodes: &Resident,
    query: &NodeQuery,
    flight: &Flight,
    out: &mut [u32],
) -> Result<(), EvalError> {
    let k = wanted(nodes, query);
    device.read(&flight.sent, &flight.answers, |found| {
        for (class, found) in flight.classes.clone().zip(found.chunks(k * size_of::<u32>())) {
            cast_slice_mut(&mut out[query.slots(class)][..k]).copy_from_slice(found);
        }
    })
}

/// The nodes to be found for a class: no class has more answers than nodes.
fn wanted(nodes: &Resident, query: &NodeQuery) -> usize {
    query.k().min(nodes.nodes)
}

fn words_of_pools(query: &NodeQuery) -> usize {
    query.pools().div_ceil(32)
}

/// The classes of a question, a part at a time: the counts of keys are within the scratch, all else within a binding.
fn parts(device: &Device, nodes: &Resident, query: &NodeQuery) -> impl Iterator<Item = Range<usize>> + use<> {
    let counts = (nodes.nodes.div_ceil(TILE) + 1) * KEYS * size_of::<u32>();
    let k = wanted(nodes, query);
    let others = size_of::<DemandClass>().max(4 * words_of_pools(query)).max(4 * k).max(4 * KEYS);
    let room = device.limits.binding.min(device.limits.buffer / 4) as usize;
    let step = (device.limits.scratch as usize / counts).min(room / others).max(1);
    let end = if k == 0 { 0 } else { query.len() };
    (0..end).step_by(step).map(move |first| first..(first + step).min(end))
}
