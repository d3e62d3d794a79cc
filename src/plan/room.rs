//! The fewest moves for the commit loop: what the policy `make-room` asks of plans.

use super::find::Finder;
use super::integer::Effort;
use super::question::{Cost, Goal};
use super::site::Site;
use super::steps::Mode;
use crate::cluster::{Cluster, JobId};
use crate::decide::{Room, RoomLimits, RoomMaker};

/// Makes room with the fewest moves that are found, then the fewest moved GPUs; in a bounded number of steps, so that an
/// answer never depends on the machine.
#[derive(Clone, Debug)]
pub struct FewestMoves {
    steps: u64,
    /// Whether each job may be moved, by its number.
    movable: Vec<bool>,
}

impl FewestMoves {
    /// So many steps of the search for each job (see [`Effort`]).
    pub fn new(steps: u64) -> Self {
        Self { steps, movable: Vec::new() }
    }
}

impl Default for FewestMoves {
    /// Enough for all but odd cases.
    fn default() -> Self {
        Self::new(200_000)
    }
}

impl RoomMaker for FewestMoves {
    fn make_room(&mut self, cluster: &Cluster, job: JobId, limits: RoomLimits) -> Option<Room> {
        let new = cluster.job_ids().skip(self.movable.len());
        self.movable.extend(new.map(|job| cluster.job(job).migratable()));
        let site = Site { cluster, goal: Goal::Job(job), movable: &self.movable, cost: Cost::Moves, ways: false };
        let mut effort = Effort::new(self.steps, None);
        let mut finder = Finder { site, mode: Mode::StopFirst, max_moves: None, effort: &mut effort };
        let (_, rough) = finder.all_at_once().best?;
        let mut jobs: Vec<JobId> = rough.moves.iter().map(|one| cluster.instance(one.instance).job()).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let too_many_moves = limits.most_moves.is_some_and(|most| rough.moves.len() as u64 > u64::from(most));
        if too_many_moves || limits.worth.is_some_and(|worth| !worth.is_more_than(cluster, &jobs)) {
            return None;
        }
        let moves = rough.moves.iter().map(|one| (one.instance, one.to)).collect();
        Some(Room { moves, hosts: rough.hosts })
    }
}
