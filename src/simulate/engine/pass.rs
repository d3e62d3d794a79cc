//! One pass over the queue: who starts now.

use super::Engine;
use crate::decide::{Why, Worth};
use crate::simulate::backfill::{Place, Reservation};
use crate::simulate::discipline::Discipline;
use crate::simulate::explain::FirstTry;
use crate::simulate::running::NEVER;
use crate::simulate::site::Site;
use crate::simulate::wait::wait_without_moves;
use crate::workload::TraceJob;

impl<S: Site> Engine<'_, S> {
    /// One scheduling pass. Jobs from position `new` on have just arrived.
    pub(super) fn pass(&mut self, new: usize) {
        let all = std::mem::take(&mut self.changed);
        if all {
            // Each of them is tried again.
            self.held.clear();
        }
        while self.turns.is_some() && self.take_turn(all, new) {}
        // Who was refused is refused again while nothing changes; the time alone only makes backfilling harder.
        while self.turns.is_none()
            && let Some(head) = self.waiting.head()
            && (all || self.changed || head >= new)
        {
            if !self.start(head) && !self.start_with_room(head) {
                break;
            }
        }
        if self.discipline == Discipline::Easy
            && let Some(head) = self.waiting.head()
        {
            // First in, first out: those that have just arrived are the last.
            self.backfill(head, if all { head } else { head.max(new.saturating_sub(1)) });
        }
    }

    /// Starts jobs behind position `last` that do not keep the head from what it is promised.
    fn backfill(&mut self, head: usize, mut last: usize) {
        let jobs = self.scenario.jobs();
        let place = Place::of(&jobs[head]);
        let by_finish = self.running.by_finish(place, self.site.cluster());
        let mut promise = Reservation::new(self.now, self.site.free_places(place), jobs[head].gpus(), by_finish);
        while let Some(position) = self.waiting.after(last, &jobs[last]) {
            last = position;
            let (places, finish) = (place.taken_by(&jobs[position]), self.finish_of(&jobs[position]));
            let enough = self.is_free(&jobs[position]);
            if let Some(probe) = self.probe.as_mut().filter(|probe| probe.position == position) {
                let fits = enough && self.site.why(self.scenario.job_id(position)) == Why::Space;
                probe.reserved = fits && !promise.allows(places, finish);
            }
            if enough && promise.allows(places, finish) && self.start(position) {
                promise.take(places, finish);
            }
        }
    }

    /// Whether as much is free as a job asks for: a share may have the rests of shared devices, a whole GPU may not.
    fn is_free(&self, job: &TraceJob) -> bool {
        match job.is_share() {
            true => job.demand_milli() <= self.site.free_milli(),
            false => job.gpus() <= self.site.free_gpus(),
        }
    }

    /// When a job would finish that starts now; `NEVER` for one that stays.
    fn finish_of(&self, job: &TraceJob) -> u64 {
        if job.leaves() { self.now.saturating_add(job.duration_s).min(NEVER - 1) } else { NEVER }
    }

    /// Starts a waiting job, if the scheduler can.
    fn start(&mut self, position: usize) -> bool {
        self.note_try(position);
        // Moves are made for the head of the queue alone, and once it was refused without.
        !self.holds_back(position) && self.start_within(position, Worth::NONE)
    }

    /// Starts the head of the queue by moving others, if that costs them less than what it would wait otherwise.
    fn start_with_room(&mut self, head: usize) -> bool {
        let (Some(price), Some(cluster)) = (self.room, self.site.cluster()) else { return false };
        let id = self.scenario.job_id(head);
        let wait_s = wait_without_moves(cluster, id, self.now, self.running.departures());
        self.start_within(head, Worth { wait_s, ..price })
    }

    /// Starts a waiting job, if the scheduler can, by moving others if that is worth it.
    fn start_within(&mut self, position: usize, worth: Worth) -> bool {
        let (job, id) = (&self.scenario.jobs()[position], self.scenario.job_id(position));
        let finish = self.finish_of(job);
        let Some(moved) = self.site.start(id, position, worth) else { return false };
        self.running.enter(id, self.now, finish);
        self.running.pause(moved, self.now);
        self.waiting.remove(position, job);
        self.waiting_milli -= job.demand_milli();
        self.events += 1;
        (self.changed, self.unpacked) = (true, true);
        true
    }

    /// Starts whoever's turn it is, under a policy that reorders the queue. False if nobody can start of those whose turn
    /// it may be; but for `all`, and once something has started, only jobs from position `new` on can.
    fn take_turn(&mut self, all: bool, new: usize) -> bool {
        let Some(turns) = &self.turns else { return false };
        let (window, all) = (turns.window(self.waiting.positions()), all || self.changed);
        let mut least: Option<(i64, usize)> = None;
        let mut seen = Vec::new();
        for &position in window.iter().filter(|&&position| all || position >= new) {
            let job = self.scenario.cluster().job(self.scenario.job_id(position));
            // Of those that ask for the same the first goes first.
            let asks = (job.request(), job.instances());
            if seen.contains(&asks) {
                continue;
            }
            seen.push(asks);
            self.note_try(position);
            let growth = self.site.growth(self.scenario.job_id(position));
            least = least.into_iter().chain(growth.map(|growth| (growth, position))).min_by_key(|&(growth, _)| growth);
        }
        let Some((_, position)) = least else { return false };
        let started = self.start(position);
        debug_assert!(started, "what was tried cannot be done");
        if let Some(turns) = &mut self.turns {
            turns.started(position, &window);
        }
        started
    }

    /// Keeps what there is when the job that is asked about is tried for the first time.
    fn note_try(&mut self, position: usize) {
        let Some(probe) = &mut self.probe else { return };
        if probe.position == position && probe.first_try.is_none() {
            let (free_gpus, free_milli) = (self.site.free_gpus(), self.site.free_milli());
            let offers = self.site.offers(self.scenario.job_id(position));
            probe.first_try = Some(FirstTry { at: self.now, free_gpus, free_milli, offers });
        }
    }

    /// Whether the policy holds back a job, and has patience left.
    fn holds_back(&mut self, position: usize) -> bool {
        let Some(patience_s) = self.patience_s else { return false };
        let until = self.scenario.jobs()[position].submit_s.saturating_add(patience_s);
        let holds_back = self.now < until && self.site.holds_back(self.scenario.job_id(position));
        if holds_back {
            self.held.insert((until, position));
        }
        holds_back
    }

    /// Whoever has been held back for long enough is tried again.
    pub(super) fn lose_patience(&mut self) {
        self.changed |= self.held.first().is_some_and(|&(until, _)| until <= self.now);
    }
}
