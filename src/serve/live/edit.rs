//! What has happened elsewhere, done here: all of it, or nothing.

use super::distinct;
use super::gangs::{Gangs, News};
use crate::anchor::{State, Transaction};
use crate::cluster::{InstanceId, JobId, JobSpec, JobTimes, MAX_AMOUNT, MAX_GPUS, NodeId, WHOLE_GPU};
use crate::formats::{EditSpec, GangSpec, GroupSpec, MAX_SECONDS, MoveSpec, SeatSpec, StartSpec, WaitSpec, devices};

/// Applies edits in their order and returns the nodes that changed, or which edit is not possible and why; all is then as
/// it was.
pub(super) fn apply(state: &mut State, gangs: &mut Gangs, edits: &[EditSpec]) -> Result<Vec<NodeId>, (usize, String)> {
    let mark = state.cluster().mark_jobs();
    let mut ended = Vec::new();
    let mut transaction = state.begin();
    let mut done = Ok(());
    let mut news = gangs.news();
    for (at, edit) in edits.iter().enumerate() {
        done = step(&mut transaction, edit, &mut ended, &mut news).map_err(|why| (at, why));
        if done.is_err() {
            break;
        }
    }
    let news = news.done();
    if let Err(refused) = done {
        drop(transaction);
        state.forget_since(mark);
        state.enqueue(|cluster| ended.iter().rev().for_each(|&job| cluster.restore_name(job)));
        return Err(refused);
    }
    gangs.learn(news);
    let touched = transaction.log().iter().map(|edit| edit.node()).collect();
    transaction.commit();
    Ok(distinct(touched))
}

fn step(
    transaction: &mut Transaction<'_>,
    edit: &EditSpec,
    ended: &mut Vec<JobId>,
    news: &mut News<'_>,
) -> Result<(), String> {
    match edit {
        EditSpec::Start(StartSpec { gang: Some(gang), .. })
        | EditSpec::Wait(WaitSpec { gang: Some(gang), .. })
        | EditSpec::Gang(GangSpec { gang, .. })
            if gang.is_empty() =>
        {
            Err("found a gang without a name".to_owned())
        }
        EditSpec::Start(job) => {
            start(transaction, job)?;
            news.started(&job.job, job.gang.as_deref());
            Ok(())
        }
        EditSpec::Wait(job) if job.job.is_empty() => Err("found a job without a name".to_owned()),
        EditSpec::Wait(WaitSpec { job, gang: None, gang_size: Some(size), .. }) => {
            Err(format!("job {job:?}: found gang_size {size} and no gang, expected both or neither"))
        }
        EditSpec::Wait(job) if runs(transaction, &job.job) => {
            Err(format!("found job {:?}, expected one that does not run", job.job))
        }
        EditSpec::Wait(job) if usize::from(job.gpus) > MAX_GPUS => {
            Err(format!("found {} GPUs, expected at most {MAX_GPUS}", job.gpus))
        }
        EditSpec::Wait(job) if job.cpu_milli.max(job.memory_mib) > MAX_AMOUNT => {
            let most = job.cpu_milli.max(job.memory_mib);
            Err(format!("found an amount of {most} of CPU or memory, expected at most {MAX_AMOUNT}"))
        }
        EditSpec::Wait(job) => {
            news.waits(job);
            Ok(())
        }
        EditSpec::Gang(gang) => {
            news.told(gang);
            Ok(())
        }
        EditSpec::End(name) => {
            let waited = news.ended(name);
            match transaction.cluster().find_grouped_job(name) {
                // The first gives the name of all back, so it is the last.
                Some(groups) => groups.jobs().rev().try_for_each(|group| end(transaction, group, ended)),
                None if waited && find_running(transaction, name).is_err() => Ok(()),
                None => {
                    let job = find_running(transaction, name)?;
                    let whole = transaction.cluster().whole_job_name(job);
                    if whole != name {
                        return Err(format!("found {name:?}, a group of the job {whole:?}, expected the job"));
                    }
                    end(transaction, job, ended)
                }
            }
        }
        EditSpec::Moves(moves) => migrate(transaction, moves),
        EditSpec::Cordon(name) => {
            let node = find_node(transaction, name)?;
            // A node that is so already stays so: who tells twice tells the truth.
            let is_open = transaction.cluster().node(node).schedulable();
            if is_open { transaction.cordon(node).map_err(|error| error.to_string()) } else { Ok(()) }
        }
        EditSpec::Uncordon(name) => {
            let node = find_node(transaction, name)?;
            let is_open = transaction.cluster().node(node).schedulable();
            if is_open { Ok(()) } else { transaction.uncordon(node).map_err(|error| error.to_string()) }
        }
    }
}

fn start(transaction: &mut Transaction<'_>, spec: &StartSpec) -> Result<(), String> {
    // What a snapshot could not say must not be said here.
    if spec.job.is_empty() {
        return Err("found a job without a name".to_owned());
    }
    if let Some(seconds) = spec.remaining_s.max(spec.move_cost_s).filter(|&seconds| seconds > MAX_SECONDS) {
        return Err(format!("job {:?}: found {seconds} seconds, expected at most {MAX_SECONDS}", spec.job));
    }
    let parts = parts(spec);
    let models: Vec<Vec<&str>> =
        parts.iter().map(|part| part.models.iter().map(String::as_str).collect::<Vec<_>>()).collect();
    if models.iter().flatten().any(|model| model.is_empty()) {
        return Err(format!("job {:?}: found an empty model, expected a name", spec.job));
    }
    let specs: Vec<(JobSpec<'_>, u32)> = parts
        .iter()
        .zip(&models)
        .map(|(part, models)| Ok((part.spec(spec, models), instances_of(part)?)))
        .collect::<Result<_, String>>()?;
    let (jobs, started): (Vec<JobId>, bool) = match &specs[..] {
        [(alone, instances)] => {
            let job = transaction.state_mut().enqueue(|cluster| cluster.register(alone, *instances));
            let job = job.map_err(|error| error.to_string())?;
            (vec![job], transaction.start(job))
        }
        groups => {
            let job = transaction.state_mut().enqueue(|cluster| cluster.register_groups(&spec.job, groups));
            let job = job.map_err(|error| error.to_string())?;
            (job.jobs().collect(), transaction.start_groups(job))
        }
    };
    if !started {
        return Err("the numbers of instances have run out: put a snapshot".to_owned());
    }
    let mut seats = Vec::new();
    for (&job, part) in jobs.iter().zip(&parts) {
        seats.extend(transaction.cluster().instances_of(job).zip(part.instances));
    }
    // Those that name their devices first: the others take the lowest of what is left.
    for named in [true, false] {
        for &(instance, seat) in seats.iter().filter(|(_, seat)| seat.gpus.is_some() == named) {
            take(transaction, instance, seat)?;
        }
    }
    Ok(())
}

/// Instances of a job that are alike.
struct Part<'a> {
    gpus: u8,
    gpu_milli: Option<u16>,
    cpu_milli: u32,
    memory_mib: u32,
    models: &'a [String],
    instances: &'a [SeatSpec],
}

/// The groups of a job; all of it, where it has none.
fn parts(spec: &StartSpec) -> Vec<Part<'_>> {
    if spec.groups.is_empty() {
        let &StartSpec { gpus_per_instance: gpus, gpu_milli, cpu_milli, memory_mib, ref models, ref instances, .. } =
            spec;
        return vec![Part { gpus, gpu_milli, cpu_milli, memory_mib, models, instances }];
    }
    let part = |group| {
        let &GroupSpec { gpus_per_instance: gpus, gpu_milli, cpu_milli, memory_mib, ref models, ref instances } = group;
        Part { gpus, gpu_milli, cpu_milli, memory_mib, models, instances }
    };
    spec.groups.iter().map(part).collect()
}

impl Part<'_> {
    /// As the cluster wants it, with what holds for the whole job.
    fn spec<'a>(&self, whole: &'a StartSpec, models: &'a [&'a str]) -> JobSpec<'a> {
        JobSpec {
            name: &whole.job,
            gpus: self.gpus,
            gpu_milli: self.gpu_milli.unwrap_or(WHOLE_GPU),
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            models,
            within: whole.within.map(Into::into),
            pinned: !whole.migratable,
            times: JobTimes { remaining_s: whole.remaining_s, move_cost_s: whole.move_cost_s },
        }
    }
}

fn instances_of(part: &Part<'_>) -> Result<u32, String> {
    u32::try_from(part.instances.len()).map_err(|_| "found too many instances".to_owned())
}

fn end(transaction: &mut Transaction<'_>, job: JobId, ended: &mut Vec<JobId>) -> Result<(), String> {
    for instance in transaction.cluster().instances_of(job) {
        if transaction.cluster().instance(instance).node().is_some() {
            transaction.free(instance).map_err(|error| error.to_string())?;
        }
    }
    if transaction.state_mut().enqueue(|cluster| cluster.release_name(job)) {
        ended.push(job);
    }
    Ok(())
}

fn migrate(transaction: &mut Transaction<'_>, moves: &[MoveSpec]) -> Result<(), String> {
    let mut moved = Vec::with_capacity(moves.len());
    for one in moves {
        let job = find_running(transaction, &one.job)?;
        let known = usize::try_from(one.instance).ok().and_then(|at| transaction.cluster().instances_of(job).nth(at));
        let running = known.filter(|&instance| transaction.cluster().instance(instance).node().is_some());
        let instance = running
            .ok_or_else(|| format!("found instance {} of job {:?}, expected one that runs", one.instance, one.job))?;
        let at = transaction.cluster().instance(instance).node().map(|node| transaction.cluster().node_name(node));
        if let Some((from, at)) = one.from.as_deref().zip(at).filter(|(from, at)| from != at) {
            let who = format_args!("instance {} of job {:?}", one.instance, one.job);
            return Err(format!("{who}: found from {from:?}, expected {at:?}, where it is"));
        }
        transaction.free(instance).map_err(|error| error.to_string())?;
        moved.push(instance);
    }
    for named in [true, false] {
        for (&instance, one) in moved.iter().zip(moves).filter(|(_, one)| one.gpus.is_some() == named) {
            take(transaction, instance, &SeatSpec { node: one.node.clone(), gpus: one.gpus.clone() })?;
        }
    }
    Ok(())
}

fn take(transaction: &mut Transaction<'_>, instance: InstanceId, seat: &SeatSpec) -> Result<(), String> {
    let node = find_node(transaction, &seat.node)?;
    let request = transaction.cluster().request_of(transaction.cluster().instance(instance).job());
    let free = transaction.cluster().node(node).free_gpus();
    if seat.gpus.is_none() && !request.is_share() && free < request.gpus {
        return Err(format!("node {:?}: found {free} free devices, expected {}", seat.node, request.gpus));
    }
    let taken = match &seat.gpus {
        Some(gpus) => transaction.take(instance, node, devices(gpus).map_err(|error| error.to_string())?),
        None => transaction.take_lowest(instance, node),
    };
    taken.map_err(|error| {
        let job = transaction.cluster().instance(instance).job();
        let position = transaction.cluster().position(instance);
        let job = transaction.cluster().job_name(job);
        format!("instance {position} of job {job:?} on node {:?}: {}", seat.node, told(&error))
    })
}

/// What is wrong, without the numbers that only this process knows.
fn told(error: &crate::cluster::EditError) -> &'static str {
    use crate::cluster::EditError as E;
    match error {
        E::WrongCount(_) => "found another number of devices than each instance has",
        E::NoSuchGpu(_) => "found a device that is broken or not there",
        E::GpuBusy(_) => "found a device that another instance holds",
        E::NoCpu(_) => "not enough CPU is free",
        E::NoMemory(_) => "not enough memory is free",
        E::AlreadyRuns(_) => "it runs already",
        E::UnknownInstance(_) | E::UnknownNode(_) | E::NotHeld(_) | E::SoAlready(_) => "it is not as told",
    }
}

fn find_node(transaction: &Transaction<'_>, name: &str) -> Result<NodeId, String> {
    let node = transaction.cluster().find_node(name);
    node.ok_or_else(|| format!("found node {name:?}, expected one of the cluster"))
}

/// Whether a job of this name runs, of groups or not.
fn runs(transaction: &Transaction<'_>, name: &str) -> bool {
    let cluster = transaction.cluster();
    let grouped = || cluster.find_grouped_job(name).is_some_and(|job| cluster.job(job.first()).runs());
    find_running(transaction, name).is_ok() || grouped()
}

fn find_running(transaction: &Transaction<'_>, name: &str) -> Result<JobId, String> {
    let job = transaction.cluster().find_job(name).filter(|&job| transaction.cluster().job(job).runs());
    job.ok_or_else(|| format!("found job {name:?}, expected one that runs"))
}
