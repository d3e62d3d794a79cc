//! `score_candidates` and `best_candidate`, piece by piece.
//!
//! While a piece is scored the next one is written to the memory that its transfer starts from; two sets of buffers
//! take turns, and a set is used again when its answers have been read. A candidate that goes on in the next piece
//! leaves its sums in `carry`; of a job that does, each piece gives the best of its part, and the better one is found
//! here.

use std::time::{Duration, Instant};

use bytemuck::cast_slice;
use wgpu::SubmissionIndex;

use super::buffers::{Part, Store};
use super::device::{Call, Device, Entry, put};
use super::nodes::Resident;
use super::pieces::{Piece, Pieces};
use crate::evaluate::abi::{Candidate, NONE, Need, ScoreRow, Touch};
use crate::evaluate::backend::EvalError;
use crate::evaluate::batch::{Batch, Scores};
use crate::evaluate::kernels::Kernel;
use crate::evaluate::measure::Speed;
use crate::evaluate::rank::RankKey;

/// Touches a workgroup scores, as the kernel has it.
pub(super) const TILE: usize = 512;

/// Tiles whose candidates a workgroup puts together.
pub(super) const JOINERS: u64 = 64;

/// Bytes of a `Head` of the kernel.
pub(super) const HEAD: u64 = 48;

/// Up to so many candidates of a job one thread goes through.
const SMALL_JOB: usize = 64;

/// How often a measurement does the same without waiting in between.
const REPEATS: u32 = 8;

/// The kernels, and the buffers that they work on.
#[derive(Debug)]
pub(super) struct Scoring {
    score: Entry,
    join: Entry,
    small: Entry,
    large: Entry,
    carry: Store,
    slots: [Slot; 2],
}

/// The buffers of a piece.
#[derive(Debug)]
struct Slot {
    input: Store,
    rows: Store,
    heads: Store,
    best: Store,
    answers: Store,
    jobs: PieceJobs,
    needs: LocalNeeds,
    flight: Option<Flight>,
}

/// A piece that is being scored.
#[derive(Debug)]
struct Flight {
    piece: Piece,
    sent: SubmissionIndex,
    answers: Part,
}

/// A piece that lies on the device.
struct Loaded {
    params: Part,
    best_params: Part,
    touches: Part,
    needs: Part,
    offsets: Part,
    given: Part,
    candidates: Part,
    spans: Part,
    rows: Part,
    heads: Part,
    best: Part,
    tiles: u64,
}

impl Scoring {
    pub(super) fn new(device: &Device, text: &dyn Fn(Kernel) -> String) -> Result<Self, EvalError> {
        let kernel = Kernel::score_candidates;
        let [score, join] = device.compile(kernel, text(kernel), ["score_candidates", "score_candidates_join"])?;
        let kernel = Kernel::best_candidate;
        let [small, large] = device.compile(kernel, text(kernel), ["best_candidate_small", "best_candidate_large"])?;
        Ok(Self { score, join, small, large, carry: Store::rows("carry"), slots: [Slot::new(), Slot::new()] })
    }

    /// See `Backend::evaluate`.
    pub(super) fn evaluate(
        &mut self,
        device: &Device,
        nodes: &Resident,
        batch: &Batch,
        out: &mut Scores,
    ) -> Result<(), EvalError> {
        out.resize(batch);
        out.best.fill(NONE);
        // After a failure something may still be under way.
        self.slots.iter_mut().for_each(|slot| slot.flight = None);
        let mut turn = 0;
        for piece in pieces(device, batch) {
            self.slots[turn].land(device, batch, out)?;
            self.start(device, nodes, batch, piece, turn)?;
            turn = (turn + 1) % self.slots.len();
        }
        // The rest, in the order of the pieces.
        let (later, earlier) = self.slots.split_at_mut(turn);
        earlier.iter_mut().chain(later).try_for_each(|slot| slot.land(device, batch, out))
    }

    /// Writes a piece and sends the commands that score it.
    fn start(
        &mut self,
        device: &Device,
        nodes: &Resident,
        batch: &Batch,
        piece: Piece,
        turn: usize,
    ) -> Result<(), EvalError> {
        let carry = self.carry.room(device, size_of::<ScoreRow>() as u64)?;
        let loaded = self.slots[turn].load(device, batch, &piece)?;
        let mut calls = self.scoring(device, nodes, &loaded, &carry);
        let slot = &self.slots[turn];
        calls.extend(self.choosing(device, &loaded, &slot.jobs));
        let mut commands = device.commands();
        put(&calls, &mut commands);
        carry_on(&piece, &loaded, &carry, &mut commands);
        let (rows, best) = answer_sizes(&piece, &slot.jobs);
        let slot = &mut self.slots[turn];
        let answers = slot.answers.room(device, rows + best)?;
        if rows > 0 {
            commands.copy_buffer_to_buffer(loaded.rows.buffer(), 0, answers.buffer(), 0, rows);
        }
        if best > 0 {
            commands.copy_buffer_to_buffer(loaded.best.buffer(), 0, answers.buffer(), rows, best);
        }
        let sent = device.send(commands.finish())?;
        slot.flight = Some(Flight { piece, sent, answers });
        Ok(())
    }

    /// The calls that score a piece.
    fn scoring(&self, device: &Device, nodes: &Resident, piece: &Loaded, carry: &Part) -> Vec<Call<'_>> {
        let Loaded { params, touches, needs, offsets, given, rows, heads, tiles, .. } = piece;
        let score = [
            (0, params),
            (1, &nodes.bits),
            (2, &nodes.amounts),
            (3, touches),
            (4, needs),
            (5, offsets),
            (6, given),
            (7, rows),
            (8, heads),
        ];
        let join = [(0, params), (5, offsets), (6, given), (7, rows), (8, heads), (9, carry)];
        vec![device.call(&self.score, &score, *tiles), device.call(&self.join, &join, tiles.div_ceil(JOINERS))]
    }

    /// The calls that find the best candidates of a piece.
    fn choosing(&self, device: &Device, piece: &Loaded, jobs: &PieceJobs) -> [Call<'_>; 2] {
        let bindings =
            [(0, &piece.best_params), (1, &piece.spans), (2, &piece.rows), (3, &piece.candidates), (4, &piece.best)];
        let (small, large) = (jobs.small as u64, (jobs.of.len() - jobs.small) as u64);
        [device.call(&self.small, &bindings, small.div_ceil(64)), device.call(&self.large, &bindings, large)]
    }

    /// See `Backend::measure`. All pieces are resident at once.
    pub(super) fn measure(
        &mut self,
        device: &Device,
        nodes: &Resident,
        batch: &Batch,
        passes: usize,
    ) -> Result<Speed, EvalError> {
        let carry = self.carry.room(device, size_of::<ScoreRow>() as u64)?;
        let mut slots = Vec::new();
        for piece in pieces(device, batch) {
            let mut slot = Slot::new();
            let loaded = slot.load(device, batch, &piece)?;
            // Two pieces under way at most, as ever.
            device.wait(&device.send(device.commands().finish())?)?;
            let copy = Store::rows("a copy of touches").room(device, touch_bytes(&piece))?;
            slots.push((slot, piece, loaded, copy));
        }
        let score = |commands: &mut wgpu::CommandEncoder| {
            for (_, piece, loaded, _) in &slots {
                put(&self.scoring(device, nodes, loaded, &carry), commands);
                carry_on(piece, loaded, &carry, commands);
            }
        };
        let copy = |commands: &mut wgpu::CommandEncoder| {
            for (_, piece, loaded, copy) in &slots {
                loaded.touches.copy_to(copy, touch_bytes(piece), commands);
            }
        };
        let (mut scoring, mut copying) = (Duration::MAX, Duration::MAX);
        for _ in 0..passes.max(1) {
            copying = copying.min(time(device, &copy)?);
            scoring = scoring.min(time(device, &score)?);
        }
        Ok(Speed::of(batch, scoring, copying))
    }
}

/// How long something takes on the device, without the way there and back.
fn time(device: &Device, work: &dyn Fn(&mut wgpu::CommandEncoder)) -> Result<Duration, EvalError> {
    let mut commands = device.commands();
    (0..REPEATS).for_each(|_| work(&mut commands));
    let commands = commands.finish();
    let start = Instant::now();
    device.wait(&device.send(commands)?)?;
    Ok(start.elapsed() / REPEATS)
}

/// The pieces of a batch on this device.
fn pieces<'a>(device: &Device, batch: &'a Batch) -> Pieces<'a> {
    let touches = device.limits.piece as usize / size_of::<Touch>();
    // Whole tiles, where there is room for one.
    let touches = if touches > TILE { touches - touches % TILE } else { touches };
    Pieces::new(batch, touches, device.limits.piece as usize / size_of::<Candidate>())
}

fn touch_bytes(piece: &Piece) -> u64 {
    (piece.touches.len() * size_of::<Touch>()) as u64
}

/// Keeps the sums of a candidate that goes on in the next piece.
fn carry_on(piece: &Piece, loaded: &Loaded, carry: &Part, commands: &mut wgpu::CommandEncoder) {
    if piece.goes_on {
        let row = size_of::<ScoreRow>() as u64;
        let at = piece.finished().len() as u64 * row;
        commands.copy_buffer_to_buffer(loaded.rows.buffer(), at, carry.buffer(), 0, row);
    }
}

/// The bytes of rows and of best candidates that a piece answers with.
fn answer_sizes(piece: &Piece, jobs: &PieceJobs) -> (u64, u64) {
    ((piece.finished().len() * size_of::<ScoreRow>()) as u64, (jobs.of.len() * size_of::<u32>()) as u64)
}

impl Slot {
    fn new() -> Self {
        Self {
            input: Store::input("a piece of a batch"),
            rows: Store::rows("rows"),
            heads: Store::rows("heads"),
            best: Store::rows("best candidates"),
            answers: Store::answers("answers"),
            jobs: PieceJobs::default(),
            needs: LocalNeeds::default(),
            flight: None,
        }
    }

    /// Makes room for a piece and writes it.
    fn load(&mut self, device: &Device, batch: &Batch, piece: &Piece) -> Result<Loaded, EvalError> {
        let touches = &batch.touches()[piece.touches.clone()];
        let (touches, needs) = self.needs.of(touches, batch.needs());
        self.jobs.find(batch, piece);
        let tiles = touches.len().div_ceil(TILE).max(1);
        let n = piece.candidates.len();
        let params = [piece.touches.start as u32, touches.len() as u32, n as u32, tiles as u32];
        let best_params = [self.jobs.small as u32, (self.jobs.of.len() - self.jobs.small) as u32, 0, 0];
        let [params, best_params, touches, needs, offsets, given, candidates, spans] = self.input.write(
            device,
            [
                cast_slice(&params),
                cast_slice(&best_params),
                cast_slice(touches),
                cast_slice(needs),
                cast_slice(&batch.offsets()[piece.candidates.start..=piece.candidates.end]),
                cast_slice(&batch.given()[piece.candidates.clone()]),
                cast_slice(&batch.candidates()[piece.candidates.clone()]),
                cast_slice(&self.jobs.spans),
            ],
        )?;
        let rows = self.rows.room(device, (n * size_of::<ScoreRow>()) as u64)?;
        let heads = self.heads.room(device, tiles as u64 * HEAD)?;
        let best = self.best.room(device, (self.jobs.of.len() * size_of::<u32>()) as u64)?;
        let tiles = tiles as u64;
        Ok(Loaded { params, best_params, touches, needs, offsets, given, candidates, spans, rows, heads, best, tiles })
    }

    /// Waits for what is under way here, if anything is, and takes its answers.
    fn land(&mut self, device: &Device, batch: &Batch, out: &mut Scores) -> Result<(), EvalError> {
        let Some(Flight { piece, sent, answers }) = self.flight.take() else { return Ok(()) };
        let (rows, best) = answer_sizes(&piece, &self.jobs);
        let finished = piece.finished();
        let Scores { rows: all_rows, best: all_best } = out;
        device.read(&sent, &answers, |bytes| {
            let (row_bytes, bytes) = bytes.split_at(rows as usize);
            bytemuck::cast_slice_mut(&mut all_rows[finished.clone()]).copy_from_slice(row_bytes);
            let found = bytes[..best as usize].as_chunks::<4>().0;
            for (&job, &found) in self.jobs.of.iter().zip(found) {
                let found = u32::from_ne_bytes(found);
                if found != NONE {
                    let best = &mut all_best[job as usize];
                    *best = better(batch, all_rows, *best, finished.start as u32 + found);
                }
            }
        })
    }
}

/// The better one of two feasible candidates, the first of which may be none.
fn better(batch: &Batch, rows: &[ScoreRow], one: u32, other: u32) -> u32 {
    let key = |c: u32| (RankKey::of(&rows[c as usize], &batch.candidates()[c as usize]), c);
    if one == NONE || key(other) < key(one) { other } else { one }
}

/// The jobs that have candidates which end in a piece: those of few candidates first.
#[derive(Debug, Default)]
struct PieceJobs {
    /// Their numbers in the batch.
    of: Vec<u32>,
    /// The candidates of each, counted within the piece.
    spans: Vec<[u32; 2]>,
    /// How many of them have few.
    small: usize,
}

impl PieceJobs {
    fn find(&mut self, batch: &Batch, piece: &Piece) {
        self.of.clear();
        self.spans.clear();
        let finished = piece.finished();
        let starts = batch.jobs();
        // The last job that begins at or before the piece; the jobs from there on have candidates in it, or none.
        let first = starts.partition_point(|&start| start as usize <= finished.start).saturating_sub(1);
        let in_piece = |job: usize| {
            let candidates = batch.candidates_of(job);
            candidates.start.max(finished.start)..candidates.end.min(finished.end)
        };
        let behind = first + starts[first..batch.n_jobs()].partition_point(|&start| (start as usize) < finished.end);
        for few in [true, false] {
            for job in first..behind {
                let span = in_piece(job);
                if !span.is_empty() && (span.len() <= SMALL_JOB) == few {
                    self.of.push(job as u32);
                    self.spans.push([span.start, span.end].map(|candidate| (candidate - finished.start) as u32));
                }
            }
            if few {
                self.small = self.of.len();
            }
        }
    }
}

/// The needs of the touches of a piece, where the table of the whole batch would be longer than the piece.
#[derive(Debug, Default)]
struct LocalNeeds {
    touches: Vec<Touch>,
    needs: Vec<Need>,
}

impl LocalNeeds {
    /// The touches of a piece, and the table that their needs are in.
    fn of<'a>(&'a mut self, touches: &'a [Touch], needs: &'a [Need]) -> (&'a [Touch], &'a [Need]) {
        if needs.len() <= touches.len() + 1 {
            return (touches, needs);
        }
        self.needs.clear();
        self.needs.push(Need::NONE);
        self.touches.clear();
        self.touches.extend(touches.iter().map(|&touch| {
            if touch.need == 0 {
                return touch;
            }
            self.needs.push(needs[touch.need as usize]);
            Touch { need: self.needs.len() as u32 - 1, ..touch }
        }));
        (&self.touches, &self.needs)
    }
}
