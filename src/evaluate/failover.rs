//! A backend that outlives its devices.
//!
//! The processor holds the rows of the nodes, always current: it can answer every call, and whatever device comes next
//! is loaded from it. A call goes to the device if it is large enough to pay for the way; if the device fails, to the
//! next, and at last to the processor. The bits are the same everywhere, so nobody sees a difference but in time.

use std::collections::VecDeque;

use super::abi::NodeEdit;
use super::backend::{Backend, EvalError};
use super::batch::{Batch, Scores};
use super::census::Census;
use super::choose::Opener;
use super::cpu::Cpu;
use super::crossover::{Crossover, Crossovers, Work};
use super::measure::Speed;
use super::node_rows::NodeRows;
use super::query::NodeQuery;

/// Is told in a sentence what failed and who goes on: once for each call during which devices failed.
pub type Warn = Box<dyn FnMut(&str) + Send>;

/// What is asked of a backend.
type Call<'a, R> = &'a mut dyn FnMut(&mut dyn Backend) -> Result<R, EvalError>;

/// The processor, with devices before it as long as they last.
pub struct Failover {
    processor: Cpu,
    device: Option<Device>,
    next: VecDeque<Opener>,
    crossover: Crossover,
    /// What failed during this call.
    faults: Vec<String>,
    warn: Warn,
    edits: Vec<NodeEdit>,
}

/// An open device, and what it lacks.
struct Device {
    backend: Box<dyn Backend>,
    resident: Resident,
    /// What was measured on these nodes.
    crossovers: Option<Crossovers>,
}

/// How the nodes that a device holds differ from those of the processor.
enum Resident {
    /// It holds others, or none.
    Nothing,
    /// In these, some of them listed more than once.
    AllBut(Vec<u32>),
}

impl Failover {
    /// The processor behind these devices, which are opened one after the other, when there is work for one and the one
    /// before has failed.
    pub fn new(processor: Cpu, devices: Vec<Opener>, crossover: Crossover, warn: Warn) -> Self {
        Self { processor, device: None, next: devices.into(), crossover, faults: Vec::new(), warn, edits: Vec::new() }
    }

    /// Opens the first device now.
    ///
    /// # Errors
    /// If that fails. The next one is not tried then: it is not what was asked for.
    pub fn open_first(&mut self) -> Result<(), EvalError> {
        if self.device.is_none()
            && let Some(opener) = self.next.pop_front()
        {
            self.device = Some(Device::new(opener.open()?));
        }
        Ok(())
    }

    /// Lets the device answer, or the next, or the processor. The call writes all of its results each time.
    fn ask<R>(&mut self, work: Work, call: Call<'_, R>) -> Result<R, EvalError> {
        let answer = self.ask_devices(work, call);
        self.tell_faults();
        answer.map_or_else(|| call(&mut self.processor), Ok)
    }

    /// The answer of a device, if one is worth asking and does not fail.
    fn ask_devices<R>(&mut self, work: Work, call: Call<'_, R>) -> Option<R> {
        let worth_a_look = match self.crossover {
            Crossover::At(least) => work.amount() >= least,
            Crossover::Measured => !work.is_small(),
        };
        while worth_a_look && self.have_device() {
            let device = self.device.as_mut()?;
            let measured = self.crossover == Crossover::Measured;
            match device.answer(measured.then_some(work), &mut self.processor, &mut self.edits, call) {
                Ok(answer) => return answer,
                // The processor has accepted the arguments of the call, so whatever this is, it is the device's fault.
                Err(error) => {
                    self.faults.push(fault(device.backend.name(), &error));
                    self.device = None;
                }
            }
        }
        None
    }

    /// Opens the next device that opens, if none is open.
    fn have_device(&mut self) -> bool {
        while self.device.is_none() {
            let Some(opener) = self.next.pop_front() else { return false };
            let name = opener.backend();
            match opener.open() {
                Ok(backend) => self.device = Some(Device::new(backend)),
                // A machine without such a device is no failure.
                Err(EvalError::Absent { .. }) => {}
                Err(error) => self.faults.push(fault(name, &error)),
            }
        }
        true
    }

    fn tell_faults(&mut self) {
        if !self.faults.is_empty() {
            let faults = std::mem::take(&mut self.faults).join(", ");
            let text = format!("{faults}: {} goes on, and the results are the same", self.name());
            (self.warn)(&text);
        }
    }
}

fn fault(backend: &str, error: &EvalError) -> String {
    match error {
        EvalError::Unusable { .. } | EvalError::OutOfMemory(_) => error.to_string(),
        _ => format!("{backend} failed ({error})"),
    }
}

impl Device {
    fn new(backend: Box<dyn Backend>) -> Self {
        Self { backend, resident: Resident::Nothing, crossovers: None }
    }

    /// Its answer; `None` if this much work is known or found not to pay.
    fn answer<R>(
        &mut self,
        must_pay: Option<Work>,
        processor: &mut Cpu,
        edits: &mut Vec<NodeEdit>,
        call: Call<'_, R>,
    ) -> Result<Option<R>, EvalError> {
        if let (Some(work), Some(known)) = (must_pay, self.crossovers)
            && !known.pays(work)
        {
            return Ok(None);
        }
        self.refresh(processor.rows(), edits)?;
        if let (Some(work), None) = (must_pay, self.crossovers) {
            let (n_nodes, pools) = (processor.rows().len(), processor.rows().pools);
            let found = Crossovers::measure(self.backend.as_mut(), processor, n_nodes, pools)?;
            self.crossovers = Some(found);
            if !found.pays(work) {
                return Ok(None);
            }
        }
        call(self.backend.as_mut()).map(Some)
    }

    /// Makes it hold the nodes that the processor holds.
    fn refresh(&mut self, nodes: &NodeRows, edits: &mut Vec<NodeEdit>) -> Result<(), EvalError> {
        match &mut self.resident {
            Resident::AllBut(changed) if changed.is_empty() => Ok(()),
            Resident::AllBut(changed) => {
                changed.sort_unstable();
                changed.dedup();
                edits.clear();
                edits.extend(changed.drain(..).map(|node| nodes.edit(node)));
                self.backend.apply(edits)
            }
            Resident::Nothing => {
                self.backend.load(nodes)?;
                self.resident = Resident::AllBut(Vec::new());
                Ok(())
            }
        }
    }

    /// Notes that nodes have changed. Once most have, all of them are as well loaded anew.
    fn changed(&mut self, edits: &[NodeEdit], n_nodes: usize) {
        if let Resident::AllBut(changed) = &mut self.resident {
            changed.extend(edits.iter().map(|edit| edit.node));
            if changed.len() > n_nodes {
                self.resident = Resident::Nothing;
            }
        }
    }
}

impl Backend for Failover {
    /// That of the device that is open, or of the processor.
    fn name(&self) -> &'static str {
        self.device.as_ref().map_or(self.processor.name(), |device| device.backend.name())
    }

    fn load(&mut self, nodes: &NodeRows) -> Result<(), EvalError> {
        let as_many = nodes.len() == self.processor.rows().len();
        self.processor.load(nodes)?;
        if let Some(device) = &mut self.device {
            device.resident = Resident::Nothing;
            device.crossovers = device.crossovers.filter(|_| as_many);
        }
        Ok(())
    }

    /// The device gets the edits with the next call that it is to answer, a node that was edited more than once with its
    /// last rows alone.
    fn apply(&mut self, edits: &[NodeEdit]) -> Result<(), EvalError> {
        self.processor.apply(edits)?;
        if let Some(device) = &mut self.device {
            device.changed(edits, self.processor.rows().len());
        }
        Ok(())
    }

    fn evaluate(&mut self, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        EvalError::check_batch(batch, self.processor.rows().len())?;
        self.ask(Work::of_batch(batch), &mut |backend| backend.evaluate(batch, out))
    }

    fn rank_nodes(&mut self, query: &NodeQuery, out: &mut Vec<u32>) -> Result<(), EvalError> {
        let rows = self.processor.rows();
        EvalError::check_query(query, rows.pools)?;
        self.ask(Work::of_query(query, rows.len()), &mut |backend| backend.rank_nodes(query, out))
    }

    /// False also if the device is not worth asking. If it fails before it has answered, the next one is asked anew.
    fn begin_ranking(&mut self, query: &NodeQuery) -> Result<bool, EvalError> {
        let rows = self.processor.rows();
        EvalError::check_query(query, rows.pools)?;
        self.ask(Work::of_query(query, rows.len()), &mut |backend| backend.begin_ranking(query))
    }

    fn census(&mut self, out: &mut Census) -> Result<(), EvalError> {
        let work = Work::Nodes(self.processor.rows().len() as u64);
        self.ask(work, &mut |backend| backend.census(out))
    }

    fn measure(&mut self, batch: &Batch, passes: usize) -> Result<Speed, EvalError> {
        EvalError::check_batch(batch, self.processor.rows().len())?;
        self.ask(Work::of_batch(batch), &mut |backend| backend.measure(batch, passes))
    }
}

impl std::fmt::Debug for Failover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Failover").field("backend", &self.name()).field("next", &self.next).finish_non_exhaustive()
    }
}
