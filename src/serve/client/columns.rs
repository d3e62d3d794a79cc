//! Columns, from what a program has.

use rustc_hash::FxHashMap;

use super::ClientError;
use crate::cluster::{Cluster, JobSpec, JobTimes, NodeId, WHOLE_GPU, Within};
use crate::evaluate::Place;
use crate::formats::{EditSpec, GroupSpec, MoveSpec, SeatSpec, StartSpec, devices};
use crate::serve::grpc::NOT_SAID;
use crate::serve::grpc::generated as wire;
use crate::serve::grpc::generated::{EditKind, EntryKind};

/// Names of nodes, to their numbers.
pub(super) type Numbers = FxHashMap<String, u32>;

/// What of a message a list of pieces may hold: well below the limit of any service.
const ROWS: usize = 4096;

/// Adds a job, or a group of the job `group_of`.
fn push_job(jobs: &mut wire::Jobs, spec: &JobSpec<'_>, group_of: Option<&str>, instances: u32) {
    jobs.name.push(spec.name.to_owned());
    jobs.group_of.push(group_of.unwrap_or_default().to_owned());
    jobs.instances.push(instances);
    jobs.gpus_per_instance.push(u32::from(spec.gpus));
    jobs.gpu_milli.push(u32::from(spec.gpu_milli));
    jobs.cpu_milli.push(spec.cpu_milli);
    jobs.memory_mib.push(spec.memory_mib);
    jobs.pinned.push(spec.pinned);
    jobs.within.push(within_element(spec.within));
    jobs.n_models.push(spec.models.len() as u32);
    for model in spec.models {
        let word = word(&mut jobs.words, model);
        jobs.models.push(word);
    }
}

/// The position of a word, which is added if it is new. There are few.
fn word(words: &mut Vec<String>, word: &str) -> u32 {
    let at = words.iter().position(|known| known == word).unwrap_or_else(|| {
        words.push(word.to_owned());
        words.len() - 1
    });
    at as u32
}

fn push_seat(seats: &mut wire::Seats, place: Place) {
    seats.node.push(place.node.0);
    seats.gpus.push(u32::from(place.gpus.unwrap_or(0)));
}

/// Adds a job that runs, or a group of the job `group_of`.
fn push_running(
    running: &mut wire::Running,
    spec: &JobSpec<'_>,
    group_of: Option<&str>,
    seats: &[Place],
    gang: Option<&str>,
) {
    push_job(running.jobs.get_or_insert_default(), spec, group_of, seats.len() as u32);
    let seconds = |seconds: Option<u64>| seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(-1);
    running.remaining_s.push(seconds(spec.times.remaining_s));
    running.move_cost_s.push(seconds(spec.times.move_cost_s));
    running.gang.push(gang.unwrap_or_default().to_owned());
    let column = running.seats.get_or_insert_default();
    seats.iter().for_each(|&seat| push_seat(column, seat));
}

/// A cluster, in pieces.
pub(super) fn pieces(cluster: &Cluster) -> Vec<wire::PutClusterRequest> {
    use wire::put_cluster_request::Piece;
    let piece = |piece| wire::PutClusterRequest { piece: Some(piece) };
    let running = || cluster.job_ids().filter(|&job| cluster.job(job).runs());
    let mut pieces = Vec::new();
    let mut nodes: Vec<NodeId> = cluster.node_ids().collect();
    // A cluster without nodes is a piece too.
    let last = nodes.split_off(nodes.len() - nodes.len() % ROWS);
    for ids in nodes.chunks(ROWS).chain([&last[..]]) {
        let mut out = wire::Nodes::default();
        let mut known = FxHashMap::default();
        for &id in ids {
            let node = cluster.node(id);
            let mut word = |prefix: char, word: Option<&str>| {
                let Some(word) = word else { return 0 };
                *known.entry((prefix, word.to_owned())).or_insert_with(|| {
                    out.words.push(word.to_owned());
                    out.words.len() as u32
                })
            };
            let model = cluster.pool(node.pool()).model.map(|model| cluster.model_name(model));
            let columns = [
                word('m', model),
                word('d', node.domain().map(|domain| cluster.domain_name(domain))),
                word('r', node.rack().map(|rack| cluster.rack_name(rack))),
            ];
            out.model.push(columns[0]);
            out.domain.push(columns[1]);
            out.rack.push(columns[2]);
            out.name.push(cluster.node_name(id).to_owned());
            out.gpus.push(u32::from(node.devices()));
            let all = (1u32 << node.devices()) - 1;
            out.unavailable.push(all & !u32::from(node.usable()));
            // The cluster has the same number for no limit.
            out.cpu_milli.push(node.cpu_milli());
            out.memory_mib.push(node.memory_mib());
            out.cordoned.push(!node.schedulable());
        }
        pieces.push(piece(Piece::Nodes(out)));
    }
    let mut out = wire::Running::default();
    for job in running() {
        let request = cluster.request_of(job);
        let models: Vec<&str> = request.models.iter().flatten().map(|&model| cluster.model_name(model)).collect();
        let spec = JobSpec {
            name: cluster.job_name(job),
            gpus: request.gpus,
            gpu_milli: request.gpu_milli,
            cpu_milli: request.cpu_milli,
            memory_mib: request.memory_mib,
            models: &models,
            within: request.within,
            pinned: !cluster.job(job).migratable(),
            times: cluster.job_times(job),
        };
        let held = cluster.instances_of(job).map(|instance| cluster.instance(instance));
        let seats: Vec<Place> =
            held.filter_map(|held| Some(Place { node: held.node()?, gpus: Some(held.gpus()) })).collect();
        let group_of = cluster.grouped_job_of(job).map(|_| cluster.whole_job_name(job));
        push_running(&mut out, &spec, group_of, &seats, None);
        if out.remaining_s.len() == ROWS {
            pieces.push(piece(Piece::Running(std::mem::take(&mut out))));
        }
    }
    if !out.remaining_s.is_empty() {
        pieces.push(piece(Piece::Running(out)));
    }
    pieces
}

fn within_element(within: Option<Within>) -> i32 {
    let within = match within {
        None => wire::Within::Anywhere,
        Some(Within::Domain) => wire::Within::Domain,
        Some(Within::Rack) => wire::Within::Rack,
    };
    within as i32
}

/// Edits, in one message.
pub(super) fn edits(list: &[EditSpec], numbers: &Numbers) -> Result<wire::ApplyEditsRequest, ClientError> {
    let mut out = wire::ApplyEditsRequest::default();
    let number = |name: &String| numbers.get(name).copied().ok_or_else(|| ClientError::UnknownNode(name.clone()));
    let mask = |gpus: &[u64]| devices(gpus).map_err(|error| ClientError::Input(error.to_string()));
    let seat = |node: &String, gpus: Option<&[u64]>| {
        Ok::<_, ClientError>(Place { node: NodeId(number(node)?), gpus: gpus.map(mask).transpose()? })
    };
    for edit in list {
        out.kind.push(match edit {
            EditSpec::Start(job) => {
                let seats = |seats: &[SeatSpec]| {
                    seats
                        .iter()
                        .map(|SeatSpec { node, gpus }| seat(node, gpus.as_deref()))
                        .collect::<Result<Vec<_>, _>>()
                };
                push_start(out.start.get_or_insert_default(), job, &seats)?;
                EditKind::EditStart
            }
            EditSpec::Wait(job) => {
                let wait = out.wait.get_or_insert_default();
                wait.job.push(job.job.clone());
                wait.gpus.push(u32::from(job.gpus));
                wait.gang.push(job.gang.clone().unwrap_or_default());
                wait.gang_size.push(job.gang_size.unwrap_or(0));
                wait.cpu_milli.push(job.cpu_milli);
                wait.memory_mib.push(job.memory_mib);
                EditKind::EditWait
            }
            EditSpec::End(name) => {
                out.end.push(name.clone());
                EditKind::EditEnd
            }
            EditSpec::Moves(moves) => {
                out.n_moves.push(moves.len() as u32);
                let columns = out.moves.get_or_insert_default();
                for MoveSpec { job, instance, node, from, gpus } in moves {
                    let instance = u32::try_from(*instance).unwrap_or(u32::MAX);
                    push_move(columns, job, instance, seat(node, gpus.as_deref())?);
                    columns.from.push(from.as_ref().map_or(Ok(NOT_SAID), number)?);
                }
                EditKind::EditMove
            }
            EditSpec::Gang(gang) => {
                let gangs = out.gang.get_or_insert_default();
                gangs.gang.push(gang.gang.clone());
                gangs.size.push(gang.size.unwrap_or(0));
                gangs.within.push(within_element(gang.within.map(Into::into)));
                EditKind::EditGang
            }
            EditSpec::Cordon(node) => {
                out.node.push(number(node)?);
                EditKind::EditCordon
            }
            EditSpec::Uncordon(node) => {
                out.node.push(number(node)?);
                EditKind::EditUncordon
            }
        } as i32);
    }
    Ok(out)
}

/// Where instances are, by numbers.
type Seats<'a> = dyn Fn(&[SeatSpec]) -> Result<Vec<Place>, ClientError> + 'a;

fn push_start(running: &mut wire::Running, job: &StartSpec, seats: &Seats<'_>) -> Result<(), ClientError> {
    let mut push = |name: &str, group: &GroupSpec, group_of: Option<&str>| {
        let models: Vec<&str> = group.models.iter().map(String::as_str).collect();
        let spec = JobSpec {
            name,
            gpus: group.gpus_per_instance,
            gpu_milli: group.gpu_milli.unwrap_or(WHOLE_GPU),
            cpu_milli: group.cpu_milli,
            memory_mib: group.memory_mib,
            models: &models,
            within: job.within.map(Into::into),
            pinned: !job.migratable,
            times: JobTimes { remaining_s: job.remaining_s, move_cost_s: job.move_cost_s },
        };
        push_running(running, &spec, group_of, &seats(&group.instances)?, job.gang.as_deref());
        Ok(())
    };
    match &job.groups[..] {
        [] => push(&job.job, &job.clone().into(), None),
        // One group is a job like any other.
        [alone] => push(&job.job, alone, None),
        groups => {
            let mut named = (1..).map(|number| format!("{}/{number}", job.job)).zip(groups);
            named.try_for_each(|(name, group)| push(&name, group, Some(&job.job)))
        }
    }
}

fn push_move(moves: &mut wire::Moves, job: &str, instance: u32, to: Place) {
    moves.job.push(job.to_owned());
    moves.instance.push(instance);
    push_seat(moves.to.get_or_insert_default(), to);
}

/// Jobs that wait, and candidates of them: see [`Client::score`](super::Client::score).
#[derive(Clone, Debug, Default)]
pub struct Candidates(pub(super) wire::ScoreRequest);

impl Candidates {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job, and returns its row.
    pub fn job(&mut self, spec: &JobSpec<'_>, instances: u32) -> u32 {
        let jobs = self.0.jobs.get_or_insert_default();
        push_job(jobs, spec, None, instances);
        jobs.name.len() as u32 - 1
    }

    /// Adds a candidate of the job of a row: where its instances would go, and which running instances, by job and position,
    /// would move where in the same step.
    pub fn candidate(&mut self, job: u32, place: &[Place], moves: &[(&str, u32, Place)]) {
        self.0.job.push(job);
        self.0.n_places.push(place.len() as u32);
        self.0.n_moves.push(moves.len() as u32);
        place.iter().for_each(|&place| push_seat(self.0.place.get_or_insert_default(), place));
        for &(job, instance, to) in moves {
            push_move(self.0.moves.get_or_insert_default(), job, instance, to);
        }
    }

    /// The number of candidates.
    pub fn len(&self) -> usize {
        self.0.job.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.job.is_empty()
    }
}

/// What is decided, in that order: see [`Client::place`](super::Client::place).
#[derive(Clone, Debug, Default)]
pub struct Submissions(pub(super) wire::PlaceRequest);

impl Submissions {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A job that wants a place.
    #[must_use]
    pub fn submit(mut self, spec: &JobSpec<'_>, instances: u32) -> Self {
        push_job(self.0.jobs.get_or_insert_default(), spec, None, instances);
        self.0.entry.push(EntryKind::EntrySubmit as i32);
        self
    }

    /// A job of several groups that wants a place for all of them, or none: what the instances of each ask for, and how many
    /// they are. The names in `groups` do not count; `within` and `pinned` are the same in all. One group is a job like any
    /// other.
    #[must_use]
    pub fn submit_groups(mut self, name: &str, groups: &[(JobSpec<'_>, u32)]) -> Self {
        if let [(alone, instances)] = groups {
            return self.submit(&JobSpec { name, ..alone.clone() }, *instances);
        }
        let jobs = self.0.jobs.get_or_insert_default();
        for (number, (group, instances)) in (1..).zip(groups) {
            push_job(jobs, &JobSpec { name: &format!("{name}/{number}"), ..group.clone() }, Some(name), *instances);
        }
        if !groups.is_empty() {
            self.0.entry.push(EntryKind::EntrySubmit as i32);
        }
        self
    }

    /// A job that leaves, if it runs by then.
    #[must_use]
    pub fn remove(mut self, job: &str) -> Self {
        self.0.remove.push(job.to_owned());
        self.0.entry.push(EntryKind::EntryRemove as i32);
        self
    }
}
